#include "batch_norm/cuda/own.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "batch_norm/cuda/arguments.h"
#include "batch_norm/cuda/resident.h"
#include "core/grid.h"
#include "core/tiles.h"
#include "cuda/kernel_table.h"

namespace gradsmith::batch_norm {
namespace {

using internal::CeilDivide;
using internal::Grid;
using own::Operand;
using own::Operands;
using own::Parameter;
using own::Walk;

static_assert(own::kSampleDims == Grid::kRank && own::kInner == Grid::kLast);
static_assert(static_cast<int>(DataType::kFloat) == own::kFloat);
static_assert(static_cast<int>(DataType::kDouble) == own::kDouble);
static_assert(static_cast<int>(DataType::kMLFloat16) == own::kHalf);
static_assert(static_cast<int>(DataType::kBFloat16) == own::kBFloat16);

template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

// ---------------------------------------------------------------------------------------------
// Plans
// ---------------------------------------------------------------------------------------------

/// How a kernel's threads lie. The numbers are part of the kernels' places in the tables below.
enum class Path : unsigned char {
  kRows,     ///< along the samples of a channel
  kColumns,  ///< along columns
  kVectors,  ///< along columns, a vector of them for each thread
};
constexpr int kPaths = 3;

/// What a GPU needs to be busy, whichever it is: the order of sums must not depend on it.
constexpr std::int64_t kRowBlocks = 1024;
/// These are all resident at once: no last few leave the GPU half empty.
constexpr std::int64_t kColumnBlocks = 512;
/// A map that is not interleaved and has as many steps as this for each thread of so many blocks is
/// cut into so many: they do not all go through memory in step then.
constexpr std::int64_t kMapBlocks = 2048;
constexpr std::int64_t kLongMap = 32;
/// So many tiles that are so short, in vectors, are better not cut: one launch does it all.
constexpr std::int64_t kLeastTiles = 128;
constexpr std::int64_t kShortTile = 8192;
/// More terms than these and a thread's sum gets coarse.
constexpr std::int64_t kLongestSum = 1024;
/// Fewer and a slice is not worth its block.
constexpr std::int64_t kShortestRowSlice = 2048;
constexpr std::int64_t kShortestColumnSum = 8;
constexpr std::int64_t kMaxSlices = 1 << 15;
constexpr std::int64_t kMaxBlocksX = 1 << 30;
/// Vectors side by side: what makes good use of memory, and what is wide enough.
constexpr std::int64_t kLeastWidth = 32;
constexpr std::int64_t kGoodWidth = 64;
/// Channels first: a tile is up to so many elements, which is so many rows at most.
constexpr std::int64_t kMaxTile = own::kMaxWidth * own::kVectorBytes / 2;

std::int64_t PerVector(DataType type) {
  return own::kVectorBytes / static_cast<std::int64_t>(SizeOf(type));
}

/// PickWidth returns the power of two up to `largest` whose multiples waste the fewest threads on
/// `count`; from 32 on the larger one where they waste alike.
int PickWidth(std::int64_t count, int largest) {
  int width = 1;
  while (width < count && width < 32) {
    width *= 2;
  }
  for (int wider = 2 * width; width >= 32 && wider <= largest; wider *= 2) {
    if (CeilDivide(count, wider) * wider <= CeilDivide(count, width) * width) {
      width = wider;
    }
  }
  return width;
}

std::int64_t ClampSlices(std::int64_t wanted, std::int64_t longest, std::int64_t shortest) {
  return std::clamp<std::int64_t>(std::max(std::min(wanted, shortest), longest), 1, kMaxSlices);
}

std::int64_t RowSlices(std::int64_t channels, std::int64_t samples) {
  return ClampSlices(
      CeilDivide(kRowBlocks, channels), CeilDivide(samples, own::kThreads * kLongestSum),
      CeilDivide(samples, kShortestRowSlice));
}

/// The tiles are as even as they can be.
int ColumnWidth(std::int64_t vectors) {
  return static_cast<int>(CeilDivide(vectors, CeilDivide(vectors, kGoodWidth)));
}

std::int64_t ColumnSlices(std::int64_t tiles, std::int64_t steps, int width) {
  const std::int64_t lanes = own::kThreads / width;
  return ClampSlices(
      kColumnBlocks / tiles, CeilDivide(steps, lanes * kLongestSum),
      CeilDivide(steps, lanes * kShortestColumnSum));
}

std::int64_t SamplesPerChannel(const Dims& dims) {
  std::int64_t samples = 1;
  for (int i = 0; i < dims.size(); ++i) {
    samples *= i == 1 ? 1 : dims[i];
  }
  return samples;
}

/// The tensors that a kernel goes through: dY, X and the output, null where it does not use them.
using Tensors = std::array<const ConstTensorRef*, 3>;

Grid SampleGrid(const ConstTensorRef& tensor) {
  Grid grid;
  grid.counts[0] = tensor.dims[0];
  grid.strides[0] = tensor.strides[0];
  for (int i = 2; i < tensor.rank(); ++i) {
    grid.counts[i - 1] = tensor.dims[i];
    grid.strides[i - 1] = tensor.strides[i];
  }
  return grid;
}

/// Plan is how to go through some tensors together.
struct Plan {
  Path path = Path::kRows;
  Walk walk{};
  Operands operands{};
  std::int64_t blocks_x = 1;
  /// Whether one launch does it all: blocks have their channels to themselves.
  bool whole = false;
};

/// Where a sample of channel 0 lies.
std::int64_t SampleOffset(const Grid& grid, std::int64_t sample) {
  return internal::GridCursor(grid, sample).offset();
}

/// Fills in the sample dims, made as few as serve all tensors.
void SetDims(const Tensors& tensors, const ConstTensorRef& leader, Plan* plan) {
  std::array<Operand*, 3> operands = {
      &plan->operands.dY, &plan->operands.X, &plan->operands.output};
  std::array<Grid, 3> grids;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    grids[k] = SampleGrid(tensors[k] != nullptr ? *tensors[k] : leader);
  }
  internal::Collapse(grids);
  Walk& walk = plan->walk;
  walk.channels = leader.dims[1];
  walk.samples = SamplesPerChannel(leader.dims);
  std::ranges::copy(grids[0].counts, std::begin(walk.counts));
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k] != nullptr) {
      operands[k]->data = const_cast<void*>(tensors[k]->data);
      operands[k]->channel_stride = tensors[k]->strides[1];
      std::ranges::copy(grids[k].strides, std::begin(operands[k]->strides));
    }
  }
  constexpr std::array<std::int64_t, 3> kPermille = {307, 551, 809};
  for (std::size_t i = 0; i < kPermille.size(); ++i) {
    walk.pivots[i] = SampleOffset(grids[1], walk.samples * kPermille[i] / 1000);
  }
}

