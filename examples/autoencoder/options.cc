#include "options.h"

#include <charconv>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <type_traits>

namespace {

template <typename Number>
void Set(Number& number, std::string_view name, std::string_view text, Number min, Number max) {
  const char* end = text.data() + text.size();
  Number parsed = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error == std::errc() && stop == end && parsed >= min && parsed <= max) {
    number = parsed;
    return;
  }
  std::ostringstream message;
  message << name << " takes a " << (std::is_integral_v<Number> ? "whole number" : "number")
          << " from " << min << " to " << max << ", not '" << text << "'";
  throw std::invalid_argument(message.str());
}

void SetDevice(std::string& device, const std::string& text) {
  if (text != "auto" && text != "cpu" && text != "cuda") {
    throw std::invalid_argument("--device takes auto, cpu or cuda, not '" + text + "'");
  }
  device = text;
}

template <typename Value>
void Describe(std::ostream& out, const char* option, const char* meaning, const Value& fallback) {
  out << "  " << std::left << std::setw(20) << option << meaning << " (" << fallback << ")\n";
}

}  // namespace

Options ParseOptions(std::span<const char* const> arguments) {
  Options options;
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    const std::string name = *argument;
    const auto value = [&]() -> std::string {
      if (++argument == arguments.end()) {
        throw std::invalid_argument(name + " needs a value");
      }
      return *argument;
    };
    if (name == "--help") {
      options.help = true;
    } else if (name == "--quiet") {
      options.quiet = true;
    } else if (name == "--data") {
      options.data = value();
    } else if (name == "--output") {
      options.output = value();
    } else if (name == "--device") {
      SetDevice(options.device, value());
    } else if (name == "--epochs") {
      Set(options.epochs, name, value(), 1, 100000);
    } else if (name == "--batch") {
      Set(options.batch, name, value(), 1, 100000);
    } else if (name == "--filters") {
      Set(options.filters, name, value(), 1, 1000);
    } else if (name == "--learning-rate") {
      Set(options.learning_rate, name, value(), 0.0, 1.0);
    } else if (name == "--weight-decay") {
      Set(options.weight_decay, name, value(), 0.0, 1.0);
    } else if (name == "--seed") {
      Set(options.seed, name, value(), 0U, 4294967295U);
    } else if (name == "--threads") {
      Set(options.threads, name, value(), 0, 1000);
    } else if (name == "--time-limit") {
      Set(options.time_limit, name, value(), 0.0, 1e6);
    } else {
      throw std::invalid_argument("unknown option '" + name + "'; --help lists them");
    }
  }
  return options;
}

std::string HelpText() {
  const Options defaults;
  std::ostringstream text;
  text
      << "Usage: autoencoder [options]\n\n"
         "Trains a convolutional autoencoder on 8x8 handwritten digits with gradsmith. Exits with\n"
         "0 where the held-out mean squared error ends at most one tenth of that of predicting the\n"
         "mean image, within the time limit; with 1 where it does not or something fails; with 2\n"
         "for a wrong option.\n\n";
  Describe(text, "--data FILE", "images, one per line: 64 pixels and a digit", defaults.data);
  Describe(text, "--output FILE", "PNG of originals above reconstructions", defaults.output);
  Describe(
      text, "--device NAME", "cuda, cpu, or auto: the GPU where there is one", defaults.device);
  Describe(text, "--epochs N", "passes over the training images", defaults.epochs);
  Describe(text, "--batch N", "images per step", defaults.batch);
  Describe(text, "--filters N", "the code has 4 values for each filter", defaults.filters);
  Describe(text, "--learning-rate X", "Adam's, falling to 0 at the end", defaults.learning_rate);
  Describe(text, "--weight-decay X", "strength of the L2 penalty", defaults.weight_decay);
  Describe(text, "--seed N", "of all that is random", defaults.seed);
  Describe(text, "--threads N", "0 is one for each processor", defaults.threads);
  Describe(text, "--time-limit X", "seconds that all may take", defaults.time_limit);
  text << "  --quiet             no progress\n"
          "  --help              print this\n";
  return text.str();
}
