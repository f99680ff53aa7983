// Compiled alone: it has definitions of its own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "support/conv_grad_call.h"

// What docs/teardown.md says of exit, fork and dlclose.

// Where a program that forks while it has threads starts more in the child, the thread sanitizer
// would end it.
extern "C" const char* __tsan_default_options() {  // NOLINT(*-reserved-identifier)
  return "die_after_fork=0";
}

/// Is there in a program with the address sanitizer alone.
extern "C" __attribute__((weak)) void __asan_init();  // NOLINT(*-reserved-identifier)

/// Whether what this process leaves behind is meant: what a fork's child has of its parent's
/// threads, and contexts that a test drops.
static bool leaks_are_meant = false;

/// The leak sanitizer asks at exit.
extern "C" int __lsan_is_turned_off() {  // NOLINT(*-reserved-identifier)
  return leaks_are_meant ? 1 : 0;
}

namespace gradsmith {
namespace {

using support::ConvGradCall;

constexpr auto kSuccess = 0;

/// Threads that call through a context until the process ends, each of which has called once.
void StartCalls(const Context& context) {
  constexpr int kThreads = 4;
  static std::atomic<int> threads_that_called = 0;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&context] {
      ConvGradCall conv;
      for (bool is_first = true; conv.IsRightOn(context); is_first = false) {
        threads_that_called += is_first ? 1 : 0;
      }
      _exit(1);  // a wrong result
    }).detach();
  }
  while (threads_that_called < kThreads) {
    std::this_thread::yield();
  }
}

/// LeakedContext returns a context that is never destroyed.
const Context& LeakedContext() {
  static const auto& context = *new Context({.threads = 3});
  return context;
}

TEST(Exit, LetsCallsGoOnUntilTheProcessIsGone) {
  const std::vector<std::pair<const char*, void (*)(int)>> ways = {
      {"exit", &std::exit}, {"quick_exit", &std::quick_exit}, {"_exit", &_exit}};
  for (const auto& [name, way] : ways) {
    for (int round = 0; round < 5; ++round) {
      EXPECT_EXIT(
          {
            StartCalls(LeakedContext());
            way(kSuccess);
          },
          testing::ExitedWithCode(kSuccess), "")
          << name;
    }
  }
}

TEST(Exit, DestroysAContextOfStaticStorage) {
  EXPECT_EXIT(
      {
        static const Context context({.threads = 3});
        ConvGradCall conv;
        std::exit(conv.IsRightOn(context) ? kSuccess : 1);
      },
      testing::ExitedWithCode(kSuccess), "");
}

/// A parent whose contexts its children have copies of.
class Fork : public testing::Test {
 protected:
  Fork() { EXPECT_TRUE(conv_.IsRightOn(*context_)); }

