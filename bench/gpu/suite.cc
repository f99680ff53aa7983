#include "gpu/suite.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace gradsmith::bench {

namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

std::string SuiteCase::Text(const std::string& column) const {
  const auto found = columns_.find(column);
  return found == columns_.end() ? "" : found->second;
}

std::int64_t SuiteCase::Number(const std::string& column) const {
  return std::strtoll(Text(column).c_str(), nullptr, 10);
}

IntList SuiteCase::Numbers(const std::string& column) const {
  IntList numbers;
  for (const std::string& part : Split(Text(column), ',')) {
    numbers.push_back(std::strtoll(part.c_str(), nullptr, 10));
  }
  return numbers;
}

std::string SuiteCase::Name() const {
  const std::string scale = Text("scale_type");
  return Text("case") + " " + Text("type") + (scale.empty() ? "" : "/" + scale) + " " +
         Text("layout");
}

Result<std::vector<SuiteCase>> ReadSuite(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    return InvalidArgument("cannot read " + path);
  }
  const std::vector<std::string> heading = Split(line, '\t');
  std::vector<SuiteCase> cases;
  for (int number = 2; std::getline(file, line); ++number) {
    const std::vector<std::string> values = Split(line, '\t');
    if (values.size() != heading.size()) {
      return InvalidArgument(
          path + ":" + std::to_string(number) + ": expected " + std::to_string(heading.size()) +
          " columns, but found " + std::to_string(values.size()));
    }
    std::map<std::string, std::string> columns;
    for (std::size_t i = 0; i < values.size(); ++i) {
      columns[heading[i]] = values[i];
    }
    cases.emplace_back(std::move(columns));
  }
  return cases;
}

}  // namespace gradsmith::bench
