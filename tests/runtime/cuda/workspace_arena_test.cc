#include "cuda/workspace_arena.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

/// What a context's workspace may be, as far as it needs no GPU.
namespace gradsmith::internal {
namespace {

alignas(256) std::byte callers_block[4096];

ContextOptions Options(std::size_t limit) {
  ContextOptions options;
  options.device = {Backend::kCuda, 0};
  options.workspace_limit = limit;
  return options;
}

ContextOptions WithCallersBlock(std::size_t limit, std::size_t size) {
  ContextOptions options = Options(limit);
  options.workspace = callers_block;
  options.workspace_size = size;
  return options;
}

TEST(WorkspaceArenaTest, TheLimitIsTheLesserOfTheLimitAndTheCallersBlock) {
  EXPECT_EQ(WorkspaceArena(Options(kNoLimit)).limit(), kNoLimit);
  EXPECT_EQ(WorkspaceArena(Options(1000)).limit(), 1000U);
  EXPECT_EQ(WorkspaceArena(WithCallersBlock(kNoLimit, 4096)).limit(), 4096U);
  EXPECT_EQ(WorkspaceArena(WithCallersBlock(1000, 4096)).limit(), 1000U);
  EXPECT_EQ(WorkspaceArena(WithCallersBlock(5000, 4096)).limit(), 4096U);
}

TEST(WorkspaceArenaTest, GivesTheCallersBlockAsFarAsItReaches) {
  WorkspaceArena arena(WithCallersBlock(kNoLimit, 4096));
  for (const std::size_t size : {0, 1, 4096}) {
    const Result<WorkspaceArena::Lease> lease = arena.Take(size);
    ASSERT_TRUE(lease.ok()) << lease.status().message();
    EXPECT_EQ(lease->address, callers_block);
  }
  const Status status = arena.Take(4097).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(
      status.message(),
      "the call needs 4097 bytes of workspace; expected at most 4096, the context's limit");
}

/// An allocator that has no memory, and remembers what it was asked for.
TEST(WorkspaceArenaTest, AsksForNoMoreThanTheLimit) {
  const auto asked_for = [](std::size_t limit, std::size_t size) {
    std::vector<std::size_t> sizes;
    ContextOptions options = Options(limit);
    options.allocator.user = &sizes;
    options.allocator.allocate = [](void* user, std::size_t bytes, void* /*stream*/) -> void* {
      static_cast<std::vector<std::size_t>*>(user)->push_back(bytes);
      return nullptr;
    };
    options.allocator.free = [](void*, void*, std::size_t, void*) {};
    const Status status = WorkspaceArena(options).Take(size).status();
    EXPECT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
    return sizes;
  };
  constexpr std::size_t kStep = std::size_t{2} << 20U;
  EXPECT_EQ(asked_for(kNoLimit, 1), std::vector<std::size_t>{kStep});
  EXPECT_EQ(asked_for(kNoLimit, kStep + 1), std::vector<std::size_t>{2 * kStep});
  EXPECT_EQ(asked_for(1000, 1), std::vector<std::size_t>{1000});
  EXPECT_EQ(asked_for(1000, 1000), std::vector<std::size_t>{1000});
  EXPECT_EQ(asked_for(1000, 1001), std::vector<std::size_t>());
}

}  // namespace
}  // namespace gradsmith::internal
