#include "conv/cuda/planes_places.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace gradsmith::conv::planes {

namespace {

/// Gives terms, or pairs of taps, places, so that as many as lanes of a product have at a time are
/// in as many different banks as can be.
class Places {
 public:
  Places(bool is_filter, std::int64_t step, int room, Arguments* arguments)
      : at_a_time_(is_filter ? kDepth : kDepth / 2), room_(room), arguments_(arguments) {
    // The first pixels of y that lanes with different pixels have.
    constexpr std::array kOfFilter = {0, 4, 8, 12};
    constexpr std::array kOfForward = {0, 1, 4, 5, 8, 9, 12, 13};
    const std::span<const int> pixels = is_filter ? std::span<const int>(kOfFilter) : kOfForward;
    for (const int one : pixels) {
      for (const int other : pixels) {
        meet_[BankOf((one - other) * step)] = true;
      }
    }
    std::fill_n(arguments->offsets, room, 0);
    std::fill_n(arguments->terms, room, std::int16_t{-1});
  }

  /// Places a term, so many elements from what the first one meets.
  void Add(std::int64_t term, std::int64_t element) {
    int found = -1;
    for (int place = 0; place < room_; ++place) {
      if (!IsNext(place)) {
        continue;
      }
      if (HasBanks(place, element)) {
        found = place;
        break;
      }
      found = found < 0 ? place : found;
    }
    arguments_->offsets[found] = static_cast<int>(element) * kWordBytes;
    arguments_->terms[found] = static_cast<std::int16_t>(term);
  }

 private:
  static constexpr std::int64_t kBanks = 32;

  static std::size_t BankOf(std::int64_t element) {
    return static_cast<std::size_t>(((element % kBanks) + kBanks) % kBanks);
  }

  /// Whether it is the first free place of those at a time.
  [[nodiscard]] bool IsNext(int place) const {
    return arguments_->terms[place] < 0 &&
           (place % at_a_time_ == 0 || arguments_->terms[place - 1] >= 0);
  }

  /// Whether no lane with a term before meets a bank of a lane with this one.
  [[nodiscard]] bool HasBanks(int place, std::int64_t element) const {
    const std::span<const int> offsets(arguments_->offsets);
    const auto before = static_cast<std::size_t>(place % at_a_time_);
    return std::ranges::none_of(
        offsets.subspan(static_cast<std::size_t>(place) - before, before),
        [&](int offset) { return meet_.at(BankOf(element - (offset / kWordBytes))); });
  }

  int at_a_time_;
  int room_;
  Arguments* arguments_;
  /// Whether terms so far apart, modulo the banks, meet a bank.
  std::array<bool, kBanks> meet_ = {};
};

}  // namespace

void PlaceTerms(const Terms& terms, Arguments* arguments) {
  Places places(terms.is_filter, terms.right.stride, terms.places, arguments);
  const std::int64_t first = -terms.right.pad_begin - arguments->tile_left;
  const int each = terms.has_pairs ? 2 : 1;
  for (std::int64_t channel = 0; channel < terms.channels; ++channel) {
    for (std::int64_t i = 0; i < terms.down.w; ++i) {
      const std::int64_t row = (channel * arguments->tile_rows) + (i * terms.down.dilation);
      for (std::int64_t j = 0; j < terms.right.w; j += each) {
        places.Add(
            (((channel * terms.down.w) + i) * terms.right.w) + j,
            (row * arguments->tile_pitch) + first + (j * terms.right.dilation));
      }
    }
  }
}

}  // namespace gradsmith::conv::planes