/// Whether something holds of all operands that are present.
template <typename Holds>
bool AllOf(const Tensors& tensors, const Operands& operands, const Holds& holds) {
  return (tensors[0] == nullptr || holds(operands.dY)) &&
         (tensors[1] == nullptr || holds(operands.X)) &&
         (tensors[2] == nullptr || holds(operands.output));
}

template <typename Change>
void ForEach(Operands* operands, const Change& change) {
  for (Operand* operand : {&operands->dY, &operands->X, &operands->output}) {
    change(operand);
  }
}

bool AreMultiples(std::span<const std::int64_t> strides, std::int64_t per_vector) {
  return std::ranges::all_of(
      strides, [&](std::int64_t stride) { return stride % per_vector == 0; });
}

/// Channels last, in vectors, if they can be had: by strides, as the order of sums must not depend
/// on addresses.
bool TakeChannelVectors(const Tensors& tensors, std::int64_t per_vector, Plan* plan) {
  Walk& walk = plan->walk;
  const bool neighbours = AllOf(
      tensors, plan->operands, [](const Operand& operand) { return operand.channel_stride == 1; });
  if (neighbours && walk.channels % per_vector == 0) {
    return AllOf(tensors, plan->operands, [&](const Operand& operand) {
      return AreMultiples(operand.strides, per_vector);
    });
  }
  const bool dense = AllOf(tensors, plan->operands, [&](const Operand& operand) {
    return operand.strides[own::kInner] == walk.channels;
  });
  if (!neighbours || !dense || walk.counts[own::kInner] != walk.samples ||
      walk.samples < per_vector) {
    return false;
  }
  // So many samples together are whole vectors.
  walk.columns = per_vector * walk.channels;
  walk.counts[own::kInner] = walk.samples / per_vector;
  walk.tail = walk.samples % per_vector * walk.channels;
  ForEach(&plan->operands, [&](Operand* operand) { operand->strides[own::kInner] *= per_vector; });
  return true;
}

