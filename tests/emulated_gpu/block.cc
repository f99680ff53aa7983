#include "emulated_gpu/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "emulated_gpu/static_shared.h"
#include "emulated_gpu/switch_stack.h"

namespace emulated_gpu {

Indices indices = {};
DynamicShared dynamic_shared = {};

namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10U;
constexpr std::size_t kPageBytes = std::size_t{64} << 10U;  // or a divisor of it, everywhere

/// Memory that ends where nothing may be read or written.
std::byte* MapGuarded(std::size_t size) {
  void* base = mmap(
      nullptr, size + kPageBytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED ||
      mprotect(static_cast<std::byte*>(base) + size, kPageBytes, PROT_NONE) != 0) {
    Fail("no memory for the emulated GPU");
  }
  return static_cast<std::byte*>(base);
}

std::mt19937& Random() {
  static std::mt19937 random(SeedOfEnvironment());
  return random;
}

struct Copy {
  std::byte* to;
  const void* from;
  int bytes;
  int read;  // the rest becomes 0
  int group;
};

void Finish(const Copy& copy) {
  std::memset(copy.to, 0, copy.bytes);
  if (copy.read > 0) {
    std::memcpy(copy.to, copy.from, copy.read);
  }
}

/// What threads wait for: its generation changes when they may go on.
struct Gate {
  unsigned generation = 0;
};

/// What some warps of a block wait at.
struct Barrier {
  Gate gate;
  unsigned threads = 0;
  unsigned arrived = 0;
};

/// A barrier in shared memory.
struct CountingBarrier {
  Gate gate;  // its generation counts the phases
  int arrivals = 0;
  int missing = 0;
  int bytes = 0;  // that are still to be copied
  int waiting = 0;
  std::vector<Copy> copies;
};

struct Warp {
  Gate gate;
  unsigned alive = 0;
  unsigned arrived = 0;
  unsigned lanes = 0;
  void (*combine)(Exchanged*) = nullptr;
  // A lane may give to an exchange while another still reads what the one before gave.
  Exchanged exchanged[2];
};

/// Fiber is a thread of a block. Its stack serves block after block.
class Fiber {
 public:
  using Body = void (*)();

  /// Stacks begin at different places of their pages, so as not to compete for the same cache
  /// lines.
  Fiber(Body body, std::size_t number)
      : place(NewStack(
            MapGuarded(kStackBytes) + kStackBytes - (number * kStagger % kMostStagger),
            body)) {}

  uint3 index = {};
  unsigned number = 0;
  bool done = false;
  const Gate* gate = nullptr;
  unsigned generation = 0;
  std::deque<Copy> copies;
  int group = 0;

  [[nodiscard]] bool CanRun() const {
    return !done && (gate == nullptr || gate->generation != generation);
  }

  /// The place at which the fiber goes on.
  void* place;

 private:
  static constexpr std::size_t kStagger = 1088;
  static constexpr std::size_t kMostStagger = kStackBytes / 4;
};

/// Not a number in any type: what shared memory has before it is written.
constexpr int kPoison = 0xFF;

void Poison(const Variable& variable) {
  std::memset(variable.data(), kPoison, variable.size());
}

/// Each byte is compared with the next, many at a time.
bool IsPoisoned(const Variable& variable) {
  const std::byte* const data = variable.data();
  return variable.empty() ||
         (data[0] == std::byte{kPoison} && std::memcmp(data, data + 1, variable.size() - 1) == 0);
}

/// The static shared memory of kernels, as blocks before have left it.
class StaticShared {
 public:
  /// Before a kernel's block: poisons what blocks of it have written.
  void Begin(const void* kernel) {
    uses_ = &uses_of_[kernel];
    if (uses_->launches == 0) {
      uses_->all = &StaticSharedOf(kernel);
      for (const Variable& variable : *uses_->all) {
        Poison(variable);
      }
    }
    for (const Variable& variable : uses_->variables) {
      Poison(variable);
    }
  }

