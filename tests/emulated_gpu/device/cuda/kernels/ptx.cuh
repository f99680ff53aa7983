#ifndef GRADSMITH_CUDA_KERNELS_PTX_CUH_
#define GRADSMITH_CUDA_KERNELS_PTX_CUH_

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "emulated_gpu/block.h"
#include "emulated_gpu/product.h"

/// What the instructions of runtime/cuda/kernels/ptx.cuh do, from the PTX ISA's description of
/// each.
#define GRADSMITH_HAS_WARPGROUPS 1
#define GRADSMITH_DYNAMIC_SHARED(name) \
  auto* name = reinterpret_cast<uint4*>(emulated_gpu::dynamic_shared.begin)

namespace gradsmith::cuda {

inline unsigned SharedAddress(const void* shared) {
  return emulated_gpu::SharedAddressOf(shared);
}

inline float LoadShared(unsigned address) {
  float value = 0;
  std::memcpy(&value, emulated_gpu::SharedAt<sizeof(float)>(address), sizeof(float));
  return value;
}

template <std::size_t kCount>
void LoadShared(unsigned address, std::uint32_t (&bits)[kCount]) {
  std::memcpy(bits, emulated_gpu::SharedAt<sizeof(bits)>(address), sizeof(bits));
}

template <std::size_t kCount>
void StoreShared(unsigned address, const std::uint32_t (&bits)[kCount]) {
  std::memcpy(emulated_gpu::SharedAt<sizeof(bits)>(address), bits, sizeof(bits));
}

inline void StoreShared(unsigned address, const float (&values)[4]) {
  std::memcpy(emulated_gpu::SharedAt<sizeof(values)>(address), values, sizeof(values));
}

inline float Exp2Approximately(float x) {
  return std::exp2(x);
}

inline float NormalExp2Approximately(float x) {
  const float power = std::exp2(x);
  return std::fpclassify(power) == FP_SUBNORMAL ? 0 : power;
}

inline float ReciprocalApproximately(float x) {
  return 1 / x;
}

/// As with the instruction, only the higher half of the result's bits is right.
inline double ReciprocalApproximately(double x) {
  constexpr std::uint64_t kLower = 0xFFFFFFFF;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1 / x) & ~kLower);
}

inline float DivideApproximately(float a, float b) {
  return a / b;
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
  emulated_gpu::BeginCopy(to, from, 16, exists ? 16 : 0);
}

template <int kBytes>
void BeginCopyOfLine(unsigned to, const void* from, bool exists) {
  emulated_gpu::BeginCopy(to, from, kBytes, exists ? kBytes : 0);
}

template <int kBytes>
void BeginCopyOfPart(unsigned to, const void* from, int read) {
  emulated_gpu::BeginCopy(to, from, kBytes, read);
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

inline void SynchronizeWarps(int barrier, int threads) {
  emulated_gpu::SyncSome(static_cast<unsigned>(barrier), static_cast<unsigned>(threads));
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

/// The row of the matrix that a lane has of what the lanes' addresses lead to.
inline const std::byte* RowOf(const emulated_gpu::Exchanged& all, unsigned matrix, unsigned row) {
  return emulated_gpu::Given<const std::byte*>(all, (8 * matrix) + row);
}

/// Exchanges the addresses of so many matrices' rows, of which each of the first lanes has one.
template <int kMatrices>
const emulated_gpu::Exchanged& ExchangeRows(unsigned row) {
  const std::byte* const at =
      LaneOfThread() < 8 * kMatrices ? emulated_gpu::SharedAt<16>(row) : nullptr;
  return emulated_gpu::Exchange(kAllLanes, at);
}

template <int kMatrices>
void LoadTransposed(unsigned row, std::uint32_t (&to)[kMatrices]) {
  const emulated_gpu::Exchanged& all = ExchangeRows<kMatrices>(row);
  const unsigned lane = LaneOfThread();
  for (unsigned matrix = 0; matrix < kMatrices; ++matrix) {
    to[matrix] = 0;
    for (unsigned i = 0; i < 2; ++i) {
      const std::byte* from = RowOf(all, matrix, (lane % 4 * 2) + i) + (lane / 4 * 2);
      to[matrix] |= std::uint32_t{Read<std::uint16_t>(from)} << (16 * i);
    }
  }
}

/// Gives a lane's part of 8 pairs of registers, each of which holds Number::kEach numbers, and
/// takes its part of the sums.
template <typename Number>
void AddProduct(
    const typename Number::Bits (&a)[4],
    const typename Number::Bits (&b)[2],
    typename Number::Sum (&sums)[4]) {
  using Product = emulated_gpu::Product<Number>;
  auto* const product = reinterpret_cast<Product*>(
      emulated_gpu::BeginExchange(kAllLanes, &emulated_gpu::MultiplyGiven<Product>)->bytes);
  const unsigned lane = LaneOfThread();
  const unsigned row = lane / 4;
  const unsigned column = lane % 4 * 2;
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned place = (lane % 4) + (4 * half);
    product->a[row][place] = a[2 * half];
    product->a[row + 8][place] = a[(2 * half) + 1];
    product->b[place][row] = b[half];
  }
  for (unsigned i = 0; i < 4; ++i) {
    product->sums[row + (i / 2 * 8)][column + (i % 2)] = sums[i];
  }
  emulated_gpu::EndExchange();
  for (unsigned i = 0; i < 4; ++i) {
    sums[i] = product->sums[row + (i / 2 * 8)][column + (i % 2)];
  }
}

}  // namespace emulated