/// The divisor of a row's vectors that leaves the fewest threads of a block idle; 0: none is wide.
std::int64_t PickPart(std::int64_t vectors) {
  std::int64_t best = 0;
  std::int64_t most = 0;
  for (std::int64_t part = std::clamp<std::int64_t>(vectors, 1, kLeastWidth);
       part <= std::min<std::int64_t>(vectors, own::kMaxWidth); ++part) {
    if (vectors % part != 0) {
      continue;
    }
    if (const std::int64_t busy = own::kThreads / part * part; busy >= most) {
      best = part;
      most = busy;
    }
  }
  return best;
}

/// The channels whose rows, one behind the other, are taken as one; the fewest that are whole
/// vectors, or more where they are short.
std::int64_t RowsTogether(std::int64_t channels, std::int64_t row, std::int64_t per_vector) {
  std::int64_t count = 1;
  while (channels % (2 * count) == 0 &&
         (count * row % per_vector != 0 || 2 * count * row <= kGoodWidth * per_vector)) {
    count *= 2;
  }
  return count;
}

/// A dim of one is none: rows have fewer dims then.
void DropInner(Plan* plan) {
  const auto drop = [](std::int64_t* values, std::int64_t first) {
    std::copy_backward(values, values + own::kInner, values + own::kSampleDims);
    values[0] = first;
  };
  drop(plan->walk.counts, 1);
  ForEach(&plan->operands, [&](Operand* operand) { drop(operand->strides, 0); });
}

/// Channels first, in vectors, if they can be had: parts of rows, or rows of some channels
/// together.
bool TakeRowVectors(const Tensors& tensors, std::int64_t per_vector, Plan* plan) {
  Walk& walk = plan->walk;
  const std::int64_t row = walk.counts[own::kInner];
  const bool dense = AllOf(tensors, plan->operands, [&](const Operand& operand) {
    return operand.channel_stride == row || walk.channels == 1;
  });
  const std::int64_t together = dense ? RowsTogether(walk.channels, row, per_vector) : 1;
  const std::int64_t part =
      together == 1 ? PickPart(row / per_vector) : together * row / per_vector;
  const bool vectors = AllOf(tensors, plan->operands, [&](const Operand& operand) {
    return operand.strides[own::kInner] == 1 &&
           AreMultiples(std::span(operand.strides).first<own::kInner>(), per_vector) &&
           (dense || operand.channel_stride % per_vector == 0);
  });
  if (!vectors || together * row % per_vector != 0 || part == 0 || part > own::kMaxWidth) {
    return false;
  }
  walk.width = static_cast<int>(part);
  walk.run = together == 1 ? part * per_vector : row;
  walk.columns = walk.channels * walk.run;
  walk.counts[own::kInner] = row / walk.run;
  ForEach(&plan->operands, [&](Operand* operand) { operand->strides[own::kInner] = walk.run; });
  if (row == walk.run) {
    DropInner(plan);
  }
  return true;
}

/// Chooses the path, and what the columns are if it goes along them.
Path ChoosePath(
    const Tensors& tensors,
    const Operand& leader,
    std::int64_t per_vector,
    Plan* plan) {
  Walk& walk = plan->walk;
  walk.columns = walk.channels;
  walk.run = 1;
  if (std::ranges::any_of(std::span(walk.counts).first<own::kInner>(), [](std::int64_t count) {
        return count > std::numeric_limits<int>::max();
      })) {
    return Path::kRows;
  }
  if (walk.channels > 1 &&
      (walk.counts[own::kInner] == 1 || leader.channel_stride < leader.strides[own::kInner])) {
    return TakeChannelVectors(tensors, per_vector, plan) ? Path::kVectors : Path::kColumns;
  }
  return TakeRowVectors(tensors, per_vector, plan) ? Path::kVectors : Path::kRows;
}

void CutRows(std::int64_t per_vector, Plan* plan) {
  Walk& walk = plan->walk;
  const std::int64_t inner = walk.counts[own::kInner];
  const std::int64_t length = std::min(inner, own::kPieceElements);
  // Rows that begin anywhere have one chunk more.
  const std::int64_t odd = inner % per_vector == 0 ? 0 : per_vector - 1;
  walk.pieces = CeilDivide(inner, own::kPieceElements);
  walk.width = PickWidth(CeilDivide(length + odd, per_vector), own::kThreads);
  walk.slices = RowSlices(walk.channels, walk.samples);
  walk.places = walk.channels;
  plan->blocks_x = walk.channels;
}

