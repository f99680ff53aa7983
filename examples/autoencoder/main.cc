/// Trains a convolutional autoencoder on handwritten digits with gradsmith's operators. Only ReLU,
/// the squared error (model.cc) and the optimiser (adam.h) are the example's own.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numbers>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "adam.h"
#include "contact_sheet.h"
#include "data.h"
#include "model.h"
#include "options.h"
#include "progress.h"

namespace {

/// The share of the mean image's error that the autoencoder may have on held-out images.
constexpr double kLargestRatio = 0.1;

/// One image in six is held out.
constexpr int kHeldOutShare = 6;

struct Split {
  std::vector<Image> training;
  std::vector<Image> held_out;
};

Split ReadSplit(const Options& options, std::mt19937& random) {
  std::vector<Image> images = ReadImages(options.data);
  std::ranges::shuffle(images, random);
  const auto first_training = images.begin() + std::ssize(images) / kHeldOutShare;
  Split split = {
      .training = {first_training, images.end()}, .held_out = {images.begin(), first_training}};
  if (split.held_out.empty() || split.training.size() < static_cast<std::size_t>(options.batch)) {
    throw std::runtime_error(
        options.data + " has too few images: " + std::to_string(split.training.size()) +
        " to train on, in batches of " + std::to_string(options.batch) + ", and " +
        std::to_string(split.held_out.size()) + " to hold out");
  }
  return split;
}

double HeldOutLoss(Autoencoder& model, const Split& split) {
  const Tensor images = ToTensor(split.held_out);
  return MeanSquaredError(model.Reconstruct(images), images);
}

/// MeanImageLoss returns the held-out error of drawing the mean training image every time.
double MeanImageLoss(const Split& split) {
  Image mean;
  for (const Image& image : split.training) {
    for (int i = 0; i < kPixels; ++i) {
      mean.pixels[i] += image.pixels[i] / static_cast<float>(split.training.size());
    }
  }
  const std::vector<Image> means(split.held_out.size(), mean);
  return MeanSquaredError(ToTensor(means), ToTensor(split.held_out));
}

/// CosineDecay falls from 1 at the start of the training to 0 at its end.
double CosineDecay(double progress) {
  return (1 + std::cos(std::numbers::pi * progress)) / 2;
}

void Train(const Options& options, Split split, std::mt19937& random, Autoencoder& model) {
  const std::size_t batch = options.batch;
  // The last images of an epoch that are too few for a batch wait for the next epoch's order.
  const std::size_t batches = split.training.size() / batch;
  Adam adam(model.Parameters(), options.weight_decay);
  const Progress progress(options.epochs, options.quiet);
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    std::ranges::shuffle(split.training, random);
    double loss = 0;
    for (std::size_t i = 0; i < batches; ++i) {
      const Tensor images = ToTensor(std::span(split.training).subspan(i * batch, batch));
      loss += model.ComputeGradients(images) / static_cast<double>(batches);
      const double epochs_done = epoch + static_cast<double>(i) / static_cast<double>(batches);
      adam.Step(options.learning_rate * CosineDecay(epochs_done / options.epochs));
      progress.ShowBar(epoch + 1, epochs_done / options.epochs);
    }
    if (progress.HasLine(epoch + 1)) {
      progress.ShowLine(epoch + 1, loss, HeldOutLoss(model, split), model.Alignment());
    }
  }
}

/// FirstOfEachDigit returns up to ten images, from 0 to 9.
std::vector<Image> FirstOfEachDigit(const std::vector<Image>& images) {
  std::vector<Image> result;
  for (int digit = 0; digit <= 9; ++digit) {
    const auto image = std::ranges::find(images, digit, &Image::digit);
    if (image != images.end()) {
      result.push_back(*image);
    }
  }
  return result;
}

/// PrintVerdict returns whether the autoencoder has become good enough in time.
bool PrintVerdict(double ratio, double seconds, double time_limit) {
  const bool is_good = ratio <= kLargestRatio;  // false where it is not a number
  const bool is_quick = seconds <= time_limit;
  std::printf("%s: ", is_good && is_quick ? "passed" : "failed");
  std::printf(
      "the held-out error is %.4f of the mean image's, %s%.1f; ", ratio,
      is_good ? "at most " : "not at most ", kLargestRatio);
  std::printf(
      "it took %.1f seconds, %s%g\n", seconds, is_quick ? "at most " : "not at most ", time_limit);
  return is_good && is_quick;
}

/// ChooseDevice returns the first GPU where the backend is "cuda", or is "auto" and one can be
/// used.
gradsmith::Device ChooseDevice(const std::string& backend) {
  constexpr gradsmith::Device kGpu = {gradsmith::Backend::kCuda, 0};
  if (backend == "cpu") {
    return {};
  }
  const gradsmith::Status status = gradsmith::CheckDevice(kGpu);
  if (backend == "cuda") {
    Check(status);
  }
  std::printf(
      "training on %s%s\n", status.ok() ? "the GPU" : "the CPU: ", status.message().c_str());
  return status.ok() ? kGpu : gradsmith::Device();
}

/// Run returns whether the autoencoder has become good enough in time.
bool Run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  CheckIsWritable(options.output);
  std::mt19937 random(options.seed);
  const Split split = ReadSplit(options, random);
  const gradsmith::Context context(
      {.device = ChooseDevice(options.device), .threads = options.threads});
  Autoencoder model(context, options.filters, random);
  std::printf(
      "%zu digits to train on, %zu held out; the code has %d values for 64 pixels\n",
      split.training.size(), split.held_out.size(),
      options.filters * Autoencoder::kCodeSide * Autoencoder::kCodeSide);

  const double first_alignment = model.Alignment();
  Train(options, split, random, model);
  const Tensor originals = ToTensor(FirstOfEachDigit(split.held_out));
  WriteContactSheet(options.output, originals, model.Reconstruct(originals));

  const double loss = HeldOutLoss(model, split);
  const double mean_image_loss = MeanImageLoss(split);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf(
      "held-out mean squared error %.5f, of the mean image %.5f\n"
      "cosine(w_b, w_f transposed) %.3f at the start, %.3f at the end\n"
      "originals above reconstructions in %s\n",
      loss, mean_image_loss, first_alignment, model.Alignment(), options.output.c_str());
  return PrintVerdict(loss / mean_image_loss, seconds.count(), options.time_limit);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = ParseOptions({argv + 1, argv + argc});
    if (options.help) {
      std::fputs(HelpText().c_str(), stdout);
      return 0;
    }
    return Run(options) ? 0 : 1;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "autoencoder: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "autoencoder: %s\n", error.what());
    return 1;
  }
}
