#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "support/checks.h"
#include "support/refusal.h"
#include "support/run.h"

namespace gradsmith::support {

namespace {

constexpr DataType kTypes[] = {
#define GRADSMITH_TYPE(enumerator, type, name, dlpack_code, torch_type) DataType::enumerator,
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_TYPE)
#undef GRADSMITH_TYPE
};
constexpr Backend kBackends[] = {Backend::kCpu, Backend::kCuda};

using Types = std::vector<DataType>;

std::string Text(DataType type) {
  return std::string(ToString(type));
}

std::string Describe(const Types& types) {
  std::string text;
  for (const DataType type : types) {
    text += (text.empty() ? "" : ", ") + Text(type);
  }
  return "(" + text + ")";
}

/// Looks a combination up by every way in, and returns how Kernel::Create refuses it. All ways must
/// agree.
Status LookUp(
    const Subject& subject,
    const std::string& what,
    std::string_view op,
    const Types& types,
    Backend backend,
    Report& report) {
  if (subject.registry->Find(op, types, backend) != nullptr) {
    report.Fail(what + ": Registry::Find returns a row");
  }
  const Status status = Kernel::Create(*subject.registry, op, types, backend).status();
  if (status.message() != subject.registry->Explain(op, types, backend)) {
    report.Fail(
        what + ": Kernel::Create says '" + status.message() + "', Registry::Explain '" +
        subject.registry->Explain(op, types, backend) + "'");
  }
  return status;
}

/// The op's rows on the backend that differ from the combination in one type: they are the nearest.
std::vector<const Row*> RowsOneTypeAway(const Subject& subject, const Types& types) {
  std::vector<const Row*> near;
  for (const Row* row : subject.registry->rows()) {
    if (row->op->name != subject.op().name || row->backend != subject.row->backend) {
      continue;
    }
    std::size_t differing = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
      differing += row->types[i] != types[i] ? 1 : 0;
    }
    if (differing == 1) {
      near.push_back(row);
    }
  }
  return near;
}

/// The sentence names a nearest row, and the type parameter with what the row has and what was
/// asked for.
bool NamesNearest(
    const std::string& sentence,
    const Subject& subject,
    const Row& row,
    const Types& types) {
  std::size_t i = 0;
  while (row.types[i] == types[i]) {
    ++i;
  }
  return Mentions(sentence, std::string(row.op->name) + "[" + std::string(row.name) + "]") &&
         Mentions(sentence, subject.op().type_parameters[i]) &&
         Mentions(sentence, ToString(row.types[i])) && Mentions(sentence, ToString(types[i]));
}

void CheckTypes(const Subject& subject, const Types& types, Report& report) {
  const Backend backend = subject.row->backend;
  const std::string what = std::string(subject.op().name) + Describe(types);
  const Status status = LookUp(subject, what, subject.op().name, types, backend, report);
  VerifyPhrases(
      what, status, StatusCode::kUnsupported, {what, std::string(ToString(backend))}, report);
  const std::vector<const Row*> near = RowsOneTypeAway(subject, types);
  const bool named = std::any_of(near.begin(), near.end(), [&](const Row* row) {
    return NamesNearest(status.message(), subject, *row, types);
  });
  if (!named) {
    report.Fail(
        what +
        ": the sentence names no nearest row with the type that differs: " + status.message());
  }
}

void CheckTypesNextToRow(const Subject& subject, Report& report) {
  const Types own(subject.row->types.begin(), subject.row->types.end());
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (const DataType type : kTypes) {
      Types types = own;
      types[i] = type;
      if (subject.registry->Find(subject.op().name, types, subject.row->backend) == nullptr) {
        CheckTypes(subject, types, report);
      }
    }
  }
}

void CheckNumberOfTypes(const Subject& subject, Report& report) {
  Types types(subject.row->types.begin(), subject.row->types.end());
  const std::string expected = std::to_string(types.size());
  types.push_back(DataType::kFloat);
  const std::string what = std::string(subject.op().name) + Describe(types);
  const Status status =
      LookUp(subject, what, subject.op().name, types, subject.row->backend, report);
  VerifyPhrases(
      what, status, StatusCode::kUnsupported,
      {std::string(subject.op().name), expected, std::to_string(types.size())}, report);
}

void CheckBackends(const Subject& subject, Report& report) {
  const Types types(subject.row->types.begin(), subject.row->types.end());
  for (const Backend backend : kBackends) {
    const auto& declared = subject.tests->backends;
    if (std::find(declared.begin(), declared.end(), backend) != declared.end()) {
      continue;
    }
    const std::string what =
        std::string(subject.op().name) + Describe(types) + " on " + std::string(ToString(backend));
    const Status status = LookUp(subject, what, subject.op().name, types, backend, report);
    VerifyPhrases(
        what, status, StatusCode::kUnsupported,
        {what, std::string(subject.op().name) + "[" + std::string(subject.row->name) + "]",
         "backend", std::string(ToString(subject.row->backend))},
        report);
  }
}

void CheckMisspeltOp(const Subject& subject, Report& report) {
  const Types types(subject.row->types.begin(), subject.row->types.end());
  const std::string name(subject.op().name);
  const std::string misspelt = name + "x";
  const Status status = LookUp(subject, misspelt, misspelt, types, subject.row->backend, report);
  VerifyPhrases(
      misspelt, status, StatusCode::kUnsupported, {"'" + misspelt + "'", name, "did you mean"},
      report);
}

}  // namespace

Report CheckNeighbours(const Subject& subject) {
  Report report;
  CheckTypesNextToRow(subject, report);
  CheckNumberOfTypes(subject, report);
  CheckBackends(subject, report);
  CheckMisspeltOp(subject, report);
  return report;
}

}  // namespace gradsmith::support