void CutColumns(std::int64_t per_thread, bool is_map, Plan* plan) {
  Walk& walk = plan->walk;
  walk.steps = 1;
  for (const std::int64_t count : walk.counts) {
    walk.steps *= count;
  }
  if (walk.run == 1) {
    walk.width = ColumnWidth(walk.columns / per_thread);
  }
  plan->blocks_x = CeilDivide(walk.columns, walk.width * per_thread);
  walk.places = plan->blocks_x == 1 && walk.run == 1 ? walk.channels : walk.columns / walk.run;
  walk.slices = ColumnSlices(plan->blocks_x, walk.steps, walk.width);
  if (per_thread > 1 && walk.columns == walk.channels * walk.run) {
    const bool short_tiles = plan->blocks_x >= kLeastTiles && walk.steps * walk.width <= kShortTile;
    walk.slices = short_tiles ? 1 : walk.slices;
    plan->whole = walk.slices == 1;
  }
  const std::int64_t lanes = own::kThreads / walk.width;
  // Slices side by side in memory go through it together. Where steps are in several rows, to go so
  // far would take a division each time.
  const bool interleaved = walk.counts[own::kInner] == walk.steps;
  if (is_map && !interleaved && !plan->whole &&
      walk.steps * plan->blocks_x >= kMapBlocks * lanes * kLongMap) {
    walk.slices = std::max(walk.slices, kMapBlocks / plan->blocks_x);
  }
  walk.ahead = interleaved ? lanes * walk.slices : lanes;
  ForEach(&plan->operands, [&](Operand* operand) {
    operand->ahead = operand->strides[own::kInner] * walk.ahead;
    std::int64_t change = 0;
    for (int k = 0; k < own::kInner; ++k) {
      const int dim = own::kInner - k;
      change += operand->strides[dim - 1] - (walk.counts[dim] * operand->strides[dim]);
      operand->to_next_row[k] = change;
    }
  });
}

/// Whether the samples of a channel all lie at one distance.
bool IsEvenlySpaced(const ConstTensorRef& tensor) {
  std::array<Grid, 1> grids = {SampleGrid(tensor)};
  internal::Collapse(grids);
  return grids[0].counts[Grid::kLast] == SamplesPerChannel(tensor.dims);
}

/// So few samples, of so few elements in all, are quickest with a thread for each channel. Which
/// outputs there are has no say in it: sums are to be the same.
bool IsShort(const ConstTensorRef& tensor) {
  constexpr std::int64_t kFewSamples = 32;
  constexpr std::int64_t kFewElements = 1 << 19;
  const std::int64_t samples = SamplesPerChannel(tensor.dims);
  return samples > 0 && samples <= kFewSamples && samples * tensor.dims[1] <= kFewElements &&
         IsEvenlySpaced(tensor);
}

Plan ShortPlan(const Tensors& tensors) {
  Plan plan;
  SetDims(tensors, tensors[1] != nullptr ? *tensors[1] : *tensors[0], &plan);
  plan.blocks_x = CeilDivide(plan.walk.channels, own::kShortThreads);
  return plan;
}

/// Goes the way that suits the first tensor of X and dY that there is. None is empty.
Plan MakePlan(const Tensors& tensors) {
  const bool has_x = tensors[1] != nullptr;
  const ConstTensorRef& leader = has_x ? *tensors[1] : *tensors[0];
  Plan plan;
  SetDims(tensors, leader, &plan);
  const std::int64_t per_vector = PerVector(leader.type);
  const Operand leading = has_x ? plan.operands.X : plan.operands.dY;
  plan.path = ChoosePath(tensors, leading, per_vector, &plan);
  if (plan.path == Path::kRows) {
    CutRows(per_vector, &plan);
  } else {
    CutColumns(plan.path == Path::kVectors ? per_vector : 1, tensors[2] != nullptr, &plan);
  }
  plan.blocks_x = std::min(plan.blocks_x, kMaxBlocksX);
  return plan;
}

