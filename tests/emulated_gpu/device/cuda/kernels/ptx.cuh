#ifndef GRADSMITH_CUDA_KERNELS_PTX_CUH_
#define GRADSMITH_CUDA_KERNELS_PTX_CUH_

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "emulated_gpu/block.h"

/// What the instructions of runtime/cuda/kernels/ptx.cuh do, from the PTX ISA's description of
/// each.
#define GRADSMITH_HAS_WARPGROUPS 1
#define GRADSMITH_DYNAMIC_SHARED(name) \
  auto* name = reinterpret_cast<uint4*>(emulated_gpu::DynamicShared())

namespace gradsmith::cuda {

inline unsigned SharedAddress(const void* shared) {
  return emulated_gpu::SharedAddressOf(shared);
}

inline float LoadShared(unsigned address) {
  float value = 0;
  std::memcpy(&value, emulated_gpu::SharedAt(address, sizeof(float)), sizeof(float));
  return value;
}

template <std::size_t kCount>
void LoadShared(unsigned address, std::uint32_t (&bits)[kCount]) {
  std::memcpy(bits, emulated_gpu::SharedAt(address, sizeof(bits)), sizeof(bits));
}

template <std::size_t kCount>
void StoreShared(unsigned address, const std::uint32_t (&bits)[kCount]) {
  std::memcpy(emulated_gpu::SharedAt(address, sizeof(bits)), bits, sizeof(bits));
}

inline void StoreShared(unsigned address, const float (&values)[4]) {
  std::memcpy(emulated_gpu::SharedAt(address, sizeof(values)), values, sizeof(values));
}

inline void PrefetchToL2(const void* /*from*/) {}

inline int ThreadReadAnew() {
  return static_cast<int>(threadIdx.x);
}

inline int SameInWarp(int value) {
  return value;
}

template <typename T>
const T* Whole(const T* pointer) {
  return pointer;
}

template <bool kShared = false>
void BeginCopy(unsigned to, const void* from, bool exists) {
  emulated_gpu::BeginCopy(to, from, 16, exists);
}

template <int kBytes>
void BeginCopyOfLine(unsigned to, const void* from, bool exists) {
  emulated_gpu::BeginCopy(to, from, kBytes, exists);
}

inline void EndOfCopies() {
  emulated_gpu::EndOfCopies();
}

template <int kPending>
void WaitForCopies() {
  emulated_gpu::WaitForCopies(kPending);
}

template <int kThreads>
void SynchronizeBlock() {
  emulated_gpu::SyncThreads();
}

inline void SynchronizeGrid() {
  emulated_gpu::SyncGrid();
}

namespace emulated {

inline constexpr unsigned kAllLanes = ~0U;

inline unsigned LaneOfThread() {
  return threadIdx.x % 32;
}

template <typename T>
T Read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Element `i` of what a lane gave.
template <typename T>
T Of(const emulated_gpu::Exchanged& all, unsigned lane, unsigned i) {
  return Read<T>(all.lanes[lane] + (i * sizeof(T)));
}

/// The rows of matrices whose addresses the lanes gave.
inline const std::byte* RowOf(const emulated_gpu::Exchanged& all, unsigned matrix, unsigned row) {
  return emulated_gpu::SharedAt(Of<unsigned>(all, (8 * matrix) + row, 0), 16);
}

template <int kMatrices>
void LoadTransposed(unsigned row, std::uint32_t (&to)[kMatrices]) {
  const emulated_gpu::Exchanged& all = emulated_gpu::Exchange(kAllLanes, &row, sizeof(row));
  const unsigned lane = LaneOfThread();
  for (unsigned matrix = 0; matrix < kMatrices; ++matrix) {
    to[matrix] = 0;
    for (unsigned i = 0; i < 2; ++i) {
      const std::byte* from = RowOf(all, matrix, (lane % 4 * 2) + i) + (lane / 4 * 2);
      to[matrix] |= std::uint32_t{Read<std::uint16_t>(from)} << (16 * i);
    }
  }
}

/// What a lane has of a product.
template <typename Bits, typename Sum>
struct Operands {
  Bits a[4];
  Bits b[2];
  Sum sums[4];
};

/// The products of 8 pairs of registers, each of which holds Number::kEach numbers.
template <typename Number, typename Sum>
void Multiply(emulated_gpu::Exchanged* all) {
  using Mine = Operands<typename Number::Bits, Sum>;
  constexpr int kTerms = 8 * Number::kEach;
  Sum a[16][kTerms];
  Sum b[kTerms][8];
  Sum sums[16][8];
  const auto for_each_sum = [](int lane, const auto& visit) {
    for (int i = 0; i < 4; ++i) {
      visit(i, (lane / 4) + (i / 2 * 8), (lane % 4 * 2) + (i % 2));
    }
  };
  for (int lane = 0; lane < 32; ++lane) {
    const auto mine = Read<Mine>(all->lanes[lane]);
    for (int place = 0; place < 2; ++place) {
      const int term = ((lane % 4) + (4 * place)) * Number::kEach;
      for (int k = 0; k < Number::kEach; ++k) {
        a[lane / 4][term + k] = Number::Get(mine.a[2 * place], k);
        a[(lane / 4) + 8][term + k] = Number::Get(mine.a[(2 * place) + 1], k);
        b[term + k][lane / 4] = Number::Get(mine.b[place], k);
      }
    }
    for_each_sum(lane, [&](int i, int row, int column) { sums[row][column] = mine.sums[i]; });
  }
  for (int row = 0; row < 16; ++row) {
    for (int term = 0; term < kTerms; ++term) {
      for (int column = 0; column < 8; ++column) {
        sums[row][column] += a[row][term] * b[term][column];
      }
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    Sum results[4];
    for_each_sum(lane, [&](int i, int row, int column) { results[i] = sums[row][column]; });
    std::memcpy(all->results[lane], results, sizeof(results));
  }
}

template <typename Number, typename Sum>
void AddProduct(
    const typename Number::Bits (&a)[4],
    const typename Number::Bits (&b)[2],
    Sum (&sums)[4]) {
  const Operands<typename Number::Bits, Sum> mine = {
      {a[0], a[1], a[2], a[3]}, {b[0], b[1]}, {sums[0], sums[1], sums[2], sums[3]}};
  const emulated_gpu::Exchanged& all =
      emulated_gpu::Exchange(kAllLanes, &mine, sizeof(mine), &Multiply<Number, Sum>);
  std::memcpy(sums, all.results[LaneOfThread()], sizeof(sums));
}

struct Half {
  using Bits = std::uint32_t;
  static constexpr int kEach = 2;
  static float Get(Bits bits, int i) {
    static const std::array<float, 65536>& values = *MakeValues();
    return values[bits >> (16 * i) & 0xFFFFU];
  }

 private:
  static const std::array<float, 65536>* MakeValues() {
    auto* values = new std::array<float, 65536>;
    for (unsigned i = 0; i < values->size(); ++i) {
      (*values)[i] = std::bit_cast<__half>(static_cast<std::uint16_t>(i));
    }
    return values;
  }
};

struct Bfloat16 {
  using Bits = std::uint32_t;
  static constexpr int kEach = 2;
  static float Get(Bits bits, int i) { return std::bit_cast<float>(bits >> (16 * i) << 16U); }
};

struct Tf32 {
  using Bits = std::uint32_t;
  static constexpr int kEach = 1;
  static float Get(Bits bits, int /*i*/) { return std::bit_cast<float>(bits & 0xFFFFE000U); }
};

struct Double {
  using Bits = double;
  static constexpr int kEach = 1;
  static double Get(Bits value, int /*i*/) { return value; }
};

}  // namespace emulated

inline void SynchronizeWarp() {
  const char nothing = 0;
  emulated_gpu::Exchange(emulated::kAllLanes, &nothing, sizeof(nothing));
}

inline void LoadMatrices(unsigned row, std::uint32_t (&to)[4]) {
  const emulated_gpu::Exchanged& all =
      emulated_gpu::Exchange(emulated::kAllLanes, &row, sizeof(row));
  const unsigned lane = emulated::LaneOfThread();
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    to[matrix] =
        emulated::Read<std::uint32_t>(emulated::RowOf(all, matrix, lane / 4) + (lane % 4 * 4));
  }
}

inline void LoadTransposed(unsigned row, std::uint32_t (&to)[4]) {
  emulated::LoadTransposed(row, to);
}

inline void LoadTransposed(unsigned row, std::uint32_t (&to)[2]) {
  emulated::LoadTransposed(row, to);
}

inline void
AddProductOfHalf(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  emulated::AddProduct<emulated::Half>(a, b, sums);
}

inline void
AddProductOfBfloat16(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  emulated::AddProduct<emulated::Bfloat16>(a, b, sums);
}

inline void AddHalfProductOfHalf(const std::uint32_t (&a)[2], std::uint32_t b, float (&sums)[4]) {
  AddProductOfHalf({a[0], a[1], 0, 0}, {b, 0}, sums);
}

inline void
AddHalfProductOfBfloat16(const std::uint32_t (&a)[2], std::uint32_t b, float (&sums)[4]) {
  AddProductOfBfloat16({a[0], a[1], 0, 0}, {b, 0}, sums);
}

inline void
AddProductOfTf32(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  emulated::AddProduct<emulated::Tf32>(a, b, sums);
}

inline void AddProductOfDouble(const double (&a)[4], const double (&b)[2], double (&sums)[4]) {
  emulated::AddProduct<emulated::Double>(a, b, sums);
}

template <int kRegisters>
void TakeRegisters() {}

template <int kRegisters>
void LeaveRegisters() {}

inline void ShowToProducts() {}

inline void BeginProducts() {}

inline void EndOfProducts() {}

template <int kPending>
void WaitForProducts() {}

/// What the emulated products need of it: the address.
inline std::uint64_t ColumnsAt(unsigned address) {
  return address;
}

/// At once, a warp at a time. The chunks of a column's 32 bytes lie where the address has them.
template <int kSums>
void AddWarpgroupProduct(const std::uint32_t (&a)[4], std::uint64_t columns, float (&sums)[kSums]) {
  const emulated_gpu::Exchanged& all = emulated_gpu::Exchange(emulated::kAllLanes, a, sizeof(a));
  const unsigned lane = emulated::LaneOfThread();
  const auto begin = static_cast<unsigned>(columns);
  float rows[2][8];
  for (unsigned term = 0; term < 8; ++term) {
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned of_lane = (lane / 4 * 4) + (term % 4);
      rows[half][term] =
          emulated::Tf32::Get(emulated::Of<std::uint32_t>(all, of_lane, (term / 4 * 2) + half), 0);
    }
  }
  for (unsigned i = 0; i < kSums; i += 4) {
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned column = (i / 4 * 8) + (lane % 4 * 2) + j;
      for (unsigned term = 0; term < 8; ++term) {
        const unsigned plain = begin + (column * 32) + (term * 4);
        const unsigned place = plain ^ ((plain / 128 % 2) * 16);
        const float value =
            emulated::Tf32::Get(emulated::Read<std::uint32_t>(emulated_gpu::SharedAt(place, 4)), 0);
        sums[i + j] += rows[0][term] * value;
        sums[i + 2 + j] += rows[1][term] * value;
      }
    }
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_PTX_CUH_
