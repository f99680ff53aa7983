#ifndef AUTOENCODER_DATA_H_
#define AUTOENCODER_DATA_H_

#include <array>
#include <span>
#include <string>
#include <vector>

#include "tensor.h"

inline constexpr int kImageSide = 8;
inline constexpr int kPixels = kImageSide * kImageSide;

/// Image is a handwritten digit: ink from 0 to 1, row by row, and the digit that it shows.
struct Image {
  std::array<float, kPixels> pixels = {};
  int digit = 0;
};

/// ReadImages reads lines of 64 pixels from 0 to 16 and a digit from 0 to 9, separated by commas.
/// Throws a std::runtime_error that names the file, the line, what was expected and what came.
std::vector<Image> ReadImages(const std::string& path);

/// ToTensor returns the images' pixels, (N, 1, 8, 8).
Tensor ToTensor(std::span<const Image> images);

#endif  // AUTOENCODER_DATA_H_
