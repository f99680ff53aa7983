#ifndef GRADSMITH_BENCH_GPU_SUITE_H_
#define GRADSMITH_BENCH_GPU_SUITE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// The cases of bench/suites: tab-separated, with a heading that names the columns.
namespace gradsmith::bench {

/// SuiteCase is one line of a suite.
class SuiteCase {
 public:
  explicit SuiteCase(std::map<std::string, std::string> columns) : columns_(std::move(columns)) {}

  [[nodiscard]] bool channels_last() const { return Text("layout") == "NHWC"; }

  /// A column's text; empty where there is no such column.
  [[nodiscard]] std::string Text(const std::string& column) const;
  [[nodiscard]] std::int64_t Number(const std::string& column) const;
  /// "3,3" as a list.
  [[nodiscard]] IntList Numbers(const std::string& column) const;

  /// "rn50_stem f16 NHWC"; where there is a column scale_type, "128x64x112x112 f16/f32 NHWC".
  [[nodiscard]] std::string Name() const;

 private:
  std::map<std::string, std::string> columns_;
};

/// ReadSuite returns all cases of a file, or says what is wrong with it.
Result<std::vector<SuiteCase>> ReadSuite(const std::string& path);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_SUITE_H_
