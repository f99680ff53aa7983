#include "data.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace {

constexpr int kMaxInk = 16;
constexpr std::size_t kColumns = kPixels + 1;

[[noreturn]] void Fail(const std::string& message) {
  throw std::runtime_error(message);
}

/// Quoted makes whatever a file may hold fit for a message.
std::string Quoted(std::string_view text) {
  constexpr std::size_t kLongest = 20;
  std::string result(text.substr(0, kLongest));
  std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + result + (text.size() > kLongest ? "...'" : "'");
}

std::vector<std::string_view> SplitAtCommas(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t comma = line.find(','); comma != line.npos; comma = line.find(',')) {
    fields.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  fields.push_back(line);
  return fields;
}

int ParseNumber(std::string_view text, int maximum, const std::string& place) {
  int value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > maximum) {
    Fail(
        place + "expected a whole number from 0 to " + std::to_string(maximum) + ", got " +
        Quoted(text));
  }
  return value;
}

Image ParseImage(std::string_view line, const std::string& place) {
  const std::vector<std::string_view> fields = SplitAtCommas(line);
  if (fields.size() != kColumns) {
    Fail(
        place + ": expected 64 pixels and a digit, " + std::to_string(kColumns) +
        " numbers separated by commas, got " + std::to_string(fields.size()) + ": " + Quoted(line));
  }
  Image image;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const bool is_pixel = i < kPixels;
    const int value = ParseNumber(
        fields[i], is_pixel ? kMaxInk : 9, place + ", column " + std::to_string(i + 1) + ": ");
    if (is_pixel) {
      image.pixels[i] = static_cast<float>(value) / kMaxInk;
    } else {
      image.digit = value;
    }
  }
  return image;
}

}  // namespace

std::vector<Image> ReadImages(const std::string& path) {
  std::ifstream file(path);
  std::vector<Image> images;
  std::string line;
  while (std::getline(file, line)) {
    images.push_back(ParseImage(line, path + ", line " + std::to_string(images.size() + 1)));
  }
  if (!file.eof()) {
    Fail("cannot read the data file " + path + ": " + std::strerror(errno));
  }
  if (images.empty()) {
    Fail("the data file " + path + " is empty: expected an image on each line");
  }
  return images;
}

Tensor ToTensor(std::span<const Image> images) {
  Tensor tensor({static_cast<std::int64_t>(images.size()), 1, kImageSide, kImageSide});
  auto out = tensor.values.begin();
  for (const Image& image : images) {
    out = std::ranges::copy(image.pixels, out).out;
  }
  return tensor;
}
