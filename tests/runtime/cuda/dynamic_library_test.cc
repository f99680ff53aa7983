#include "cuda/dynamic_library.h"

#include <gtest/gtest.h>

#include <string>

namespace gradsmith::cuda {
namespace {

TEST(DynamicLibrary, TakesTheFirstThatLoads) {
  const Result<DynamicLibrary> library =
      DynamicLibrary::Open({"/nowhere/libm.so.6", "libm.so.6", "/nowhere/other.so"});
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_TRUE(library->path().ends_with("libm.so.6")) << library->path();
  EXPECT_TRUE(library->path().starts_with("/")) << library->path();
  double (*square_root)(double) = nullptr;
  ASSERT_TRUE(library->Find("sqrt", &square_root).ok());
  EXPECT_EQ(square_root(9), 3);
}

TEST(DynamicLibrary, TheErrorNamesWhatWasTriedAndWhy) {
  const Status status = DynamicLibrary::Open({"/nowhere/first.so", "libnowhere.so.99"}).status();
  for (const char* part : {"/nowhere/first.so", "libnowhere.so.99", "No such file"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(DynamicLibrary, TheErrorNamesASymbolThatIsMissingAndTheFile) {
  const Result<DynamicLibrary> library = DynamicLibrary::Open({"libm.so.6"});
  ASSERT_TRUE(library.ok()) << library.status().message();
  void (*function)() = nullptr;
  const Status status = library->Find("gradsmith_is_not_here", &function);
  for (const char* part : {"gradsmith_is_not_here", "libm.so.6"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace gradsmith::cuda
