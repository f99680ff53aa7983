#include <cuda.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulated_gpu/block.h"
#include "emulated_gpu/device.h"
#include "emulated_gpu/kernel.h"

/// That the emulated GPU runs right kernels and notices wrong ones, and wrong uses of the driver.
namespace emulated_gpu {
namespace {

constexpr unsigned kThreads = 64;
constexpr std::array<Order, 3> kOrders = {Order::kForward, Order::kBackward, Order::kShuffled};

const Kernel& KernelOf(std::string_view name) {
  const auto found = std::find_if(Kernels().begin(), Kernels().end(), [&](const Kernel* kernel) {
    return kernel->name == name;
  });
  if (found == Kernels().end()) {
    Fail("there is no kernel %s", std::string(name).c_str());
  }
  return **found;
}

struct Shape {
  unsigned shared_bytes = 0;
  unsigned threads = kThreads;
  bool cooperative = false;
};

template <typename... Arguments>
void RunKernel(const char* name, Order order, Shape shape, Arguments... arguments) {
  std::array<void*, sizeof...(Arguments)> pointers = {&arguments...};
  const Kernel& kernel = KernelOf(name);
  const auto thread = kernel.bind(pointers.data());
  Run({name,
       kernel.address,
       {2, 1, 1},
       {shape.threads, 1, 1},
       shape.shared_bytes,
       thread,
       shape.cooperative},
      order);
}

/// What each thread of a kernel got from its neighbour is right in every order.
bool AreNeighbours(const char* kernel, int step) {
  bool are = true;
  for (const Order order : kOrders) {
    std::vector<int> got(kThreads, -1);
    RunKernel(kernel, order, {}, step, got.data());
    for (int i = 0; i < static_cast<int>(kThreads); ++i) {
      are = are && got[i] == (i + step + static_cast<int>(kThreads)) % static_cast<int>(kThreads);
    }
  }
  return are;
}

TEST(EmulatedGpu, AMissingBarrierIsSeenInSomeOrder) {
  for (const int step : {1, -1, 5}) {
    EXPECT_TRUE(AreNeighbours("test_neighbours", step)) << step;
    EXPECT_FALSE(AreNeighbours("test_neighbours_without_barrier", step)) << step;
  }
}

/// The threads of two blocks, as they came.
std::vector<int> ThreadsIn(Order order) {
  int count = 0;
  std::vector<int> threads(std::size_t{2} * kThreads);
  RunKernel("test_order", order, {}, &count, threads.data());
  return threads;
}

TEST(EmulatedGpu, ThreadsComeInTheOrderThatIsAskedFor) {
  std::vector<int> expected(std::size_t{2} * kThreads);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(ThreadsIn(Order::kForward), expected);
  const std::vector<int> shuffled = ThreadsIn(Order::kShuffled);
  EXPECT_NE(shuffled, expected);
  EXPECT_TRUE(std::is_permutation(shuffled.begin(), shuffled.end(), expected.begin()));
  // Blocks are shuffled too, but their threads also without.
  EXPECT_FALSE(std::is_sorted(shuffled.begin(), shuffled.begin() + kThreads));
  EXPECT_FALSE(std::is_sorted(shuffled.begin(), shuffled.begin() + kThreads, std::greater<int>()));
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(ThreadsIn(Order::kBackward), expected);
  EXPECT_NE(shuffled, expected);
}

/// Whether what was copied is there, in every order.
bool IsCopied(int waits) {
  std::vector<std::uint64_t> from(2 * kThreads);
  std::iota(from.begin(), from.end(), 100);
  bool is = true;
  for (const Order order : kOrders) {
    alignas(16) std::array<std::uint64_t, 2 * kThreads> to{};
    RunKernel(
        "test_copy", order, {.shared_bytes = 2 * kThreads * 16},
        static_cast<const uint4*>(static_cast<const void*>(from.data())),
        static_cast<uint4*>(static_cast<void*>(to.data())), waits);
    is = is && std::equal(from.begin(), from.end(), to.begin());
  }
  return is;
}

TEST(EmulatedGpu, CopiesAreThereOnceTheyAreWaitedFor) {
  EXPECT_TRUE(IsCopied(1));
  EXPECT_FALSE(IsCopied(2)) << "two groups may be under way, and there were two";
  EXPECT_FALSE(IsCopied(0));
}

TEST(EmulatedGpu, ACopyOfNothingIsZero) {
  for (const Order order : kOrders) {
    alignas(16) std::array<std::uint64_t, 2 * kThreads> to{};
    to.fill(1);
    RunKernel(
        "test_copy_of_nothing", order, {.shared_bytes = kThreads * 16},
        static_cast<uint4*>(static_cast<void*>(to.data())));
    EXPECT_EQ(std::count(to.begin(), to.end(), 0), to.size());
  }
}

TEST(EmulatedGpu, CopiesBeyondSharedMemoryAndMisalignedOnesEndTheProcess) {
  alignas(16) std::array<char, 64> from{};
  const auto copy = [&](std::size_t offset, unsigned shared_bytes) {
    RunKernel(
        "test_copy_beyond", Order::kForward, {.shared_bytes = shared_bytes},
        static_cast<const uint4*>(static_cast<const void*>(from.data() + offset)));
  };
  copy(0, 65 * 16);
  EXPECT_DEATH(copy(0, 64 * 16), "16 bytes at 1024 of 1024 bytes of shared memory");
  EXPECT_DEATH(copy(8, 65 * 16), "not aligned to 16 bytes");
}

/// Whether what was copied in bulk is there, in every order.
bool IsCopiedInBulk(bool waits) {
  alignas(16) std::array<std::uint64_t, 4 * kThreads> from{};
  std::iota(from.begin(), from.end(), 100);
  bool is = true;
  for (const Order order : kOrders) {
    alignas(16) std::array<std::uint64_t, 4 * kThreads> to{};
    RunKernel(
        "test_bulk_copy", order, {.shared_bytes = (kThreads + 1) * 16},
        static_cast<const uint4*>(static_cast<const void*>(from.data())),
        static_cast<uint4*>(static_cast<void*>(to.data())), waits);
    is = is && from == to;
  }
  return is;
}

TEST(EmulatedGpu, BulkCopiesAreThereOnceTheirPhaseHasEnded) {
  EXPECT_TRUE(IsCopiedInBulk(true));
  EXPECT_FALSE(IsCopiedInBulk(false));
}

TEST(EmulatedGpu, APhaseThatDoesNotEndAndCopiesThatAreLeftEndTheProcess) {
  alignas(16) std::array<char, 16> from{};
  EXPECT_DEATH(
      RunKernel("test_missing_arrival", Order::kForward, {.shared_bytes = 16}),
      "wait for each other");
  EXPECT_DEATH(
      RunKernel(
          "test_bulk_copy_left", Order::kForward, {.shared_bytes = 65 * 16},
          static_cast<const uint4*>(static_cast<const void*>(from.data()))),
      "a block ends before copies to its shared memory have");
}

TEST(EmulatedGpu, AMisalignedLoadEndsTheProcess) {
  alignas(16) std::array<char, 64> from{};
  std::vector<int> to(kThreads);
  const auto load = [&](long long at) {
    RunKernel(
        "test_load_word", Order::kForward, {}, static_cast<const char*>(from.data()), at,
        to.data());
  };
  load(4);
  EXPECT_DEATH(load(2), "");
}

TEST(EmulatedGpu, ThreadsThatWaitForEachOtherEndTheProcess) {
  EXPECT_DEATH(RunKernel("test_deadlock", Order::kForward, {}), "wait for each other: 32 of 64");
}

TEST(EmulatedGpu, SomeWarpsWaitForEachOther) {
  constexpr int kTwice = 2 * static_cast<int>(kThreads);
  for (const Order order : kOrders) {
    std::vector<int> seen(kTwice, -1);
    RunKernel("test_some_warps", order, {.threads = kTwice}, seen.data());
    for (int thread = 0; thread < kTwice; ++thread) {
      EXPECT_EQ(seen[thread], thread ^ 32);
    }
  }
}

TEST(EmulatedGpu, WarpsThatWaitForOthersInVainEndTheProcess) {
  EXPECT_DEATH(RunKernel("test_missing_warp", Order::kForward, {}), "wait for each other");
  EXPECT_DEATH(
      RunKernel("test_barrier_of_two_sizes", Order::kForward, {}),
      "threads come to barrier 1 for 64 and 32");
}

constexpr Shape kTogether = {.shared_bytes = 16, .cooperative = true};

/// What the threads of two blocks see: a hundred for each block that has counted, and their own.
std::vector<int> SeenBy(const char* kernel, Order order) {
  int count = 0;
  std::vector<int> seen(std::size_t{2} * kThreads);
  RunKernel(kernel, order, kTogether, &count, seen.data());
  return seen;
}

TEST(EmulatedGpu, BlocksWaitForEachOtherAndKeepTheirSharedMemory) {
  std::vector<int> expected(kThreads, 200);
  expected.resize(std::size_t{2} * kThreads, 201);
  for (const Order order : kOrders) {
    EXPECT_EQ(SeenBy("test_grid", order), expected);
    EXPECT_NE(SeenBy("test_grid_without_barrier", order), expected);
  }
}

TEST(EmulatedGpu, BlocksThatWaitInVainEndTheProcess) {
  EXPECT_DEATH(
      RunKernel("test_grid_deadlock", Order::kForward, kTogether),
      "1 of 2 blocks wait at a barrier of the grid");
  EXPECT_DEATH(
      RunKernel("test_grid_or_block", Order::kForward, kTogether),
      "32 of 64 at __syncthreads, 32 at a barrier of the grid");
  EXPECT_DEATH(
      RunKernel("test_grid_deadlock", Order::kForward, {}), "the launch was not cooperative");
}

TEST(EmulatedGpu, LanesExchange) {
  for (const Order order : kOrders) {
    std::vector<int> sums(2 * kThreads);
    std::vector<unsigned> votes(kThreads);
    RunKernel("test_warp", order, {}, sums.data(), votes.data());
    for (int lane = 0; lane < 64; ++lane) {
      const int first = lane / 32 * 32;
      if (lane == first) {
        EXPECT_EQ(sums[lane], (32 * first) + (31 * 16));
      }
      EXPECT_EQ(sums[64 + lane], lane ^ 3);
      // Lane 0 of the second warp is thread 32: thread 33 is the first that three divides.
      EXPECT_EQ(votes[lane], first == 0 ? 0x49249249U : 0x92492492U);
    }
  }
}

TEST(EmulatedGpu, LanesExchangeWithinGroups) {
  for (const Order order : kOrders) {
    std::vector<int> values(2 * kThreads);
    RunKernel("test_groups", order, {}, values.data());
    for (int lane = 0; lane < 64; ++lane) {
      EXPECT_EQ(values[lane], lane % 8 < 5 ? lane + 3 : lane);
      EXPECT_EQ(values[64 + lane], lane / 8 * 8);
    }
  }
}

TEST(EmulatedGpu, LanesNameEachOther) {
  std::vector<unsigned> votes(kThreads);
  const auto vote = [&](unsigned even, unsigned odd) {
    RunKernel("test_lanes", Order::kForward, {}, even, odd, votes.data());
  };
  vote(~0U, ~0U);
  EXPECT_EQ(votes, std::vector<unsigned>(kThreads, ~0U));
  EXPECT_DEATH(vote(0x55555555U, 0xAAAAAAAAU), "lanes of a warp name 55555555 and aaaaaaaa");
  EXPECT_DEATH(vote(~0U, 0x55555555U), "lanes of a warp name ffffffff and 55555555");
  EXPECT_DEATH(vote(0xAAAAAAAAU, 0xAAAAAAAAU), "lane 0 is not among those that it names");
}

TEST(EmulatedGpu, LanesMeetInOneInstruction) {
  EXPECT_DEATH(
      RunKernel("test_two_instructions", Order::kForward, {.threads = 32}),
      "lanes of a warp meet in different instructions");
}

TEST(EmulatedGpu, MatricesAreReadByRowsAndByColumns) {
  alignas(16) std::array<std::uint16_t, 4 * 64> from{};  // matrix, row, column
  std::iota(from.begin(), from.end(), std::uint16_t{0});
  std::vector<std::uint32_t> plain(128);
  std::vector<std::uint32_t> transposed(128);
  RunKernel(
      "test_matrices", Order::kShuffled, {.shared_bytes = 512, .threads = 32},
      static_cast<const uint4*>(static_cast<const void*>(from.data())), plain.data(),
      transposed.data());
  const auto pair = [](unsigned low, unsigned high) { return low | high << 16U; };
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      const unsigned line = lane / 4;
      const unsigned place = lane % 4 * 2;
      const unsigned row = (64 * matrix) + (8 * line) + place;
      const unsigned column = (64 * matrix) + (8 * place) + line;
      EXPECT_EQ(plain[(4 * lane) + matrix], pair(row, row + 1));
      EXPECT_EQ(transposed[(4 * lane) + matrix], pair(column, column + 8));
    }
  }
}