  /// After it: finds what the block has written, in the first blocks of a kernel.
  void End() {
    if (uses_->launches == kWatched) {
      return;
    }
    ++uses_->launches;
    uses_->variables.clear();
    for (const Variable& variable : *uses_->all) {
      if (!IsPoisoned(variable)) {
        uses_->variables.push_back(variable);
      }
    }
  }

 private:
  static constexpr int kWatched = 8;

  struct Uses {
    int launches = 0;
    const std::vector<Variable>* all = nullptr;  // of its library; they stay where they are
    std::vector<Variable> variables;
  };

  std::map<const void*, Uses> uses_of_;
  Uses* uses_ = nullptr;
};

/// Block is a block of a launch, or one after the other of them.
class Block {
 public:
  Block() : shared_(MapGuarded(kSharedBytes)) {}

  void Begin(const Launch& launch, Order order) {
    launch_ = &launch;
    order_ = order;
    const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
    while (fibers_.size() < threads) {
      fibers_.push_back(std::make_unique<Fiber>(&Block::Body, fibers_.size()));
    }
    threads_ = threads;
    warps_.resize((threads + kWarp - 1) / kWarp);
    turns_.resize(warps_.size());
    std::iota(turns_.begin(), turns_.end(), 0U);
    std::iota(lanes_.begin(), lanes_.end(), 0U);
    if (order == Order::kBackward) {
      std::reverse(turns_.begin(), turns_.end());
      std::reverse(lanes_.begin(), lanes_.end());
    }
  }

  /// Begins with another block of the launch.
  void Open(const uint3& index) {
    index_ = index;
    Reset();
  }

  /// Runs the block to its end, or until all of its threads wait for those of other blocks.
  void Run(StaticShared* static_shared) {
    indices.block = index_;
    indices.block_size = launch_->block;
    indices.grid_size = launch_->grid;
    dynamic_shared = {shared(), SharedBytes()};
    static_shared->Begin(launch_->kernel);
    while (alive_ > 0 && !waits_for_grid()) {
      if (order_ == Order::kShuffled) {
        std::shuffle(turns_.begin(), turns_.end(), Random());
        std::shuffle(lanes_.begin(), lanes_.end(), Random());
      }
      turn_ = 0;
      lane_ = 0;
      has_run_ = false;
      if (!Enter(&scheduler_)) {
        Fail(
            "%s: threads of block (%u, %u, %u) wait for each other: %u of %u at __syncthreads, %u at "
            "a barrier of the grid",
            launch_->name, index_.x, index_.y, index_.z, arrived_, alive_, arrived_at_grid_);
      }
    }
    static_shared->End();
    for (const auto& [address, barrier] : counting_) {
      if (is_done() && !barrier.copies.empty()) {
        Fail("%s: a block ends before copies to its shared memory have", launch_->name);
      }
    }
  }

  [[nodiscard]] bool is_done() const { return alive_ == 0; }
  [[nodiscard]] bool waits_for_grid() const { return alive_ > 0 && arrived_at_grid_ == threads_; }

  void OpenGrid() {
    arrived_at_grid_ = 0;
    ++grid_gate_.generation;
  }

  void SyncGrid() {
    if (!launch_->cooperative) {
      Fail("%s: a barrier of the grid, and the launch was not cooperative", launch_->name);
    }
    ++arrived_at_grid_;
    WaitAt(grid_gate_);
  }

  void SyncThreads() {
    ++arrived_;
    if (!OpenIfAllAreHere()) {
      WaitAt(gate_);
    }
  }

