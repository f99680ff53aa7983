#ifndef GRADSMITH_TESTS_FUZZ_FUZZ_H_
#define GRADSMITH_TESTS_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

/// What a fuzz target defines: it takes bytes, and aborts where something is wrong. libFuzzer's
/// name, whose driver calls it where there is one, and otherwise driver.cc.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// A target may define this too: driver.cc calls it when it has run the whole corpus, and nothing
/// else yet.
extern "C" __attribute__((weak)) void FuzzTargetHasRunCorpus();

namespace gradsmith::fuzz {

/// Expect aborts with a sentence where a claim does not hold.
inline void Expect(bool holds, const std::string& sentence) {
  if (!holds) {
    std::fprintf(stderr, "fuzz: %s\n", sentence.c_str());
    std::abort();
  }
}

/// Reader takes numbers from an input; zeros where it has ended.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  /// A number below `count`.
  int Below(int count) { return count <= 1 ? 0 : Byte() % count; }
  /// True once in `count` times.
  bool OneIn(int count) { return Below(count) == count - 1; }
  /// Any number of 64 bits.
  std::int64_t Any() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      value = value << 8U | Byte();
    }
    return static_cast<std::int64_t>(value);
  }
  std::uint8_t Byte() {
    if (size_ == 0) {
      return 0;
    }
    --size_;
    return *data_++;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace gradsmith::fuzz

#endif  // GRADSMITH_TESTS_FUZZ_FUZZ_H_