  /// Whether a child ends well that does this and then returns from main, as exit() is called then.
  static bool ChildEndsWell(const std::function<bool()>& action) {
    const pid_t child = fork();
    if (child == 0) {
      leaks_are_meant = true;
      std::exit(action() ? kSuccess : 1);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == kSuccess;
  }

  ConvGradCall conv_;
  std::optional<Context> context_ = Context({.threads = 3});
};

TEST_F(Fork, AChildComputesOnItsOwnThread) {
  EXPECT_TRUE(ChildEndsWell([this] {
    const Context copy = *context_;
    return context_->threads() == 1 && conv_.IsRightOn(*context_) && conv_.IsRightOn(copy);
  }));
  EXPECT_EQ(context_->threads(), 3);
  EXPECT_TRUE(conv_.IsRightOn(*context_));
}

TEST_F(Fork, AChildDestroysContexts) {
  EXPECT_TRUE(ChildEndsWell([this] {
    context_.reset();
    return true;
  }));
  EXPECT_TRUE(ChildEndsWell([this] {
    context_ = Context({.threads = 2});
    return context_->threads() == 2 && conv_.IsRightOn(*context_);
  }));
}

TEST_F(Fork, AChildReturnsFromMainWithAContextOfStaticStorage) {
  static const Context context({.threads = 3});
  EXPECT_TRUE(conv_.IsRightOn(context));
  EXPECT_TRUE(ChildEndsWell([] { return true; }));
  EXPECT_TRUE(ChildEndsWell([this] { return conv_.IsRightOn(context); }));
}

TEST_F(Fork, AChildHasThreadsOfItsOwnAndChildren) {
  EXPECT_TRUE(ChildEndsWell([this] {
    const Context own({.threads = 4});
    return own.threads() == 4 && conv_.IsRightOn(own) && ChildEndsWell([&] {
             return own.threads() == 1 && conv_.IsRightOn(own) && conv_.IsRightOn(*context_);
           });
  }));
}

TEST_F(Fork, WhileOtherThreadsAreInCalls) {
  if (__asan_init != nullptr) {
    GTEST_SKIP() << "the address sanitizer's allocator may stay locked in a fork's child";
  }
  EXPECT_EXIT(
      {
        StartCalls(LeakedContext());
        bool all_well = true;
        for (int i = 0; i < 10; ++i) {
          all_well = all_well && ChildEndsWell([this] {
                       context_.reset();
                       return conv_.IsRightOn(LeakedContext());
                     });
        }
        _exit(all_well ? kSuccess : 1);
      },
      testing::ExitedWithCode(kSuccess), "");
}

/// The first process of a namespace of process ids has a child that is the first of another: both
/// are process 1. Returns kNoNamespaces where nobody may make one.
constexpr int kNoNamespaces = 77;

int ForkAsProcessOne(const std::function<int()>& action) {
  if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
    return kNoNamespaces;
  }
  const pid_t child = fork();
  if (child == 0) {
    _exit(getpid() == 1 ? action() : 2);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

TEST_F(Fork, AChildOfTheSameProcessIdIsAChild) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(ForkAsProcessOne([this] {
      const Context context({.threads = 3});
      if (context.threads() != 3 || !conv_.IsRightOn(context)) {
        return 4;
      }
      return ForkAsProcessOne([&] {
        alarm(60);  // its parent's threads would never come
        return context.threads() == 1 && conv_.IsRightOn(context) ? kSuccess : 5;
      });
    }));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespaces) {
    GTEST_SKIP() << "no namespace of process ids may be made here";
  }
  EXPECT_EQ(WEXITSTATUS(status), kSuccess);
}

/// 0 where the plug-in is as it must be: see gradsmith_plugin_call.
int LoadAndUnload(int threads, int keep, bool stays) {
  leaks_are_meant = keep > 0;
  for (int round = 0; round < 10; ++round) {
    void* const plugin = dlopen(GRADSMITH_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      return 2;
    }
    const auto call = reinterpret_cast<int (*)(int, int)>(dlsym(plugin, "gradsmith_plugin_call"));
    if (call == nullptr || call(threads, keep) != 0 || dlclose(plugin) != 0) {
      return 3;
    }
    const bool is_there = dlopen(GRADSMITH_TEST_PLUGIN, RTLD_NOW | RTLD_NOLOAD) != nullptr;
    if (is_there != stays) {
      return 4;
    }
  }
  return kSuccess;
}

TEST(Dlclose, LeavesThreadsTheirCode) {
  for (const int keep : {0, 1}) {
    EXPECT_EXIT(
        std::exit(LoadAndUnload(3, keep, /*stays=*/true)), testing::ExitedWithCode(kSuccess), "");
  }
}

TEST(Dlclose, UnloadsWhatHasStartedNone) {
  EXPECT_EXIT(
      std::exit(LoadAndUnload(1, 0, /*stays=*/false)), testing::ExitedWithCode(kSuccess), "");
}

TEST(Dlclose, LeavesNothingThatAForkCalls) {
  EXPECT_EXIT(
      {
        const int loaded = LoadAndUnload(1, 0, /*stays=*/false);
        const pid_t child = fork();
        if (child == 0) {
          _exit(kSuccess);
        }
        int status = 1;
        waitpid(child, &status, 0);
        std::exit(loaded + status);
      },
      testing::ExitedWithCode(kSuccess), "");
}

}  // namespace
}  // namespace gradsmith
