#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/checks.h"
#include "support/refusal.h"
#include "support/run.h"

namespace gradsmith::support {

namespace {

using Phrases = std::vector<std::string>;

/// The case's attributes with one more, or in the place of its own.
std::vector<Attribute>
With(const Case& problem, const std::string& name, const AttributeValue& value) {
  std::vector<Attribute> attributes = problem.attributes;
  std::erase_if(attributes, [&](const Attribute& attribute) { return attribute.name == name; });
  attributes.push_back({name, value});
  return attributes;
}

void ExpectRefused(
    const Subject& subject,
    const std::string& what,
    const std::vector<Attribute>& attributes,
    const Phrases& phrases,
    Report& report) {
  VerifyRefusal(subject, what, Kernel::Create(*subject.row, attributes).status(), phrases, report);
}

/// The part of a number before its point.
std::string NumberText(double value) {
  return std::to_string(static_cast<std::int64_t>(value));
}

void CheckNumber(
    const Subject& subject,
    const Case& problem,
    const AttributeSpec& spec,
    double good,
    double bad,
    Report& report) {
  const std::string name(spec.name);
  const Phrases phrases{name, NumberText(bad), "expected", NumberText(good)};
  const std::string what = name + " = " + NumberText(bad);
  const auto integer = static_cast<std::int64_t>(bad);
  switch (spec.kind) {
    case AttributeKind::kInt:
      ExpectRefused(subject, what, With(problem, name, integer), phrases, report);
      break;
    case AttributeKind::kFloat:
      ExpectRefused(subject, what, With(problem, name, bad), phrases, report);
      break;
    case AttributeKind::kInts: {
      const auto fine = static_cast<std::int64_t>(good);
      ExpectRefused(subject, what, With(problem, name, IntList{fine, integer}), phrases, report);
      ExpectRefused(subject, what, With(problem, name, IntList{integer, fine}), phrases, report);
      break;
    }
    case AttributeKind::kFloats:
      ExpectRefused(subject, what, With(problem, name, FloatList{good, bad}), phrases, report);
      ExpectRefused(subject, what, With(problem, name, FloatList{bad, good}), phrases, report);
      break;
    case AttributeKind::kEnum:
    case AttributeKind::kBool:
    case AttributeKind::kString:
      break;
  }
}

void CheckRange(
    const Subject& subject,
    const Case& problem,
    const AttributeSpec& spec,
    Report& report) {
  if (IsBound(spec.minimum)) {
    CheckNumber(subject, problem, spec, spec.minimum, spec.minimum - 1, report);
  }
  if (IsBound(spec.maximum)) {
    CheckNumber(subject, problem, spec, spec.maximum, spec.maximum + 1, report);
  }
  if (spec.kind == AttributeKind::kFloat) {
    for (const double value :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity()}) {
      if (value >= spec.minimum && value <= spec.maximum) {
        continue;
      }
      ExpectRefused(
          subject, std::string(spec.name) + " = " + std::to_string(value),
          With(problem, std::string(spec.name), value),
          {std::string(spec.name), std::to_string(value), "expected"}, report);
    }
  }
}

void CheckChoice(
    const Subject& subject,
    const Case& problem,
    const AttributeSpec& spec,
    Report& report) {
  Phrases phrases{std::string(spec.name), "'NO_SUCH_CHOICE'", "expected"};
  phrases.insert(phrases.end(), spec.choices.begin(), spec.choices.end());
  ExpectRefused(
      subject, std::string(spec.name) + " = NO_SUCH_CHOICE",
      With(problem, std::string(spec.name), "NO_SUCH_CHOICE"), phrases, report);
}

void CheckKind(
    const Subject& subject,
    const Case& problem,
    const AttributeSpec& spec,
    Report& report) {
  const auto expect_refused = [&](const AttributeValue& value, const std::string& text) {
    ExpectRefused(
        subject, std::string(spec.name) + " = " + text + ", of another kind",
        With(problem, std::string(spec.name), value), {std::string(spec.name), text, "expected"},
        report);
  };
  const AttributeKind kind = spec.kind;
  if (kind != AttributeKind::kEnum && kind != AttributeKind::kString) {
    expect_refused("two", "'two'");
  }
  if (kind != AttributeKind::kInts && kind != AttributeKind::kFloats) {
    expect_refused(IntList{2, 2}, "[2, 2]");
  }
  if (kind != AttributeKind::kFloats) {
    expect_refused(FloatList{2.5}, "[2.5]");
  }
  if (kind != AttributeKind::kFloat) {
    expect_refused(2.5, "2.5");
  }
  if (kind != AttributeKind::kInt && kind != AttributeKind::kFloat) {
    expect_refused(2, "2");
  }
  if (kind != AttributeKind::kBool) {
    expect_refused(true, "true");
  }
}

/// A list of so many numbers that the attribute may have, and its text.
std::pair<AttributeValue, std::string> ListOf(const AttributeSpec& spec, int count) {
  const double fine = IsBound(spec.minimum) ? spec.minimum : 1;
  if (spec.kind == AttributeKind::kFloats) {
    const FloatList list = FloatList::Filled(count, fine);
    return {list, ToString(list)};
  }
  const IntList list = IntList::Filled(count, static_cast<std::int64_t>(fine));
  return {list, ToString(list)};
}

/// A list of the wrong length is found once shapes are known.
void CheckLength(
    const Subject& subject,
    const Case& problem,
    const AttributeSpec& spec,
    const std::string& seed,
    Report& report) {
  const std::optional<int> expected = ListLength(subject, problem, spec);
  if (!expected) {
    return;
  }
  const int length = *expected;
  for (const int wrong : {length - 1, length + 1}) {
    if (wrong < 1 || wrong > IntList::kCapacity) {
      continue;
    }
    const auto [list, text] = ListOf(spec, wrong);
    const std::string name(spec.name);
    const std::string what = name + " of length " + std::to_string(wrong);
    const std::optional<Kernel> kernel = MakeKernel(subject, With(problem, name, list), report);
    if (!kernel) {
      continue;
    }
    const Arguments arguments =
        MakeRandomArguments(subject, problem, AllPresent(subject.op().inputs), seed);
    VerifyRefusal(
        subject, what,
        subject.run(
            *kernel, ContextFor(*subject.row, 1), arguments.InputRefs(), arguments.OutputRefs()),
        {name, text, std::to_string(wrong), "expected " + std::to_string(length)}, report);
    arguments.CheckSurroundings(Present(problem.outputs.size(), false), what, report);
  }
}

void CheckList(
    const Subject& subject,
    const Case& problem,
    const AttributeSpec& spec,
    const std::string& seed,
    Report& report) {
  const auto [list, text] = ListOf(spec, IntList::kCapacity + 1);
  ExpectRefused(
      subject, std::string(spec.name) + " with nine values",
      With(problem, std::string(spec.name), list), {std::string(spec.name), text, "expected", "8"},
      report);
  if (spec.length_of >= 0) {
    CheckLength(subject, problem, spec, seed, report);
  }
}

void CheckNames(
    const Subject& subject,
    const Case& problem,
    const AttributeSpec& spec,
    Report& report) {
  const std::string name(spec.name);
  const std::string misspelt = name + "x";
  ExpectRefused(
      subject, "attribute " + misspelt, With(problem, misspelt, 1),
      {"'" + misspelt + "'", name, "did you mean"}, report);
  for (const Attribute& attribute : subject.tests->defaults) {
    if (attribute.name == name) {
      std::vector<Attribute> twice = With(problem, name, attribute.value);
      twice.push_back(attribute);
      ExpectRefused(subject, name + " given twice", twice, {name, "twice"}, report);
    }
  }
}

}  // namespace

Report CheckBadAttributes(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  Phrases names{"'no_such_attribute'"};
  for (const AttributeSpec& spec : subject.op().attributes) {
    names.emplace_back(spec.name);
    CheckRange(subject, problem, spec, report);
    CheckKind(subject, problem, spec, report);
    CheckNames(subject, problem, spec, report);
    if (spec.kind == AttributeKind::kEnum) {
      CheckChoice(subject, problem, spec, report);
    }
    if (spec.kind == AttributeKind::kInts || spec.kind == AttributeKind::kFloats) {
      CheckList(subject, problem, spec, seed, report);
    }
  }
  ExpectRefused(
      subject, "attribute no_such_attribute", With(problem, "no_such_attribute", 1), names, report);
  return report;
}

}  // namespace gradsmith::support