TEST(EmulatedGpu, TensorCoresMultiply) {
  alignas(16) std::array<__half, 16 * 16> a{};
  alignas(16) std::array<__half, 8 * 16> b{};  // by columns
  const auto of_a = [](int row, int term) { return static_cast<float>((row * 5 + term * 3) % 7); };
  const auto of_b = [](int column, int term) {
    return static_cast<float>((column + term) % 4) - 1;
  };
  for (int i = 0; i < 256; ++i) {
    a.at(i) = of_a(i / 16, i % 16);
  }
  for (int i = 0; i < 128; ++i) {
    b.at(i) = of_b(i / 16, i % 16);
  }
  std::vector<float> sums(16 * 8);
  RunKernel(
      "test_half_product", Order::kShuffled, {.shared_bytes = 1024, .threads = 32},
      static_cast<const uint4*>(static_cast<const void*>(a.data())),
      static_cast<const uint4*>(static_cast<const void*>(b.data())), sums.data());
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float expected = 1;
      for (int term = 0; term < 16; ++term) {
        expected += of_a(row, term) * of_b(column, term);
      }
      EXPECT_EQ(sums[(row * 8) + column], expected) << row << ", " << column;
    }
  }
}

TEST(EmulatedGpu, TensorCoresCutFloatsOff) {
  constexpr float kLastBit = 0x1p-10F;  // of a number in TF32 from 1 to 2
  const auto product = [](float a, float b) {
    std::vector<float> sums(128);
    RunKernel("test_tf32_product", Order::kForward, {.threads = 32}, a, b, sums.data());
    EXPECT_EQ(std::count(sums.begin(), sums.end(), sums[0]), sums.size());
    return sums[0];
  };
  EXPECT_EQ(product(3, 5), 15);
  EXPECT_EQ(product(1 + kLastBit, 1), 1 + kLastBit);
  EXPECT_EQ(product(1 + (kLastBit * 0.75F), 1), 1);
  EXPECT_EQ(product(1, -1 - (kLastBit * 0.75F)), -1);
}