/// Whether sums are made in the same order.
bool SumAlike(const Plan& a, const Plan& b) {
  return a.path == b.path && a.walk.columns == b.walk.columns && a.walk.run == b.walk.run &&
         a.walk.steps == b.walk.steps && a.walk.width == b.walk.width &&
         a.walk.ahead == b.walk.ahead;
}

/// Channels without samples: there is nothing to go through, but results to write.
Walk EmptyWalk(const Dims& dims) {
  Walk walk{};
  walk.channels = dims[1];
  return walk;
}

// ---------------------------------------------------------------------------------------------
// Workspace
// ---------------------------------------------------------------------------------------------

/// pivot, factor, shift, slope, gate
constexpr std::int64_t kCoefficients = 5;
/// Two sums of each slice.
constexpr std::int64_t kPartials = 2;

/// The channels' partial sums, of one kind, along columns: a bound where channels are first.
std::int64_t MostPartials(std::int64_t channels, std::int64_t samples, DataType type) {
  const std::int64_t per_vector = PerVector(type);
  const auto last = [&](std::int64_t columns, std::int64_t steps, std::int64_t per_thread) {
    const int width = ColumnWidth(CeilDivide(columns, per_thread));
    return columns * ColumnSlices(CeilDivide(columns, width * per_thread), steps, width);
  };
  // A tile's rows of some channels are half a block's vectors at least, for each lane.
  const std::int64_t most_blocks = kColumnBlocks * kMaxTile;
  const std::int64_t first = std::max(
      std::min(most_blocks, channels * (1 + (samples / kShortestColumnSum))),
      channels * (1 + (samples / kLongestSum)));
  return std::max(
      {channels * RowSlices(channels, samples), last(channels, samples, 1),
       last(channels, samples, per_vector),
       last(channels * per_vector, samples / per_vector, per_vector), first});
}

/// The coefficients, then the slices' sums, whichever the path: strides of tensors that are not
/// known yet have a say in it.
std::size_t WorkspaceBytes(const ConstTensorRef& X) {
  const std::int64_t channels = X.dims[1];
  const std::int64_t samples = SamplesPerChannel(X.dims);
  if (channels == 0) {
    return 0;
  }
  return static_cast<std::size_t>(
             (channels * kCoefficients) + (kPartials * MostPartials(channels, samples, X.type))) *
         sizeof(double);
}

struct Workspace {
  Workspace(void* data, std::int64_t channels)
      : coefficients(static_cast<double*>(data)),
        partials(coefficients + (kCoefficients * channels)) {}

  double* coefficients;
  double* partials;
};

// ---------------------------------------------------------------------------------------------
// Launches
// ---------------------------------------------------------------------------------------------

/// Steps that have a kernel for each path and element type.
enum class Step : unsigned char {
  kMoments,
  kBiasSums,
  kGradientSums,
  kNormalize,
  kInputGradient,
  kReluGradientSums,
  kNormalizeRelu,
  kReluInputGradient,
};
/// Those before are in the image of batch normalization alone.
constexpr int kFirstOfRelu = static_cast<int>(Step::kReluGradientSums);

constexpr std::array<std::array<std::string_view, kPaths>, 8> kNames = {{
    {"gradsmith_bn_moments_rows", "gradsmith_bn_moments_columns", "gradsmith_bn_moments_vectors"},
    {"gradsmith_bn_bias_sums_rows", "gradsmith_bn_bias_sums_columns",
     "gradsmith_bn_bias_sums_vectors"},
    {"gradsmith_bn_gradient_sums_rows", "gradsmith_bn_gradient_sums_columns",
     "gradsmith_bn_gradient_sums_vectors"},
    {"gradsmith_bn_normalize_rows", "gradsmith_bn_normalize_columns",
     "gradsmith_bn_normalize_vectors"},
    {"gradsmith_bn_input_gradient_rows", "gradsmith_bn_input_gradient_columns",
     "gradsmith_bn_input_gradient_vectors"},
    {"gradsmith_bn_relu_gradient_sums_rows", "gradsmith_bn_relu_gradient_sums_columns",
     "gradsmith_bn_relu_gradient_sums_vectors"},
    {"gradsmith_bn_relu_normalize_rows", "gradsmith_bn_relu_normalize_columns",
     "gradsmith_bn_relu_normalize_vectors"},
    {"gradsmith_bn_relu_input_gradient_rows", "gradsmith_bn_relu_input_gradient_columns",
     "gradsmith_bn_relu_input_gradient_vectors"},
}};