inline void SynchronizeWarp() {
  emulated_gpu::BeginExchange(emulated::kAllLanes);
  emulated_gpu::EndExchange();
}

inline void LoadMatrices(unsigned row, std::uint32_t (&to)[4]) {
  const emulated_gpu::Exchanged& all = emulated::ExchangeRows<4>(row);
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
  emulated::AddProduct<emulated_gpu::Half>(a, b, sums);
}

inline void
AddProductOfBfloat16(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
  emulated::AddProduct<emulated_gpu::Bfloat16>(a, b, sums);
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
  emulated::AddProduct<emulated_gpu::Tf32>(a, b, sums);
}

inline void AddProductOfDouble(const double (&a)[4], const double (&b)[2], double (&sums)[4]) {
  emulated::AddProduct<emulated_gpu::Double>(a, b, sums);
}

inline void InitBarrier(unsigned barrier, int arrivals) {
  emulated_gpu::InitBarrier(barrier, arrivals);
}

inline void ShowBarriers() {}

inline void Arrive(unsigned barrier) {
  emulated_gpu::Arrive(barrier, 0);
}

inline void ArriveBeforeCopies(unsigned barrier, int bytes) {
  emulated_gpu::Arrive(barrier, bytes);
}

inline void WaitForPhase(unsigned barrier, int parity) {
  emulated_gpu::WaitForPhase(barrier, parity);
}

inline void BeginBulkCopy(unsigned to, const void* from, int bytes, unsigned barrier) {
  emulated_gpu::BeginBulkCopy(to, from, bytes, barrier);
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

/// The product is made at once, by a warp at a time. The chunks of a column's 32 bytes lie where
/// the address has them.
template <int kSums>
void AddWarpgroupProduct(const std::uint32_t (&a)[4], std::uint64_t columns, float (&sums)[kSums]) {
  using Chunk = std::array<std::uint32_t, 4>;
  const emulated_gpu::Exchanged& all =
      emulated_gpu::Exchange(emulated::kAllLanes, std::bit_cast<Chunk>(a));
  const unsigned lane = emulated::LaneOfThread();
  const auto begin = static_cast<unsigned>(columns);
  float rows[2][8];
  for (unsigned term = 0; term < 8; ++term) {
    const auto given = emulated_gpu::Given<Chunk>(all, (lane / 4 * 4) + (term % 4));
    for (unsigned half = 0; half < 2; ++half) {
      rows[half][term] = emulated_gpu::Tf32::Get(given[(term / 4 * 2) + half], 0);
    }
  }
  for (unsigned i = 0; i < kSums; i += 4) {
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned column = (i / 4 * 8) + (lane % 4 * 2) + j;
      for (unsigned term = 0; term < 8; term += 4) {
        const unsigned plain = begin + (column * 32) + (term * 4);
        const unsigned place = plain ^ ((plain / 128 % 2) * 16);
        const auto chunk = emulated::Read<Chunk>(emulated_gpu::SharedAt<sizeof(Chunk)>(place));
        for (unsigned k = 0; k < 4; ++k) {
          const float value = emulated_gpu::Tf32::Get(chunk[k], 0);
          sums[i + j] += rows[0][term + k] * value;
          sums[i + 2 + j] += rows[1][term + k] * value;
        }
      }
    }
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_PTX_CUH_
