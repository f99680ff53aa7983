#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"

/// Runs a fuzz target where there is no libFuzzer: the files of a corpus, then mutants of them,
/// each of which depends on the seed and its number alone. What ends the process is kept in a file.
///
///     <target> [-runs=N] [-seed=N] FILE_OR_FOLDER...
///
/// Files that are named are run alone. GRADSMITH_FUZZ_TIMES multiplies the runs.

/// The address sanitizer ends the process by itself, and calls this before.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

/// That of undefined behaviour calls nothing, but may abort.
extern "C" const char* __ubsan_default_options() {
  return "abort_on_error=1:print_stacktrace=1";
}

namespace gradsmith::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Of the processor's time, so that a busy machine does not count.
constexpr int kMostSeconds = 60;
constexpr std::size_t kMostBytes = 65536;

/// What is run, and where it is kept if that ends the process.
struct {
  const Bytes* input = nullptr;
  std::string path;
} running;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): for signals

/// May be called by a signal: it allocates nothing.
void Keep() {
  if (running.input == nullptr) {
    return;
  }
  const int file = open(running.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool is_kept = file >= 0;
  is_kept = is_kept && write(file, running.input->data(), running.input->size()) >= 0;
  for (const std::string_view text :
       {std::string_view(is_kept ? "\nfuzz: the input is kept as " : "\nfuzz: the input is lost: "),
        std::string_view(running.path), std::string_view("\n")}) {
    is_kept = write(STDERR_FILENO, text.data(), text.size()) >= 0;
  }
  running.input = nullptr;
}

void OnSignal(int number) {
  if (number == SIGPROF) {
    constexpr std::string_view kSlow = "\nfuzz: an input takes too long";
    static_cast<void>(!write(STDERR_FILENO, kSlow.data(), kSlow.size()));
  }
  Keep();
  std::signal(number, SIG_DFL);
  raise(number);
}

void Run(const Bytes& input) {
  running.input = &input;
  itimerval limit{};
  limit.it_value.tv_sec = kMostSeconds;
  setitimer(ITIMER_PROF, &limit, nullptr);
  // Of a size of its own, so that whoever reads beyond it is seen.
  const Bytes exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  running.input = nullptr;
}

Bytes Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

using Chance = std::mt19937_64;

std::size_t Below(Chance& chance, std::size_t count) {
  return count == 0 ? 0 : chance() % count;
}

/// One change: bits flipped, bytes set, dropped, doubled, moved, or taken from another input.
void Change(Bytes& bytes, const Bytes& other, Chance& chance) {
  const auto at = [&](std::size_t place) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(place);
  };
  const std::size_t begin = Below(chance, bytes.size() + 1);
  constexpr std::size_t kLengths[] = {1, 1, 1, 2, 8, 64};
  const std::size_t end =
      std::min(bytes.size(), begin + kLengths[Below(chance, std::size(kLengths))]);
  const Bytes piece(at(begin), at(end));
  constexpr std::uint8_t kOdd[] = {0, 1, 0x7F, 0x80, 0xFF, '\t', '\n', '.'};
  switch (Below(chance, 6)) {
    case 0:
      std::for_each(at(begin), at(end), [&](std::uint8_t& byte) {
        byte = static_cast<std::uint8_t>(byte ^ 1U << Below(chance, 8));
      });
      break;
    case 1:
      std::fill(at(begin), at(end), kOdd[Below(chance, std::size(kOdd))]);
      break;
    case 2:
      bytes.erase(at(begin), at(end));
      break;
    case 3:
      bytes.insert(at(Below(chance, bytes.size() + 1)), piece.begin(), piece.end());
      break;
    case 4:
      bytes.insert(at(begin), 1 + Below(chance, 8), static_cast<std::uint8_t>(chance()));
      break;
    default: {
      const std::size_t from = Below(chance, other.size() + 1);
      const std::size_t count = Below(chance, other.size() - from + 1);
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
      bytes.insert(at(begin), first, first + static_cast<std::ptrdiff_t>(count));
    }
  }
}

Bytes Mutant(const std::vector<Bytes>& corpus, Chance& chance) {
  const auto any = [&]() -> const Bytes& { return corpus[Below(chance, corpus.size())]; };
  Bytes bytes = any();
  for (std::size_t changes = 1 + Below(chance, 8); changes > 0; --changes) {
    Change(bytes, any(), chance);
  }
  bytes.resize(std::min(bytes.size(), kMostBytes));
  return bytes;
}

struct Options {
  std::uint64_t runs = 1000;
  std::uint64_t seed = 0;
  std::vector<std::filesystem::path> files;
  bool has_folder = false;
};

std::uint64_t Number(std::string_view text) {
  std::uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  Expect(end.ec == std::errc() && end.ptr == text.data() + text.size(), "an option is no number");
  return number;
}

std::uint64_t Environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? otherwise : Number(value);
}

Options ReadOptions(const std::vector<std::string_view>& arguments) {
  Options options;
  options.seed = Environment("GRADSMITH_FUZZ_SEED", 0);
  for (const std::string_view argument : arguments) {
    if (argument.starts_with("-runs=")) {
      options.runs = Number(argument.substr(6));
    } else if (argument.starts_with("-seed=")) {
      options.seed = Number(argument.substr(6));
    } else if (std::filesystem::is_directory(argument)) {
      options.has_folder = true;
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        options.files.push_back(entry.path());
      }
    } else {
      options.files.emplace_back(argument);
    }
  }
  options.runs = options.has_folder ? options.runs * Environment("GRADSMITH_FUZZ_TIMES", 1) : 0;
  std::ranges::sort(options.files);
  return options;
}

int Main(const std::string& program, const Options& options) {
  running.path = "finding-" + std::filesystem::path(program).filename().string();
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF}) {
    if (__sanitizer_set_death_callback == nullptr || number == SIGABRT || number == SIGPROF) {
      std::signal(number, &OnSignal);
    }
  }
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(&Keep);
  }
  std::vector<Bytes> corpus;
  for (const std::filesystem::path& path : options.files) {
    corpus.push_back(Read(path));
    std::cerr << path.filename().string() << "\n";
    Run(corpus.back());
  }
  Expect(!corpus.empty(), "there is no corpus");
  if (options.has_folder && FuzzTargetHasRunCorpus != nullptr) {
    FuzzTargetHasRunCorpus();
  }
  for (std::uint64_t number = 0; number < options.runs; ++number) {
    std::seed_seq seed{options.seed, number};
    Chance chance(seed);
    Run(Mutant(corpus, chance));
  }
  std::cout << corpus.size() << " files, " << options.runs << " mutants of seed " << options.seed
            << ": nothing found\n";
  return 0;
}

}  // namespace
}  // namespace gradsmith::fuzz

int main(int argc, char** argv) {
  return gradsmith::fuzz::Main(argv[0], gradsmith::fuzz::ReadOptions({argv + 1, argv + argc}));
}