Result<CUkernel> FindKernel(Step step, Path path, DataType type) {
  using Table = cuda::KernelTable<kNames.size() * kPaths>;
  static auto& plain = *new Table(cuda::kImage_batch_norm);
  static auto& relu = *new Table(cuda::kImage_batch_norm_relu);
  const int i = static_cast<int>(step);
  const int j = static_cast<int>(path);
  return (i < kFirstOfRelu ? plain : relu).Find((i * kPaths) + j, kNames[i][j], type);
}

/// The kernels that do all of a call, one for each activation and element type.
class WholeKernels {
 public:
  WholeKernels(std::string_view plain, std::string_view relu) : names_({plain, relu}) {}

  Result<CUkernel> Find(Activation activation, DataType type) {
    auto& table = activation == Activation::kNone ? plain_ : relu_;
    return table.Find(0, names_.at(static_cast<int>(activation)), type);
  }

 private:
  cuda::KernelTable<1> plain_{cuda::kImage_batch_norm};
  cuda::KernelTable<1> relu_{cuda::kImage_batch_norm_relu};
  std::array<std::string_view, 2> names_;
};

template <typename... Arguments>
Status RunStep(
    CUstream stream,
    Step step,
    DataType type,
    const Plan& plan,
    const Arguments&... arguments) {
  const Result<CUkernel> kernel = FindKernel(step, plan.path, type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan.blocks_x),
      .blocks_y = static_cast<unsigned>(plan.walk.slices),
      .threads = own::kThreads};
  return cuda::Launch(*kernel, shape, stream, plan.walk, plan.operands, arguments...);
}

/// `known` keeps the kernel once it is found.
template <typename Finish>
Status RunFinish(
    CUstream stream,
    const char* name,
    std::atomic<CUkernel>* known,
    const Finish& finish,
    const Workspace& workspace) {
  CUkernel kernel = known->load(std::memory_order_acquire);
  if (kernel == nullptr) {
    const Result<CUkernel> found = cuda::FindKernel({&cuda::kImage_batch_norm}, name);
    if (!found.ok()) {
      return found.status();
    }
    kernel = *found;
    known->store(kernel, std::memory_order_release);
  }
  const std::int64_t blocks = CeilDivide(finish.walk.channels, own::kFinishChannels);
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(std::min(blocks, kMaxBlocksX)),
      .threads = own::kFinishChannels * own::kFinishLanes};
  const double* partials = workspace.partials;
  return cuda::Launch(kernel, shape, stream, finish, partials, workspace.coefficients);
}

/// The whole of a forward call.
Status RunWhole(
    CUstream stream,
    Activation activation,
    DataType type,
    const Plan& plan,
    own::ForwardFinish finish,
    const Workspace& workspace) {
  static auto& kernels = *new WholeKernels("gradsmith_bn_forward", "gradsmith_bn_relu_forward");
  const Result<CUkernel> kernel = kernels.Find(activation, type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  // The output may have a say in which dims are one.
  finish.walk = plan.walk;
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan.blocks_x), .threads = own::kThreads};
  return cuda::Launch(*kernel, shape, stream, finish, plan.operands, workspace.coefficients);
}

/// The whole of a call, a thread for each channel.
template <typename Finish>
Status RunShort(
    CUstream stream,
    Activation activation,
    DataType type,
    const Plan& plan,
    const Finish& finish) {
  constexpr bool kForward = std::is_same_v<Finish, own::ForwardFinish>;
  static auto& kernels =
      kForward
          ? *new WholeKernels("gradsmith_bn_short_forward", "gradsmith_bn_relu_short_forward")
          : *new WholeKernels("gradsmith_bn_short_backward", "gradsmith_bn_relu_short_backward");
  const Result<CUkernel> kernel = kernels.Find(activation, type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan.blocks_x), .threads = own::kShortThreads};
  return cuda::Launch(*kernel, shape, stream, finish, plan.operands);
}

template <typename Ref>
Parameter ToParameter(const Ref* tensor) {
  Parameter parameter{};
  if (IsPresent(tensor)) {
    parameter.data = const_cast<void*>(tensor->data);
    parameter.stride = tensor->strides[0];
    parameter.type = static_cast<int>(tensor->type);
    parameter.present = true;
    parameter.accumulate = tensor->accumulate;
  }
  return parameter;
}

