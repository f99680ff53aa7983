#ifndef AUTOENCODER_OPTIONS_H_
#define AUTOENCODER_OPTIONS_H_

#include <cstdint>
#include <span>
#include <string>

/// Options are what the command line sets.
struct Options {
  std::string data = AUTOENCODER_DIGITS;
  std::string output = "autoencoder.png";
  std::string device = "auto";  ///< "auto", "cpu" or "cuda"
  int epochs = 100;
  int batch = 32;
  int filters = 12;
  double learning_rate = 0.02;
  double weight_decay = 0.02;
  std::uint32_t seed = 1;
  int threads = 0;
  double time_limit = 60;  ///< in seconds
  bool quiet = false;
  bool help = false;
};

/// ParseOptions reads `--name value` and flags. Throws a std::invalid_argument that names the
/// option, what it takes and what came.
Options ParseOptions(std::span<const char* const> arguments);

/// HelpText lists the options with their defaults.
std::string HelpText();

#endif  // AUTOENCODER_OPTIONS_H_
