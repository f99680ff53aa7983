#include "core/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/thread_pool.h"
#include "gradsmith/context.h"

/// The address sanitizer has it, and calls it by itself before an exception or pthread_exit.
extern "C" __attribute__((weak)) void __asan_handle_no_return();  // NOLINT(*-reserved-identifier)

namespace gradsmith::internal {
namespace {

Context ContextWith(int threads) {
  ContextOptions options;
  options.threads = threads;
  return Context(options);
}

TEST(Context, CountsTheCallersThread) {
  EXPECT_EQ(ContextWith(1).threads(), 1);
  EXPECT_EQ(ContextWith(1).thread_pool(), nullptr);
  EXPECT_EQ(ContextWith(3).threads(), 3);
  EXPECT_EQ(ContextWith(3).thread_pool()->workers(), 2);
}

TEST(Context, HasAThreadForEachProcessorByDefault) {
  EXPECT_GE(Context().threads(), 1);
  EXPECT_EQ(Context().threads(), ContextWith(0).threads());
}

TEST(Context, NeedsNoThreadsForAnotherBackend) {
  ContextOptions options;
  options.device = {Backend::kCuda, 1};
  options.threads = 4;
  const Context context(options);
  EXPECT_EQ(context.thread_pool(), nullptr);
  EXPECT_EQ(context.device(), (Device{Backend::kCuda, 1}));
}

TEST(Context, CopiesShareThreads) {
  const Context context = ContextWith(2);
  const Context copy = context;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(context.thread_pool(), copy.thread_pool());
}

class ParallelForTest : public testing::TestWithParam<int> {
 protected:
  Context context_ = ContextWith(GetParam());
};

TEST_P(ParallelForTest, VisitsEachIndexOnce) {
  for (const std::int64_t total : {0, 1, 2, 7, 64, 1000}) {
    for (const std::int64_t grain : {0, 1, 3, 5000}) {
      std::vector<std::atomic<int>> visits(total);
      ParallelFor(context_, total, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          ++visits[i];
        }
      });
      for (const std::atomic<int>& count : visits) {
        ASSERT_EQ(count, 1) << "total " << total << ", grain " << grain;
      }
    }
  }
}

TEST_P(ParallelForTest, PiecesHoldAtLeastTheGrain) {
  std::mutex mutex;
  std::vector<std::int64_t> sizes;
  ParallelFor(context_, 100, 30, [&](std::int64_t begin, std::int64_t end) {
    const std::scoped_lock lock(mutex);
    sizes.push_back(end - begin);
  });
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), 100);
  for (const std::int64_t size : sizes) {
    EXPECT_GE(size, 30);
  }
}

TEST_P(ParallelForTest, MayBeNested) {
  std::atomic<int> visits = 0;
  ParallelFor(context_, 20, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      ParallelFor(context_, 30, 1, [&](std::int64_t inner_begin, std::int64_t inner_end) {
        visits += static_cast<int>(inner_end - inner_begin);
      });
    }
  });
  EXPECT_EQ(visits, 600);
}

TEST_P(ParallelForTest, MayBeCalledFromSeveralThreads) {
  std::atomic<int> visits = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        ParallelFor(context_, 16, 1, [&](std::int64_t begin, std::int64_t end) {
          visits += static_cast<int>(end - begin);
        });
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(visits, 4 * 50 * 16);
}

TEST_P(ParallelForTest, RethrowsWhatABodyThrows) {
  const auto run = [&] {
    ParallelFor(context_, 100, 1, [](std::int64_t begin, std::int64_t end) {
      if (begin <= 40 && 40 < end) {
        throw std::runtime_error("index 40");
      }
    });
  };
  for (int round = 0; round < 20; ++round) {
    try {
      run();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "index 40");
    }
  }
  // The threads are none the worse for it.
  std::atomic<int> visits = 0;
  ParallelFor(context_, 100, 1, [&](std::int64_t begin, std::int64_t end) {
    visits += static_cast<int>(end - begin);
  });
  EXPECT_EQ(visits, 100);
}

INSTANTIATE_TEST_SUITE_P(
    Threads,
    ParallelForTest,
    testing::Values(1, 2, 5),
    testing::PrintToStringParamName());

TEST(ParallelFor, UsesOtherThreads) {
  const Context context = ContextWith(2);
  // Two pieces wait for each other: only two threads get past.
  std::atomic<int> arrived = 0;
  ParallelFor(context, 2, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    while (arrived < 2) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ParallelFor, StopsAfterAFailure) {
  const Context context = ContextWith(2);
  std::atomic<int> runs = 0;
  const auto run = [&] {
    ParallelFor(context, 1000, 1, [&](std::int64_t, std::int64_t) {
      ++runs;
      throw std::runtime_error("no luck");
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_LE(runs, 2);  // one for each thread
}

TEST(ParallelFor, MayOutliveTheContextItWasGiven) {
  auto context = std::make_unique<Context>(ContextWith(3));
  const Context copy = *context;
  context.reset();
  std::atomic<int> visits = 0;
  ParallelFor(copy, 10, 1, [&](std::int64_t begin, std::int64_t end) {
    visits += static_cast<int>(end - begin);
  });
  EXPECT_EQ(visits, 10);
}

/// Ends the thread where it is cancelled. What the address sanitizer knows of the variables on its
/// stack would otherwise outlive them, and it would take its own work at the thread's end, on the
/// same stack, for an error.
void EndIfCancelled() {
  if (__asan_handle_no_return != nullptr) {
    __asan_handle_no_return();
  }
  pthread_testcancel();
}

/// A thread that is cancelled before it calls, and whose call comes to points where that counts: in
/// the body, and where it waits for a helper that is late. Returns whether the call was done, and
/// the thread ended behind it.
bool EndsBehindItsCall(const Context& context, std::int64_t pieces) {
  std::atomic<int> visits = 0;
  std::atomic<bool> is_back = false;
  std::atomic<bool> is_beyond = false;
  std::thread caller([&] {
    const std::thread::id self = std::this_thread::get_id();
    std::atomic<bool> has_helper = false;
    pthread_cancel(pthread_self());
    ParallelFor(context, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      visits += static_cast<int>(end - begin);
      if (std::this_thread::get_id() != self) {
        has_helper = true;
        usleep(1000);
      } else {
        while (!has_helper) {
          std::this_thread::yield();
        }
        pthread_testcancel();
      }
    });
    is_back = true;
    EndIfCancelled();
    is_beyond = true;
  });
  caller.join();
  return visits == pieces && is_back && !is_beyond;
}

TEST(ParallelFor, OfACancelledThreadIsDoneBeforeItEnds) {
  EXPECT_EXIT(
      {
        bool all_well = true;
        for (const int threads : {2, 4}) {
          const Context context = ContextWith(threads);
          for (int round = 0; round < 20; ++round) {
            all_well = all_well && EndsBehindItsCall(context, 2) && EndsBehindItsCall(context, 50);
          }
        }
        _exit(all_well ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gradsmith::internal