own::ForwardFinish MakeForwardFinish(
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    const Plan& plan) {
  return {
      .walk = plan.walk,
      .X = plan.operands.X,
      .type = static_cast<int>(inputs.X->type),
      .epsilon = attributes.epsilon,
      .momentum = attributes.momentum,
      .scale = ToParameter(inputs.scale),
      .bias = ToParameter(inputs.B),
      .running_mean = ToParameter(inputs.running_mean),
      .running_var = ToParameter(inputs.running_var),
      .new_running_mean = ToParameter(outputs.running_mean),
      .new_running_var = ToParameter(outputs.running_var),
      .saved_mean = ToParameter(outputs.saved_mean),
      .saved_inv_std = ToParameter(outputs.saved_inv_std)};
}

Status
FinishForward(CUstream stream, const own::ForwardFinish& finish, const Workspace& workspace) {
  static std::atomic<CUkernel> kernel = nullptr;
  return RunFinish(stream, "gradsmith_bn_finish_forward", &kernel, finish, workspace);
}

Status
FinishBackward(CUstream stream, const own::BackwardFinish& finish, const Workspace& workspace) {
  static std::atomic<CUkernel> kernel = nullptr;
  return RunFinish(stream, "gradsmith_bn_finish_backward", &kernel, finish, workspace);
}

/// Y from the coefficients.
Status Normalize(
    CUstream stream,
    Activation activation,
    const ConstTensorRef& X,
    const TensorRef& Y,
    const Workspace& workspace) {
  const ConstTensorRef output = Y;
  const Plan plan = MakePlan({nullptr, &X, &output});
  const double* coefficients = workspace.coefficients;
  const Step step = activation == Activation::kNone ? Step::kNormalize : Step::kNormalizeRelu;
  return RunStep(stream, step, X.type, plan, coefficients);
}

Plan InputGradientPlan(const BatchNormalizationReluGrad::Inputs& inputs, const TensorRef& dX) {
  const ConstTensorRef output = dX;
  Plan plan = MakePlan({inputs.dY, inputs.X, &output});
  plan.operands.accumulate = dX.accumulate;
  return plan;
}

/// dX from the coefficients.
Status InputGradient(
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const TensorRef& dX,
    const Workspace& workspace) {
  const Plan plan = InputGradientPlan(inputs, dX);
  const double* coefficients = workspace.coefficients;
  const Step step =
      ActivationOf(inputs) == Activation::kNone ? Step::kInputGradient : Step::kReluInputGradient;
  return RunStep(stream, step, dX.type, plan, coefficients);
}

/// The whole of a gradient in one launch; kUnsupported where it cannot be, as where what is asked
/// for, or how it lies, has the map go another way than the sums.
Status RunAtOnce(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    const Plan& sums,
    own::BackwardFinish finish,
    const Workspace& workspace) {
  if (sums.path != Path::kVectors || !IsPresent(outputs.dX)) {
    return {StatusCode::kUnsupported, {}};
  }
  const Plan all = InputGradientPlan(inputs, *outputs.dX);
  const Activation activation = ActivationOf(inputs);
  const DataType type = inputs.dY->type;
  // A map that is cut finer is quicker apart.
  if (!SumAlike(sums, all) || all.walk.slices != sums.walk.slices ||
      !IsResident(device, activation, type, all.blocks_x, all.walk, all.operands)) {
    return {StatusCode::kUnsupported, {}};
  }
  finish.walk = all.walk;
  return RunResident(
      device, stream, activation, type, all.blocks_x, finish, all.operands, workspace.partials,
      workspace.coefficients);
}

own::BackwardFinish MakeBackwardFinish(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    const Plan& plan,
    bool products) {
  own::BackwardFinish finish = {
      .walk = plan.walk,
      .type = static_cast<int>(inputs.dY->type),
      .products = products,
      .normalization = {},
      .dScale = ToParameter(outputs.dScale),
      .dBias = ToParameter(outputs.dBias)};
  if (products) {
    finish.normalization = {
        .mean = ToParameter(inputs.saved_mean),
        .inv_std = ToParameter(inputs.saved_inv_std),
        .scale = ToParameter(inputs.scale),
        .bias = ToParameter(inputs.B)};
  }
  return finish;
}

