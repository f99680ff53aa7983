#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cuda/workspace_arena.h"
#include "runtime/cuda/graph_capture.h"
#include "runtime/cuda/op_problems.h"

/// Workspace that CUDA graphs use: whatever runs beside a graph, and whenever, uses other memory.
namespace gradsmith::cuda {
namespace {

using internal::WorkspaceArena;
using support::DeviceStream;

constexpr std::size_t kSize = 3 << 20;

class CudaGraphWorkspace : public CudaTest {
 protected:
  ContextOptions OptionsFor(CUstream stream) {
    ContextOptions options = OnGpu();
    options.stream = stream;
    options.allocator = allocator_.Get();
    return options;
  }

  /// What a call of so many bytes is lent; null where it is refused.
  static void* Take(WorkspaceArena& arena, std::size_t size = kSize) {
    const Result<WorkspaceArena::Lease> lease = arena.Take(size);
    EXPECT_TRUE(lease.ok()) << lease.status().message();
    return lease.ok() ? lease->address : nullptr;
  }

  /// Captures work that uses what a call of so many bytes is lent, and returns that.
  static void* CaptureUse(CudaGraph& graph, WorkspaceArena& arena, CUstream stream) {
    graph.Begin();
    void* lent = Take(arena);
    EXPECT_EQ(
        Driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(lent), 1, kSize, stream),
        CUDA_SUCCESS);
    EXPECT_TRUE(graph.End().ok());
    return lent;
  }

  /// Does something again and again until it is enough, or minutes have passed.
  template <typename Step, typename IsEnough>
  static void Repeat(const Step& step, const IsEnough& is_enough) {
    constexpr std::chrono::minutes kPatience(5);
    const auto begin = std::chrono::steady_clock::now();
    while (!is_enough() && std::chrono::steady_clock::now() - begin < kPatience) {
      step();
    }
  }

  /// A thread of the driver's tells that a graph has gone, sooner or later; whoever comes next
  /// frees its memory.
  template <typename IsEnough>
  static void LetOthersComeUntil(CUstream stream, const IsEnough& is_enough) {
    const auto come = [stream] {
      const WorkspaceArena arena(OnGpu());
      std::this_thread::yield();
      Driver().cuStreamSynchronize(stream);
    };
    Repeat(come, is_enough);
  }

  void ExpectAllFreed(CUstream stream) {
    LetOthersComeUntil(stream, [this] { return allocator_->live == 0; });
    EXPECT_EQ(allocator_->live, 0U);
  }