// ------------------------------------------------------------------------------------------------
// The driver
// ------------------------------------------------------------------------------------------------

class EmulatedDriver : public testing::Test {
 protected:
  void SetUp() override {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    for (CUstream& stream : streams_) {
      ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    for (CUevent& event : events_) {
      ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    }
  }

  void TearDown() override {
    for (CUstream stream : streams_) {
      cuStreamDestroy(stream);
    }
    for (CUevent event : events_) {
      cuEventDestroy(event);
    }
  }

  static CUresult Launch(
      const char* name,
      unsigned threads,
      unsigned shared_bytes,
      CUstream stream,
      void** arguments) {
    const Kernel& kernel = KernelOf(name);
    return cuLaunchKernel(
        reinterpret_cast<CUfunction>(const_cast<Kernel*>(&kernel)), 1, 1, 1, threads, 1, 1,
        shared_bytes, stream, arguments, nullptr);
  }

  static CUdeviceptr Allocate(std::size_t size) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, size), CUDA_SUCCESS);
    return address;
  }

  void WriteAt(CUdeviceptr to, long long at, CUstream stream = nullptr) {
    std::array<void*, 2> arguments = {&to, &at};
    EXPECT_EQ(Launch("test_write_at", kThreads, 0, stream, arguments.data()), CUDA_SUCCESS);
  }

  /// One stream forks to the other, and each sets a byte; `joins`: they come together again.
  CUresult Capture(std::uint8_t* byte, bool joins, CUgraph* graph) {
    auto [stream, other] = streams_;
    const auto address = reinterpret_cast<CUdeviceptr>(byte);
    EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    EXPECT_EQ(cuEventRecord(events_[0], stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamWaitEvent(other, events_[0], 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(address, 1, 1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(address, 2, 1, other), CUDA_SUCCESS);
    if (joins) {
      EXPECT_EQ(cuEventRecord(events_[1], other), CUDA_SUCCESS);
      EXPECT_EQ(cuStreamWaitEvent(stream, events_[1], 0), CUDA_SUCCESS);
    }
    return cuStreamEndCapture(stream, graph);
  }

  std::array<CUstream, 2> streams_{};
  std::array<CUevent, 2> events_{};
};

TEST_F(EmulatedDriver, MemoryIsPoisonedAndItsEndIsWatched) {
  const CUdeviceptr memory = Allocate(300);
  EXPECT_EQ(*reinterpret_cast<const std::uint8_t*>(memory), 0xFF);
  WriteAt(memory, 299);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr other = Allocate(300);
  EXPECT_DEATH(WriteAt(other, 512), "");
  EXPECT_DEATH(
      {
        WriteAt(other, 300);
        cuMemFree(other);
      },
      "300 bytes of memory were allocated, and byte 300 was written");
  EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
  CUdeviceptr none = 0;
  EXPECT_EQ(cuMemAlloc(&none, kMemoryBytes + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(EmulatedDriver, EveryLaunchFollowsTheOrderOfTheEnvironment) {
  const CUdeviceptr count = Allocate(sizeof(int));
  const CUdeviceptr threads = Allocate(kThreads * sizeof(int));
  const auto* order = reinterpret_cast<const int*>(threads);
  for (int launch = 0; launch < 3; ++launch) {
    std::array<CUdeviceptr, 2> values = {count, threads};
    std::array<void*, 2> arguments = {&values[0], &values[1]};
    ASSERT_EQ(cuMemsetD8Async(count, 0, sizeof(int), nullptr), CUDA_SUCCESS);
    ASSERT_EQ(Launch("test_order", kThreads, 0, nullptr, arguments.data()), CUDA_SUCCESS);
    const bool is_forward = std::is_sorted(order, order + kThreads);
    const bool is_backward = std::is_sorted(order, order + kThreads, std::greater<int>());
    EXPECT_EQ(is_forward, OrderOfEnvironment() == Order::kForward) << launch;
    EXPECT_EQ(is_backward, OrderOfEnvironment() == Order::kBackward) << launch;
  }
  EXPECT_EQ(cuMemFree(count), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(threads), CUDA_SUCCESS);
}

TEST_F(EmulatedDriver, LaunchesThatNoGpuTakesAreRefused) {
  CUdeviceptr memory = Allocate(1);
  long long at = 0;
  std::array<void*, 2> arguments = {&memory, &at};
  const auto launch = [&](unsigned threads, unsigned shared_bytes) {
    return Launch("test_write_at", threads, shared_bytes, nullptr, arguments.data());
  };
  EXPECT_EQ(launch(64, 48 * 1024), CUDA_SUCCESS);
  EXPECT_EQ(launch(64, (48 * 1024) + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(128, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(129, 0), CUDA_ERROR_INVALID_VALUE) << "beyond the kernel's launch bounds";
  EXPECT_EQ(launch(0, 0), CUDA_ERROR_INVALID_VALUE);
  CUcontext second = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
  EXPECT_EQ(
      Launch("test_write_at", 64, 0, streams_[0], arguments.data()), CUDA_ERROR_INVALID_HANDLE)
      << "a stream of another device";
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(launch(64, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
}

TEST_F(EmulatedDriver, MoreBlocksThanCanWaitForEachOtherAreRefused) {
  CUdeviceptr memory = Allocate(1);
  long long at = 0;
  std::array<void*, 2> arguments = {&memory, &at};
  const auto launch = [&](unsigned blocks) {
    const Kernel& kernel = KernelOf("test_write_at");
    return cuLaunchCooperativeKernel(
        reinterpret_cast<CUfunction>(const_cast<Kernel*>(&kernel)), blocks, 1, 1, kThreads, 1, 1, 0,
        nullptr, arguments.data());
  };
  EXPECT_EQ(launch(3), CUDA_SUCCESS);
  EXPECT_EQ(launch((kMostTogether / kThreads) + 1), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
}

TEST_F(EmulatedDriver, ACaptureRunsWhenItIsLaunched) {
  std::uint8_t byte = 0;
  CUgraph graph = nullptr;
  ASSERT_EQ(Capture(&byte, true, &graph), CUDA_SUCCESS);
  EXPECT_EQ(byte, 0);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  // What no branch waits for comes in either order; the last one is seen.
  std::set<int> seen;
  for (int run = 0; run < 64; ++run) {
    EXPECT_EQ(cuGraphLaunch(exec, streams_[0]), CUDA_SUCCESS);
    seen.insert(byte);
  }
  const Order order = OrderOfEnvironment();
  EXPECT_EQ(
      seen, order == Order::kForward    ? std::set<int>({2})
            : order == Order::kBackward ? std::set<int>({1})
                                        : std::set<int>({1, 2}));
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(EmulatedDriver, ABranchThatNobodyWaitsForSpoilsACapture) {
  std::uint8_t byte = 0;
  CUgraph graph = nullptr;
  EXPECT_EQ(Capture(&byte, false, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(EmulatedDriver, WhatACaptureForbidsSpoilsIt) {
  CUstream stream = streams_[0];
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
}

}  // namespace
}  // namespace emulated_gpu
