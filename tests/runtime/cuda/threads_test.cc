#include <gtest/gtest.h>

#include <cstddef>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/thread_state.h"
#include "runtime/cuda/op_problems.h"

/// Calls from many host threads.
namespace gradsmith::cuda {
namespace {

using Bytes = std::vector<std::vector<std::byte>>;

class CudaThreads : public CudaTest {
 protected:
  static constexpr int kThreads = 16;
  static constexpr int kCalls = 100;

  /// Every thread makes the same calls with tensors of its own.
  static std::vector<OpCall> MakeCalls() {
    Random random("cuda threads");
    std::vector<OpCall> calls;
    for (const DataType type : kAllTypes) {
      calls.push_back(MakeConvGrad(Conv3x3(), type, Layout::kContiguous, random));
      calls.push_back(MakeConvGrad(ConvGrouped(), type, Layout::kChannelsLast, random));
      calls.push_back(MakeConv(Conv1x1(), type, Layout::kChannelsLast, random));
      calls.push_back(MakeConvTransposeGrad(Conv3x3(), type, Layout::kContiguous, random));
      calls.push_back(MakeBatchNorm({4, 8, 7, 6}, type, Layout::kChannelsLast, random));
      calls.push_back(MakeBatchNormGrad({4, 8, 7, 6}, type, Layout::kContiguous, random));
    }
    return calls;
  }
  static ContextOptions Deterministic() {
    ContextOptions options = OnGpu();
    options.deterministic = true;
    return options;
  }
  static Status Finish(const OpCall& call, const Context& context) {
    const Status status = call.Run(context);
    return status.ok() ? Synchronize(context) : status;
  }

  /// Runs `work(thread)` in so many threads, which start together.
  template <typename Work>
  void InThreads(int count, const Work& work) {
    std::latch start(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        const CurrentDevice current(device());
        start.arrive_and_wait();
        work(i);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  /// One thread's part; the first difference is reported, and ends it.
  static void CallMany(
      int thread,
      const std::vector<OpCall>& calls,
      const Context& context,
      const std::vector<Bytes>& expected) {
    for (int i = 0; i < kCalls; ++i) {
      const std::size_t chosen = static_cast<std::size_t>((i * 7) + thread) % calls.size();
      const OpCall& call = calls[chosen];
      call.ResetOutputs();
      const Status status = Finish(call, context);
      const std::string doing = "thread " + std::to_string(thread) + ", call " + std::to_string(i) +
                                ", " + call.Describe();
      if (!status.ok()) {
        ADD_FAILURE() << doing << ": " << status.message();
        return;
      }
      if (const Bytes bytes = call.OutputBytes(); bytes != expected[chosen]) {
        for (std::size_t output = 0; output < bytes.size(); ++output) {
          EXPECT_TRUE(bytes[output] == expected[chosen][output])
              << doing << ": output " << output << " has other bits than alone"
              << RecentChoices(24);
        }
        return;
      }
    }
  }

  std::vector<Bytes> Alone() {
    const Context context(Deterministic());
    std::vector<Bytes> expected;
    for (const OpCall& call : MakeCalls()) {
      const Status status = Finish(call, context);
      EXPECT_TRUE(status.ok()) << call.Describe() << ": " << status.message();
      call.ExpectResults("alone");
      expected.push_back(call.OutputBytes());
    }
    return expected;
  }
};

TEST_F(CudaThreads, SharedContext) {
  const std::vector<Bytes> expected = Alone();
  const Context context(Deterministic());
  InThreads(kThreads, [&](int thread) { CallMany(thread, MakeCalls(), context, expected); });
}

TEST_F(CudaThreads, SharedContextOnItsOwnStream) {
  const std::vector<Bytes> expected = Alone();
  const support::DeviceStream stream(device());
  ContextOptions options = Deterministic();
  options.stream = stream.get();
  const Context context(options);
  InThreads(kThreads, [&](int thread) { CallMany(thread, MakeCalls(), context, expected); });
}

TEST_F(CudaThreads, ContextAndStreamPerThread) {
  const std::vector<Bytes> expected = Alone();
  InThreads(kThreads, [&](int thread) {
    const support::DeviceStream stream(device());
    ContextOptions options = Deterministic();
    options.stream = stream.get();
    const Context context(options);
    CallMany(thread, MakeCalls(), context, expected);
  });
}

/// New problems that all threads meet at once, and nothing remembered.
TEST_F(CudaThreads, NothingRememberedAtFirst) {
  const std::vector<Bytes> expected = Alone();
  ASSERT_TRUE(ClearCache().ok());
  const Context context(Deterministic());
  InThreads(kThreads, [&](int thread) { CallMany(thread, MakeCalls(), context, expected); });
}

TEST_F(CudaThreads, EachProblemIsSearchedOnce) {
  std::mutex mutex;
  std::map<std::string, int> searches;
  ContextOptions options = OnGpu(SearchMode::kBenchmark, 1);
  options.on_search_progress = [&](const SearchProgress& progress) {
    if (progress.tried == 1) {
      const std::scoped_lock lock(mutex);
      ++searches[progress.problem];
    }
  };
  const Context context(options);
  InThreads(kThreads, [&](int thread) {
    Random random("cuda threads once");
    for (int i = 0; i < 2; ++i) {
      const ConvShape shape = (thread + i) % 2 == 0 ? Conv3x3() : Conv1x1();
      const OpCall call = MakeConvGrad(shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
      const Status status = Finish(call, context);
      EXPECT_TRUE(status.ok()) << status.message();
      call.ExpectResults("thread " + std::to_string(thread));
    }
  });
  EXPECT_EQ(searches.size(), 6U);  // of each shape both gradients, and how they go together
  for (const auto& [problem, count] : searches) {
    EXPECT_EQ(count, 1) << problem;
  }
}

TEST_F(CudaThreads, NewThreadsTakeOverPlans) {
  std::set<const ThreadState*> states;
  std::vector<std::size_t> plans;
  for (int i = 0; i < 4; ++i) {
    InThreads(1, [&](int) {
      Random random("cuda threads reuse");
      const Context context(OnGpu());
      const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
      ThreadState& state = ThreadState::OfThisThread(device());
      const std::size_t before = state.plans().size();
      const Status status = Finish(call, context);
      EXPECT_TRUE(status.ok()) << status.message();
      call.ExpectResults("thread " + std::to_string(i));
      states.insert(&state);
      plans.push_back(state.plans().size() - before);
    });
  }
  EXPECT_EQ(states.size(), 1U) << "threads that follow each other share their plans";
  for (std::size_t i = 1; i < plans.size(); ++i) {
    EXPECT_EQ(plans[i], 0U) << "thread " << i << " made plans that were there";
  }
}

/// Threads that come and go while others call.
TEST_F(CudaThreads, ComeAndGo) {
  const std::vector<Bytes> expected = Alone();
  const Context context(Deterministic());
  InThreads(4, [&](int thread) {
    for (int i = 0; i < 6; ++i) {
      std::thread([&] {
        const CurrentDevice current(device());
        const std::vector<OpCall> calls = MakeCalls();
        for (std::size_t chosen = 0; chosen < calls.size(); chosen += 3) {
          const OpCall& call = calls[chosen];
          const Status status = Finish(call, context);
          EXPECT_TRUE(status.ok()) << status.message();
          EXPECT_TRUE(call.OutputBytes() == expected[chosen])
              << "thread " << thread << "." << i << ", " << call.Describe();
        }
      }).join();
    }
  });
}

}  // namespace
}  // namespace gradsmith::cuda
