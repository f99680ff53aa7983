#include "emulated_gpu/static_shared.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "emulated_gpu/block.h"

namespace emulated_gpu {

namespace {

/// Whether a mangled name is that of a variable within a function of kernels.
bool IsOfKernel(std::string_view name) {
  return name.starts_with("_ZZ") && !name.starts_with("_ZZNSt") && !name.starts_with("_ZZNKSt") &&
         name.find("emulated") == std::string_view::npos;
}

template <typename T>
T At(const std::string& file, std::size_t offset) {
  T value;
  if (offset + sizeof(T) > file.size()) {
    Fail("symbols could not be read");
  }
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

std::vector<Variable> Read(const char* path, ElfW(Addr) base) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file(
      (std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const auto header = At<ElfW(Ehdr)>(file, 0);
  const auto section = [&](std::size_t i) {
    return At<ElfW(Shdr)>(file, header.e_shoff + (i * sizeof(ElfW(Shdr))));
  };
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) {
      continue;
    }
    const std::size_t names = section(symbols.sh_link).sh_offset;
    for (std::size_t at = 0; at < symbols.sh_size; at += sizeof(ElfW(Sym))) {
      const auto symbol = At<ElfW(Sym)>(file, symbols.sh_offset + at);
      const char* name = file.c_str() + names + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx < header.e_shnum &&
          section(symbol.st_shndx).sh_type == SHT_NOBITS && IsOfKernel(name)) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): where the loader has put it
        variables.emplace_back(
            reinterpret_cast<std::byte*>(base + symbol.st_value), symbol.st_size);
      }
    }
  }
  return variables;
}

}  // namespace

const std::vector<Variable>& StaticSharedOf(const void* kernel) {
  static auto& known = *new std::map<std::string, std::vector<Variable>>;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(kernel, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
    Fail("a kernel is in no library");
  }
  const auto found = known.find(info.dli_fname);
  return found != known.end()
             ? found->second
             : known.emplace(info.dli_fname, Read(info.dli_fname, map->l_addr)).first->second;
}

}  // namespace emulated_gpu