  /// A barrier for so many threads of whole warps, by its number.
  void SyncSome(unsigned barrier, unsigned threads) {
    if (barrier >= barriers_.size() || threads % kWarp != 0 || threads > threads_) {
      Fail("%s: no barrier %u for %u threads", launch_->name, barrier, threads);
    }
    Barrier& some = barriers_[barrier];
    if (some.arrived != 0 && some.threads != threads) {
      Fail(
          "%s: threads come to barrier %u for %u and %u", launch_->name, barrier, some.threads,
          threads);
    }
    some.threads = threads;
    if (++some.arrived < threads) {
      WaitAt(some.gate);
      return;
    }
    some.arrived = 0;
    ++some.gate.generation;
  }

  Exchanged* BeginExchange(unsigned lanes, void (*combine)(Exchanged*)) {
    Warp& warp = warps_[current_->number / kWarp];
    const unsigned lane = current_->number % kWarp;
    if (warp.arrived != 0 && warp.lanes != lanes) {
      Fail("%s: lanes of a warp name %08x and %08x", launch_->name, warp.lanes, lanes);
    }
    if (warp.arrived != 0 && warp.combine != combine) {
      Fail("%s: lanes of a warp meet in different instructions", launch_->name);
    }
    if ((lanes >> lane & 1U) == 0) {
      Fail("%s: lane %u is not among those that it names, %08x", launch_->name, lane, lanes);
    }
    warp.lanes = lanes;
    warp.combine = combine;
    warp.arrived |= 1U << lane;
    return &warp.exchanged[warp.gate.generation % 2];
  }

  void EndExchange() {
    Warp& warp = warps_[current_->number / kWarp];
    if (!OpenIfAllAreHere(&warp)) {
      WaitAt(warp.gate);
    }
  }

  [[nodiscard]] std::byte* shared() const { return shared_ + kSharedBytes - SharedBytes(); }

  unsigned AddressOf(const void* at) const {
    const std::ptrdiff_t address = static_cast<const std::byte*>(at) - shared();
    if (address < 0 || address > static_cast<std::ptrdiff_t>(SharedBytes())) {
      Fail("%s: an address is outside of dynamic shared memory", launch_->name);
    }
    return static_cast<unsigned>(address);
  }

  [[noreturn]] void FailAtShared(unsigned address, std::size_t size) const {
    Fail(
        "%s: %zu bytes at %u of %u bytes of shared memory", launch_->name, size, address,
        SharedBytes());
  }

  std::byte* At(unsigned address, std::size_t size) const {
    if ((address & (size - 1)) != 0 || address + size > SharedBytes()) {  // a power of two
      FailAtShared(address, size);
    }
    return shared() + address;
  }

  void BeginCopy(unsigned to, const void* from, int bytes, int read) {
    if (read > 0 && reinterpret_cast<std::uintptr_t>(from) % bytes != 0) {
      Fail("%s: a copy from %p, which is not aligned to %d bytes", launch_->name, from, bytes);
    }
    const Copy copy = {At(to, bytes), from, bytes, read, current_->group};
    if (order_ == Order::kBackward || (order_ == Order::kShuffled && Random()() % 2 == 0)) {
      Finish(copy);
    } else {
      current_->copies.push_back(copy);
    }
  }

  void InitBarrier(unsigned barrier, int arrivals) {
    At(barrier, kBarrierBytes);
    CountingBarrier& counting = counting_[barrier];
    counting.arrivals = arrivals;
    counting.missing = arrivals;
  }

  void Arrive(unsigned address, int bytes) {
    CountingBarrier& barrier = CountingAt(address);
    if (barrier.missing == 0) {
      Fail("%s: more arrive at a barrier than it waits for", launch_->name);
    }
    --barrier.missing;
    barrier.bytes += bytes;
    EndPhaseIfOver(&barrier);
  }

  /// Copies are done when somebody waits for them, at once, or either.
  void WaitForPhase(unsigned address, int parity) {
    CountingBarrier& barrier = CountingAt(address);
    while (static_cast<int>(barrier.gate.generation % 2) == parity) {
      if (barrier.copies.empty()) {
        ++barrier.waiting;
        WaitAt(barrier.gate);
        --barrier.waiting;
      }
      FinishCopies(&barrier);
    }
  }