  CountingAllocator allocator_;
};

TEST_F(CudaGraphWorkspace, EveryGraphHasItsOwn) {
  const CurrentDevice current(device());
  const DeviceStream stream(device());
  {
    WorkspaceArena arena(OptionsFor(stream.get()));
    CudaGraph first(stream.get());
    CudaGraph second(stream.get());
    const std::set<void*> lent = {
        Take(arena), CaptureUse(first, arena, stream.get()),
        CaptureUse(second, arena, stream.get())};
    EXPECT_EQ(lent.size(), 3U) << "two of a call and two graphs share memory";
    EXPECT_TRUE(lent.contains(Take(arena))) << "calls take new memory after a capture";
    EXPECT_TRUE(first.Launch().ok());
    EXPECT_TRUE(second.Launch().ok());
    EXPECT_EQ(allocator_->frees, 0) << "memory was freed that a graph uses";
  }
  ExpectAllFreed(stream.get());
}

TEST_F(CudaGraphWorkspace, CallsOfACaptureShareIt) {
  const CurrentDevice current(device());
  const DeviceStream stream(device());
  WorkspaceArena arena(OptionsFor(stream.get()));
  CudaGraph graph(stream.get());
  graph.Begin();
  void* lent = Take(arena);
  EXPECT_EQ(Take(arena), lent);
  EXPECT_NE(Take(arena, 8 * kSize), lent) << "more was asked for than there is";
  EXPECT_TRUE(graph.End().ok());
  EXPECT_EQ(allocator_->allocations, 2);
}

TEST_F(CudaGraphWorkspace, IsAsMuchAsOtherCallsNeeded) {
  const CurrentDevice current(device());
  const DeviceStream stream(device());
  WorkspaceArena arena(OptionsFor(stream.get()));
  Take(arena, 8 * kSize);
  CudaGraph graph(stream.get());
  graph.Begin();
  void* lent = Take(arena);
  EXPECT_EQ(Take(arena, 8 * kSize), lent);
  EXPECT_TRUE(graph.End().ok());
}

TEST_F(CudaGraphWorkspace, OutlivesItsContext) {
  const CurrentDevice current(device());
  const DeviceStream stream(device());
  {
    CudaGraph graph(stream.get());
    {
      WorkspaceArena arena(OptionsFor(stream.get()));
      CaptureUse(graph, arena, stream.get());
    }
    const WorkspaceArena another(OnGpu());
    EXPECT_EQ(allocator_->frees, 0) << "memory was freed that a graph uses";
    EXPECT_TRUE(graph.Launch().ok());
  }
  ExpectAllFreed(stream.get());
}

TEST_F(CudaGraphWorkspace, KeepsTheAllocatorsOwner) {
  const CurrentDevice current(device());
  const DeviceStream stream(device());
  std::weak_ptr<const void> owner;
  {
    CudaGraph graph(stream.get());
    {
      WorkspaceArena arena(OptionsFor(stream.get()));
      CaptureUse(graph, arena, stream.get());
    }
    owner = allocator_.Get().owner;
    allocator_ = CountingAllocator();
    EXPECT_FALSE(owner.expired()) << "a graph uses memory that nobody can free";
    EXPECT_TRUE(graph.Launch().ok());
  }
  LetOthersComeUntil(stream.get(), [&owner] { return owner.expired(); });
  EXPECT_TRUE(owner.expired()) << "memory of a graph that has gone is kept";
}

TEST_F(CudaGraphWorkspace, IsFreedWhenTheGraphHasGone) {
  const CurrentDevice current(device());
  const DeviceStream stream(device());
  WorkspaceArena arena(OptionsFor(stream.get()));
  constexpr int kCaptures = 20;
  for (int i = 0; i < kCaptures; ++i) {
    CudaGraph graph(stream.get());
    CaptureUse(graph, arena, stream.get());
    ASSERT_TRUE(graph.Launch().ok());
    Driver().cuStreamSynchronize(stream.get());
  }
  // The context lives on, and what it keeps shrinks to what one more capture takes.
  const auto capture = [&] {
    CudaGraph graph(stream.get());
    CaptureUse(graph, arena, stream.get());
  };
  Repeat(capture, [this] { return allocator_->allocations - allocator_->frees <= 2; });
  EXPECT_LE(allocator_->allocations - allocator_->frees, 2);
}

TEST_F(CudaGraphWorkspace, ASpoiltCaptureIsToldSo) {
  const CurrentDevice current(device());
  const DeviceStream stream(device());
  WorkspaceArena arena(OptionsFor(stream.get()));
  CudaGraph graph(stream.get());
  graph.Begin();
  Driver().cuStreamSynchronize(stream.get());  // no capture allows that
  const Result<WorkspaceArena::Lease> lease = arena.Take(kSize);
  EXPECT_EQ(lease.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(lease.status().message().find("spoilt the capture"), std::string::npos)
      << lease.status().message();
  EXPECT_FALSE(graph.End().ok());
  EXPECT_NE(Take(arena), nullptr);
}

/// Each thread means another stream by CU_STREAM_PER_THREAD, and these do not wait for each other.
TEST_F(CudaGraphWorkspace, ThreadsOfAContextHaveTheirOwnWithTheirStreams) {
  const CurrentDevice current(device());
  WorkspaceArena arena(OptionsFor(CU_STREAM_PER_THREAD));
  void* here = Take(arena);
  void* there = nullptr;
  std::thread([&] {
    const CurrentDevice current_there(device());
    there = Take(arena);
  }).join();
  EXPECT_NE(here, there);
  EXPECT_EQ(Take(arena), here);
}

/// Graphs that were captured on one stream and run on two at once compute what calls compute.
TEST_F(CudaGraphWorkspace, GraphsOfOneStreamRunOnTwoAtOnce) {
  Random random("cuda graphs on two streams");
  const DeviceStream stream(device());
  const DeviceStream other(device());
  ContextOptions options = OnGpu();
  options.stream = stream.get();
  options.deterministic = true;
  auto context = std::make_unique<Context>(options);
  for (const DataType type : kAllTypes) {
    std::vector<OpCall> calls;
    std::vector<std::unique_ptr<CudaGraph>> graphs;
    std::vector<std::vector<std::vector<std::byte>>> expected;
    for (int i = 0; i < 2; ++i) {
      const OpCall& call =
          calls.emplace_back(MakeConvGrad(Conv3x3(), type, Layout::kChannelsLast, random));
      ASSERT_TRUE(call.Run(*context).ok());
      ASSERT_TRUE(Synchronize(*context).ok());
      expected.push_back(call.OutputBytes());
      auto& graph = graphs.emplace_back(std::make_unique<CudaGraph>(stream.get()));
      graph->Begin();
      const Status called = call.Run(*context);
      ASSERT_TRUE(called.ok()) << called.message();
      ASSERT_TRUE(graph->End().ok());
    }
    for (int run = 0; run < 30; ++run) {
      calls[0].ResetOutputs();
      calls[1].ResetOutputs();
      ASSERT_TRUE(graphs[0]->Launch(stream.get()).ok());
      ASSERT_TRUE(graphs[1]->Launch(other.get()).ok());
      Driver().cuStreamSynchronize(stream.get());
      Driver().cuStreamSynchronize(other.get());
      EXPECT_TRUE(calls[0].OutputBytes() == expected[0]) << run << RecentChoices();
      EXPECT_TRUE(calls[1].OutputBytes() == expected[1]) << run << RecentChoices();
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