/// A thread for each channel.
Status ShortBackward(
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    bool products) {
  const ConstTensorRef dX = IsPresent(outputs.dX) ? ConstTensorRef(*outputs.dX) : ConstTensorRef();
  Plan plan = ShortPlan({inputs.dY, products ? inputs.X : nullptr, dX.present ? &dX : nullptr});
  plan.operands.accumulate = dX.accumulate;
  return RunShort(
      stream, ActivationOf(inputs), inputs.dY->type, plan,
      MakeBackwardFinish(inputs, outputs, plan, products));
}

}  // namespace

std::size_t ForwardWorkspace(const cuda::DeviceInfo& /*device*/, const ConstTensorRef& X) {
  return WorkspaceBytes(X);
}

std::size_t BackwardWorkspace(const cuda::DeviceInfo& /*device*/, const ConstTensorRef& X) {
  return WorkspaceBytes(X);
}

Status Forward(
    const cuda::DeviceInfo& /*device*/,
    CUstream stream,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    void* workspace) {
  const ConstTensorRef& X = *inputs.X;
  if (X.dims[1] == 0) {
    return {};
  }
  if (IsShort(X)) {
    const ConstTensorRef Y = IsPresent(outputs.Y) ? ConstTensorRef(*outputs.Y) : ConstTensorRef();
    const Plan plan = ShortPlan({nullptr, &X, Y.present ? &Y : nullptr});
    return RunShort(
        stream, activation, X.type, plan, MakeForwardFinish(attributes, inputs, outputs, plan));
  }
  const Workspace parts(workspace, X.dims[1]);
  Plan plan;
  plan.walk = EmptyWalk(X.dims);
  const bool empty = SamplesPerChannel(X.dims) == 0;
  if (!empty) {
    plan = MakePlan({nullptr, &X, nullptr});
  }
  const own::ForwardFinish finish = MakeForwardFinish(attributes, inputs, outputs, plan);
  if (plan.whole && IsPresent(outputs.Y)) {
    const ConstTensorRef Y = *outputs.Y;
    if (const Plan all = MakePlan({nullptr, &X, &Y}); SumAlike(plan, all)) {
      return RunWhole(stream, activation, X.type, all, finish, parts);
    }
  }
  if (!empty) {
    if (Status status =
            RunStep(stream, Step::kMoments, X.type, plan, own::Normalization{}, parts.partials);
        !status.ok()) {
      return status;
    }
  }
  if (Status status = FinishForward(stream, finish, parts); !status.ok()) {
    return status;
  }
  return empty || !IsPresent(outputs.Y) ? Status()
                                        : Normalize(stream, activation, X, *outputs.Y, parts);
}

Status Backward(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    void* workspace) {
  const Dims& dims = inputs.dY->dims;
  const Activation activation = ActivationOf(inputs);
  const bool has_activation = activation != Activation::kNone;
  const bool products = has_activation || IsPresent(outputs.dX) || IsPresent(outputs.dScale);
  if (dims[1] == 0 || (!products && !IsPresent(outputs.dBias))) {
    return {};
  }
  if (IsShort(*inputs.dY) && (!IsPresent(inputs.X) || IsShort(*inputs.X))) {
    return ShortBackward(stream, inputs, outputs, products);
  }
  const Workspace parts(workspace, dims[1]);
  Plan plan;
  plan.walk = EmptyWalk(dims);
  const bool empty = SamplesPerChannel(dims) == 0;
  if (!empty) {
    plan = MakePlan({inputs.dY, products ? inputs.X : nullptr, nullptr});
  }
  const own::BackwardFinish finish = MakeBackwardFinish(inputs, outputs, plan, products);
  Status status = RunAtOnce(device, stream, inputs, outputs, plan, finish, parts);
  if (status.code() != StatusCode::kUnsupported) {
    return status;
  }
  if (!empty) {
    const Step alone = products ? Step::kGradientSums : Step::kBiasSums;
    const Step step = has_activation ? Step::kReluGradientSums : alone;
    status = RunStep(stream, step, inputs.dY->type, plan, finish.normalization, parts.partials);
    if (!status.ok()) {
      return status;
    }
  }
  status = FinishBackward(stream, finish, parts);
  if (!status.ok()) {
    return status;
  }
  return empty || !IsPresent(outputs.dX) ? Status()
                                         : InputGradient(stream, inputs, *outputs.dX, parts);
}

}  // namespace gradsmith::batch_norm