  void BeginBulkCopy(unsigned to, const void* from, int bytes, unsigned address) {
    constexpr int kUnit = 16;
    CountingBarrier& barrier = CountingAt(address);
    if (bytes <= 0 || bytes % kUnit != 0 || reinterpret_cast<std::uintptr_t>(from) % kUnit != 0) {
      Fail(
          "%s: a bulk copy of %d bytes from %p; expected multiples of 16", launch_->name, bytes,
          from);
    }
    if (to + static_cast<unsigned>(bytes) > SharedBytes()) {
      FailAtShared(to, static_cast<std::size_t>(bytes));
    }
    barrier.copies.push_back({At(to, kUnit), from, bytes, bytes, 0});
    if (barrier.waiting > 0 || order_ == Order::kBackward ||
        (order_ == Order::kShuffled && Random()() % 2 == 0)) {
      FinishCopies(&barrier);
    }
  }

  void EndOfCopies() { ++current_->group; }

  void WaitForCopies(int pending) {
    std::deque<Copy>& copies = current_->copies;
    while (!copies.empty() && copies.front().group < current_->group - pending) {
      Finish(copies.front());
      copies.pop_front();
    }
  }

 private:
  static constexpr std::size_t kSharedBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kBarrierBytes = 8;

  CountingBarrier& CountingAt(unsigned address) {
    const auto found = counting_.find(address);
    if (found == counting_.end()) {
      Fail("%s: there is no barrier at %u of shared memory", launch_->name, address);
    }
    return found->second;
  }

  void FinishCopies(CountingBarrier* barrier) const {
    for (const Copy& copy : barrier->copies) {
      Finish(copy);
      barrier->bytes -= copy.bytes;
    }
    barrier->copies.clear();
    EndPhaseIfOver(barrier);
  }

  /// Bytes may be copied before it is said that they would be.
  static void EndPhaseIfOver(CountingBarrier* barrier) {
    if (barrier->missing == 0 && barrier->bytes == 0) {
      barrier->missing = barrier->arrivals;
      ++barrier->gate.generation;
    }
  }

  static void Body();

  [[nodiscard]] unsigned SharedBytes() const { return (launch_->shared_bytes + 15) / 16 * 16; }

  void Reset() {
    const dim3& size = launch_->block;
    alive_ = threads_;
    arrived_ = 0;
    arrived_at_grid_ = 0;
    for (Barrier& barrier : barriers_) {
      barrier.arrived = 0;
    }
    counting_.clear();
    for (unsigned i = 0; i < alive_; ++i) {
      Fiber& fiber = *fibers_[i];
      fiber.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
      fiber.number = i;
      fiber.done = false;
      fiber.gate = nullptr;
      fiber.group = 0;
    }
    for (unsigned i = 0; i < warps_.size(); ++i) {
      const unsigned lanes = std::min(alive_ - (i * kWarp), kWarp);
      warps_[i].alive = lanes == kWarp ? ~0U : (1U << lanes) - 1;
      warps_[i].arrived = 0;
    }
    std::memset(shared(), kPoison, SharedBytes());
  }

  void EndOfThread() {
    WaitForCopies(-1);
    current_->done = true;
    --alive_;
    if (arrived_ > 0) {
      OpenIfAllAreHere();
    }
    Warp& warp = warps_[current_->number / kWarp];
    warp.alive &= ~(1U << current_->number % kWarp);
    if (warp.arrived != 0) {
      OpenIfAllAreHere(&warp);
    }
    Leave();
  }

