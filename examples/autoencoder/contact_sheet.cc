#include "contact_sheet.h"

#include <png.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "data.h"

namespace {

constexpr int kZoom = 10;
constexpr int kTile = kImageSide * kZoom;
constexpr int kGap = 8;
constexpr png_byte kBackground = 96;

/// Sheet is a grid of tiles, two high, with gaps around them.
class Sheet {
 public:
  explicit Sheet(int columns)
      : width_(kGap + columns * (kTile + kGap)),
        height_(kGap + 2 * (kTile + kGap)),
        grays_(static_cast<std::size_t>(width_) * height_, kBackground) {}

  void Draw(int row, int column, std::span<const float> pixels) {
    const int top = kGap + row * (kTile + kGap);
    const int left = kGap + column * (kTile + kGap);
    for (int y = 0; y < kTile; ++y) {
      for (int x = 0; x < kTile; ++x) {
        const float ink = std::clamp(pixels[(y / kZoom) * kImageSide + x / kZoom], 0.0F, 1.0F);
        grays_[(top + y) * width_ + left + x] = static_cast<png_byte>(std::lround(255 * ink));
      }
    }
  }

  [[nodiscard]] std::vector<char> EncodePng() const {
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.width = width_;
    image.height = height_;
    image.format = PNG_FORMAT_GRAY;
    std::vector<char> bytes(PNG_IMAGE_PNG_SIZE_MAX(image));
    png_alloc_size_t size = bytes.size();
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, grays_.data(), 0, nullptr) == 0) {
      throw std::runtime_error("cannot encode the PNG: " + std::string(image.message));
    }
    bytes.resize(size);
    return bytes;
  }

 private:
  int width_;
  int height_;
  std::vector<png_byte> grays_;
};

[[noreturn]] void FailToWrite(const std::string& path) {
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace

void CheckIsWritable(const std::string& path) {
  std::error_code ignored;
  const bool existed = std::filesystem::exists(path, ignored);
  if (!std::ofstream(path, std::ios::app)) {
    FailToWrite(path);
  }
  if (!existed) {
    std::filesystem::remove(path);
  }
}

void WriteContactSheet(
    const std::string& path,
    const Tensor& originals,
    const Tensor& reconstructions) {
  const auto columns = static_cast<int>(originals.dims[0]);
  Sheet sheet(columns);
  for (int column = 0; column < columns; ++column) {
    sheet.Draw(0, column, originals.At(column));
    sheet.Draw(1, column, reconstructions.At(column));
  }
  const std::vector<char> bytes = sheet.EncodePng();
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    FailToWrite(path);
  }
}
