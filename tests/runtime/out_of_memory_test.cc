#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradsmith/conv_algorithms.h"
#include "gradsmith/gradsmith.h"
#include "support/allocations.h"
#include "support/conv_grad_call.h"
#include "support/scratch_folder.h"

/// Memory that runs out at any allocation: whoever calls gets a value, and no exception.
namespace gradsmith {
namespace {

using support::Allocations;
using support::ConvGradCall;
using support::Numbers;

/// What a call came to while memory was short.
struct Attempt {
  std::function<Status()> call;
  /// Whether what it has written is right; asked where it succeeded.
  std::function<bool()> is_right = [] { return true; };
  /// What it returns while there is memory.
  StatusCode usual = StatusCode::kOk;
};

/// Calls once with some allocations failing, and returns whether any did.
bool FailsOnce(const Attempt& attempt, std::int64_t first, std::int64_t last) {
  Status status;
  std::string thrown;
  bool failed = false;
  {
    const Allocations allocations(first, last);
    try {
      status = attempt.call();
    } catch (const std::exception&) {
      status = Status();
      thrown.assign(1, '!');  // in place
    }
    failed = allocations.failed();
  }
  const std::string where =
      "allocation " + std::to_string(first) + (first == last ? "" : " and later ones");
  EXPECT_TRUE(thrown.empty()) << where << ": an exception escaped";
  const bool may_lack = failed && status.code() == StatusCode::kOutOfMemory;
  EXPECT_TRUE(may_lack || status.code() == attempt.usual) << where << ": " << status.message();
  EXPECT_EQ(status.message().empty(), status.ok()) << where;
  if (status.ok() && thrown.empty()) {
    EXPECT_TRUE(attempt.is_right()) << where;
  }
  return failed;
}

/// Lets each allocation of a call fail, alone and with all that follow.
void ExpectValues(const Attempt& attempt) {
  constexpr std::int64_t kMost = 2000;
  ASSERT_FALSE(FailsOnce(attempt, Allocations::kNever, Allocations::kNever));
  for (const bool alone : {true, false}) {
    std::int64_t n = 0;
    while (n < kMost && FailsOnce(attempt, n, alone ? n : Allocations::kNever)) {
      ++n;
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    ASSERT_LT(n, kMost);
  }
}

void ExpectValues(std::function<Status()> call, StatusCode usual = StatusCode::kOk) {
  ExpectValues(Attempt{.call = std::move(call), .usual = usual});
}

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

Attempt On(const Context& context, ConvGradCall& conv) {
  return {.call = [&] { return conv.Run(context); }, .is_right = [&] { return conv.IsRight(); }};
}

class OutOfMemoryWithThreads : public testing::TestWithParam<int> {};

TEST_P(OutOfMemoryWithThreads, ATypedCallReturnsIt) {
  const Context context({.threads = GetParam()});
  ConvGradCall conv;
  ExpectValues(On(context, conv));
  ConvGradCall adding(/*accumulate=*/true);
  ExpectValues(On(context, adding));
}

TEST_P(OutOfMemoryWithThreads, BatchNormalizationReturnsIt) {
  const Context context({.threads = GetParam()});
  const Dims dims = {6, 3, 5};
  const std::vector<float> x = Numbers(90);
  const std::vector<float> ones(3, 1.0F);
  std::vector<float> dx(90);
  std::vector<float> expected;
  const auto run = [&] {
    std::ranges::fill(dx, kPoison);
    return BatchNormalizationGrad<float, float, float>(
        context, {},
        {.dY = {x.data(), dims},
         .X = {x.data(), dims},
         .scale = {ones.data(), {3}},
         .saved_mean = {ones.data(), {3}},
         .saved_inv_std = {ones.data(), {3}}},
        {.dX = {dx.data(), dims}});
  };
  ASSERT_TRUE(run().ok());
  expected = dx;
  ExpectValues(Attempt{.call = run, .is_right = [&] { return dx == expected; }});
}

TEST_P(OutOfMemoryWithThreads, AContextWithoutMemoryRefusesCalls) {
  ConvGradCall conv;
  const ContextOptions options = {
      .threads = GetParam(),
      .first_choice_seconds = 0,
      .cache = std::string(100, 'c'),
      .on_search_progress = [text = std::string(100, 'p')](const SearchProgress&) {}};
  for (const bool alone : {true, false}) {
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
      std::optional<Context> context;
      {
        const Allocations allocations(n, alone ? n : Allocations::kNever);
        ASSERT_NO_THROW(context.emplace(options)) << n;
        failed = allocations.failed();
      }
      const Status made = context->status();
      const Status ran = conv.Run(context->ForPreparing().preparing() ? *context : Context());
      EXPECT_EQ(made.code(), ran.code()) << n << ": " << ran.message();
      EXPECT_TRUE(made.ok() || made.code() == StatusCode::kOutOfMemory) << made.message();
      EXPECT_TRUE(failed || made.ok());
      EXPECT_TRUE(!ran.ok() || conv.IsRight()) << n;
      EXPECT_LE(context->threads(), GetParam());
      EXPECT_GE(context->threads(), 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Threads,
    OutOfMemoryWithThreads,
    testing::Values(1, 4),
    testing::PrintToStringParamName());

TEST(OutOfMemory, ARefusalIsARefusalOrIt) {
  const Context context({.threads = 1});
  std::vector<float> memory(64);
  const TensorView<float> tensor(memory.data(), {1, 1, 8});
  ExpectValues(
      [&] { return Conv<float>(context, {}, {.X = tensor}, {.Y = tensor}); },
      StatusCode::kInvalidArgument);
  const Context elsewhere({.device = {Backend::kCuda, 7}});
  ExpectValues(
      [&] { return Conv<float>(elsewhere, {.group = -1}, {.X = tensor}, {.Y = tensor}); },
      StatusCode::kInvalidArgument);
}

TEST(OutOfMemory, KernelsReturnIt) {
  Registry registry;
  ASSERT_TRUE(RegisterAll(registry).ok());
  const std::array types = {DataType::kFloat};
  const std::array attributes = {
      Attribute{"strides", IntList{2, 2}}, Attribute{"auto_pad", "SAME_UPPER"}};
  const std::array unknown = {Attribute{"an attribute that there is not", 1}};
  const auto create = [&](std::string_view op, std::span<const Attribute> with) {
    return Kernel::Create(registry, op, types, Backend::kCpu, with);
  };
  ExpectValues([&] { return create("Conv", attributes).status(); });
  ExpectValues([&] { return create("Conv", unknown).status(); }, StatusCode::kInvalidArgument);
  ExpectValues([&] { return create("Convv", {}).status(); }, StatusCode::kUnsupported);

  const Kernel kernel = create("Conv", attributes).value();
  const std::vector<float> x = Numbers(64);
  const std::vector<float> w = Numbers(9);
  std::vector<float> y(16);
  const std::array<ConstTensorRef, 2> inputs = {
      ConstTensorRef(DataType::kFloat, x.data(), {1, 1, 8, 8}),
      ConstTensorRef(DataType::kFloat, w.data(), {1, 1, 3, 3})};
  const std::array<TensorRef, 1> outputs = {TensorRef(DataType::kFloat, y.data(), {1, 1, 4, 4})};
  const Context context({.threads = 1});
  ASSERT_TRUE(kernel.Run(context, inputs, outputs).ok());
  const std::vector<float> expected = y;
  ExpectValues(Attempt{
      .call =
          [&] {
            std::ranges::fill(y, kPoison);
            return kernel.Run(context, inputs, outputs);
          },
      .is_right = [&] { return y == expected; }});
  ExpectValues([&] { return kernel.Prepare(context, inputs, outputs); });
  ExpectValues([&] { return kernel.Run(context, inputs, {}); }, StatusCode::kInvalidArgument);
  ExpectValues([&] { return kernel.InferShapes(inputs).status(); });
  ExpectValues([&] { return kernel.InferShapes({}).status(); }, StatusCode::kInvalidArgument);
  ExpectValues(
      [] { return InferShapes(ConvAttributes(), {.X = {1, 2, 8}, .W = {3, 2, 2}}).status(); });
  ExpectValues(
      [] { return InferShapes(ConvAttributes(), {.X = {1, 2, 8}, .W = {3, 4, 2}}).status(); },
      StatusCode::kInvalidArgument);
}

TEST(OutOfMemory, RegistriesReturnIt) {
  std::optional<Registry> registry;
  ExpectValues(Attempt{
      .call =
          [&] {
            registry.emplace();
            return RegisterAll(*registry);
          },
      .is_right =
          [&] { return registry->Find("Conv", {DataType::kFloat}, Backend::kCpu) != nullptr; }});
  ExpectValues([&] { return RegisterAll(*registry); }, StatusCode::kInvalidArgument);
  std::string usual;
  std::string text;
  for (const char* op : {"Conv", "Convv", "ConvTranspose"}) {
    const std::vector<DataType> types(op[4] == 'T' ? 2 : 1, DataType::kFloat);
    usual = registry->Explain(op, types, Backend::kCpu);
    ExpectValues(Attempt{
        .call =
            [&] {
              text = registry->Explain(op, types, Backend::kCpu);
              return Status();
            },
        .is_right = [&] { return text == usual || text == "out of memory"; }});
  }
}

TEST(OutOfMemory, CachesReturnIt) {
  const support::ScratchFolder folder;
  const std::string file = folder.path() + "/a file of decisions, which has a long name.txt";
  const std::string other = folder.path() + "/another file of decisions, of a long name.txt";
  const std::optional<std::string> cache = file;
  ExpectValues([&] { return ClearCache(cache); });
  ExpectValues([&] { return ExportCache(other, cache); });
  ExpectValues([&] { return ImportCache(other, cache); });
  const std::string none = folder.path() + "/there is no such file.txt";
  ExpectValues([&] { return ImportCache(none, cache); }, StatusCode::kInvalidArgument);
  std::string path;
  ExpectValues(Attempt{
      .call =
          [&] {
            path = CacheFile(cache);
            return CachedChoices(cache).empty() ? Status() : Internal("not empty");
          },
      .is_right = [&] { return path == file || path.empty(); }});
}

TEST(OutOfMemory, DevicesReturnIt) {
  const Context context({.threads = 1});
  ExpectValues([] { return CheckDevice({Backend::kCpu, 7}); }, StatusCode::kInvalidArgument);
  const StatusCode cuda = CheckDevice({Backend::kCuda, 1000}).code();
  ExpectValues([] { return CheckDevice({Backend::kCuda, 1000}); }, cuda);
  ExpectValues([&] { return Synchronize(context); });
  ExpectValues([] { return DeviceBuffer::Allocate({Backend::kCpu, 0}, 1000).status(); });
  DeviceBuffer buffer = DeviceBuffer::Allocate({Backend::kCpu, 0}, 8).value();
  std::array<char, 9> bytes{};
  ExpectValues([&] { return buffer.CopyFromHost(context, bytes.data(), 8); });
  ExpectValues(
      [&] { return buffer.CopyToHost(context, bytes.data(), 9); }, StatusCode::kInvalidArgument);
  const StatusCode free = LargestWorkspace(context, WorkspaceLimit::OfFreeMemory()).status().code();
  ExpectValues(
      [&] { return LargestWorkspace(context, WorkspaceLimit::OfFreeMemory()).status(); }, free);
}

TEST(OutOfMemory, AStatusNeedsNone) {
  const Allocations allocations(0);
  const Status status(StatusCode::kOutOfMemory, {});
  const Status copy = status.WithPrefix("a prefix that is longer than what fits in place: ");
  EXPECT_EQ(copy.message(), "out of memory");
  EXPECT_EQ(copy.code(), StatusCode::kOutOfMemory);
}

TEST(OutOfMemory, ACopyOfAStatusNeedsNone) {
  const Status status = InvalidArgument("a sentence that is longer than what fits in place");
  const Allocations allocations(0);
  const Status copy = status;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copy.message(), status.message());
}

TEST(OutOfMemory, WhatNoMemoryCanHoldIsIt) {
  // Sums of 2^60 channels.
  const Context context({.threads = 1});
  std::vector<float> one(1, 1.0F);
  const Dims channels = {std::int64_t{1} << 60};
  const TensorView<float> per_channel(one.data(), channels, {0});
  const Dims dims = {0, channels[0]};
  const TensorView<float> x(one.data(), dims, {0, 0});
  const Status status = BatchNormalization<float, float, float>(
      context, {},
      {.X = x,
       .scale = per_channel,
       .B = per_channel,
       .running_mean = per_channel,
       .running_var = per_channel},
      {.Y = {one.data(), dims}});
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kOutOfMemory) << status.message();
}

}  // namespace
}  // namespace gradsmith