  /// Goes on with the next thread whose turn it is and that can run, and returns when somebody
  /// comes back to `*here`; false where there is none. A warp's turn lasts until it can go no
  /// further, so that warps run ahead of each other as far as barriers let them.
  bool Enter(void** here) {
    while (turn_ < turns_.size()) {
      if (lane_ == kWarp) {
        turn_ += has_run_ ? 0 : 1;
        lane_ = 0;
        has_run_ = false;
        continue;
      }
      const unsigned number = (turns_[turn_] * kWarp) + lanes_[lane_++];
      if (number < threads_ && fibers_[number]->CanRun()) {
        has_run_ = true;
        current_ = fibers_[number].get();
        indices.thread = current_->index;
        emulated_gpu_switch_stack(here, current_->place);
        return true;
      }
    }
    return false;
  }

  /// Lets others run: after the last one's turn, the scheduler.
  void Leave() {
    void** here = &current_->place;
    if (!Enter(here)) {
      emulated_gpu_switch_stack(here, scheduler_);
    }
  }

  bool OpenIfAllAreHere() {
    if (arrived_ < alive_) {
      return false;
    }
    arrived_ = 0;
    ++gate_.generation;
    return true;
  }

  static bool OpenIfAllAreHere(Warp* warp) {
    if (warp->arrived != (warp->lanes & warp->alive)) {
      return false;
    }
    warp->arrived = 0;
    if (warp->combine != nullptr) {
      warp->combine(&warp->exchanged[warp->gate.generation % 2]);
    }
    ++warp->gate.generation;
    return true;
  }

  void WaitAt(const Gate& gate) {
    current_->gate = &gate;
    current_->generation = gate.generation;
    Leave();
    current_->gate = nullptr;
  }

  const Launch* launch_ = nullptr;
  Order order_ = Order::kForward;
  uint3 index_ = {};
  std::byte* shared_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  unsigned threads_ = 0;
  /// The order of warps, and of lanes in each; whose turn it is, and whether it has used it.
  std::vector<unsigned> turns_;
  std::array<unsigned, kWarp> lanes_{};
  std::size_t turn_ = 0;
  unsigned lane_ = 0;
  bool has_run_ = false;
  void* scheduler_ = nullptr;
  std::vector<Warp> warps_;
  Fiber* current_ = nullptr;
  Gate gate_;
  std::array<Barrier, 16> barriers_;
  std::map<unsigned, CountingBarrier> counting_;  // by their addresses
  unsigned alive_ = 0;
  unsigned arrived_ = 0;
  /// Of the grid: opened by who has seen all blocks come to it.
  Gate grid_gate_;
  unsigned arrived_at_grid_ = 0;
};

// The block that runs.
Block* the_block = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void Block::Body() {
  for (;;) {
    the_block->launch_->thread();
    the_block->EndOfThread();
  }
}

}  // namespace

unsigned SeedOfEnvironment() {
  const char* seed = std::getenv("EMULATED_GPU_SEED");  // NOLINT(concurrency-mt-unsafe)
  return seed == nullptr ? 1U : static_cast<unsigned>(std::strtoul(seed, nullptr, 10));
}

Order OrderOfEnvironment() {
  const char* text = std::getenv("EMULATED_GPU_ORDER");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view order = text == nullptr ? "forward" : text;
  if (order == "backward") {
    return Order::kBackward;
  }
  if (order == "shuffled") {
    return Order::kShuffled;
  }
  if (order != "forward") {
    Fail("EMULATED_GPU_ORDER is %s; expected forward, backward or shuffled", text);
  }
  return Order::kForward;
}

void Fail(const char* format, ...) {
  std::fputs("emulated GPU: ", stderr);
  va_list arguments;  // NOLINT(cppcoreguidelines-init-variables)
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputs("\n", stderr);
  std::abort();
}

namespace {

/// The places of a launch's blocks, in the order in which they come.
std::vector<uint3> PlacesOf(const Launch& launch, Order order) {
  const dim3& grid = launch.grid;
  std::vector<unsigned> numbers(std::size_t{grid.x} * grid.y * grid.z);
  std::iota(numbers.begin(), numbers.end(), 0U);
  if (order == Order::kBackward) {
    std::reverse(numbers.begin(), numbers.end());
  } else if (order == Order::kShuffled) {
    std::shuffle(numbers.begin(), numbers.end(), Random());
  }
  std::vector<uint3> places;
  places.reserve(numbers.size());
  for (const unsigned i : numbers) {
    places.push_back({i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y});
  }
  return places;
}

/// Blocks with memory and stacks of their own, made when they are first needed.
class Blocks {
 public:
  Block& At(std::size_t number) {
    while (blocks_.size() <= number) {
      blocks_.push_back(std::make_unique<Block>());
    }
    return *blocks_[number];
  }

  void Run(std::size_t number) {
    the_block = &At(number);
    the_block->Run(&static_shared_);
  }

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
  StaticShared static_shared_;
};

/// All blocks in turn from one barrier of the grid to the next.
void RunTogether(const Launch& launch, Order order, Blocks* blocks) {
  const std::vector<uint3> places = PlacesOf(launch, order);
  for (std::size_t i = 0; i < places.size(); ++i) {
    blocks->At(i).Begin(launch, order);
    blocks->At(i).Open(places[i]);
  }
  std::vector<std::size_t> turns(places.size());
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  for (std::size_t waiting = turns.size(); waiting > 0;) {
    if (order == Order::kShuffled) {
      std::shuffle(turns.begin(), turns.end(), Random());
    }
    waiting = 0;
    for (const std::size_t i : turns) {
      blocks->Run(i);
      waiting += blocks->At(i).waits_for_grid() ? 1 : 0;
    }
    if (waiting != 0 && waiting != turns.size()) {
      Fail(
          "%s: %zu of %zu blocks wait at a barrier of the grid, the others have ended", launch.name,
          waiting, turns.size());
    }
    for (const std::size_t i : turns) {
      blocks->At(i).OpenGrid();
    }
  }
}

}  // namespace

void Run(const Launch& launch, Order order) {
  static std::mutex mutex;
  static auto& blocks = *new Blocks;
  const std::scoped_lock lock(mutex);
  if (launch.cooperative) {
    RunTogether(launch, order, &blocks);
    return;
  }
  blocks.At(0).Begin(launch, order);
  for (const uint3& place : PlacesOf(launch, order)) {
    blocks.At(0).Open(place);
    blocks.Run(0);
  }
}

void SyncThreads() {
  the_block->SyncThreads();
}

void SyncSome(unsigned barrier, unsigned threads) {
  the_block->SyncSome(barrier, threads);
}

void SyncGrid() {
  the_block->SyncGrid();
}

Exchanged* BeginExchange(unsigned lanes, void (*combine)(Exchanged*)) {
  return the_block->BeginExchange(lanes, combine);
}

void EndExchange() {
  the_block->EndExchange();
}

void FailAtShared(unsigned address, std::size_t size) {
  the_block->FailAtShared(address, size);
}

unsigned SharedAddressOf(const void* shared) {
  return the_block->AddressOf(shared);
}

void BeginCopy(unsigned to, const void* from, int bytes, int read) {
  the_block->BeginCopy(to, from, bytes, read);
}

void EndOfCopies() {
  the_block->EndOfCopies();
}

void WaitForCopies(int pending) {
  the_block->WaitForCopies(pending);
}

void InitBarrier(unsigned barrier, int arrivals) {
  the_block->InitBarrier(barrier, arrivals);
}

void Arrive(unsigned barrier, int bytes) {
  the_block->Arrive(barrier, bytes);
}

void WaitForPhase(unsigned barrier, int parity) {
  the_block->WaitForPhase(barrier, parity);
}

void BeginBulkCopy(unsigned to, const void* from, int bytes, unsigned barrier) {
  the_block->BeginBulkCopy(to, from, bytes, barrier);
}

}  // namespace emulated_gpu
