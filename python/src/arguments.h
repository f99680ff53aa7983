#ifndef GRADSMITH_PYTHON_ARGUMENTS_H_
#define GRADSMITH_PYTHON_ARGUMENTS_H_

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "gradsmith/attributes.h"
#include "gradsmith/schema.h"

namespace gradsmith::python {

/// GivenAttribute is one that a caller set, by its place in the schema.
struct GivenAttribute {
  int index = 0;
  AttributeValue value;

  friend bool operator==(const GivenAttribute& a, const GivenAttribute& b) {
    return a.index == b.index && a.value.variant() == b.value.variant();
  }
};

/// ReadAttributes reads a tuple with a value for each attribute of the op, None where it is not
/// set. Raises TypeError for a value of another kind.
std::vector<GivenAttribute> ReadAttributes(const OpSchema& op, nanobind::handle values);

/// ToAttributes returns them as Kernel::Create takes them.
std::vector<Attribute> ToAttributes(const OpSchema& op, const std::vector<GivenAttribute>& given);

/// IsFixed returns whether an object is a tuple of what cannot change: plain numbers, texts, None,
/// and tuples of these.
bool IsFixed(nanobind::handle object);

/// HasItems returns whether two tuples hold the same objects.
bool HasItems(nanobind::handle a, nanobind::handle b);

/// Iterator goes over what a caller passes, one item at a time, so that as much is looked at as is
/// wanted. Raises what the caller's own code raises.
class Iterator {
 public:
  explicit Iterator(nanobind::handle iterable);
  /// Next returns the next item; one that is not valid where there is none.
  [[nodiscard]] nanobind::object Next() const;

 private:
  nanobind::object iterator_;
};

/// Wish is what a caller wants of one output.
struct Wish {
  bool is_wanted = false;
  /// The array to write to; not valid where one is to be made.
  nanobind::object into;
};

/// ReadWanted reads which outputs are wanted: None: all; a name; an iterable of names. Raises
/// ValueError for names that the op does not have, and TypeError for what is neither.
std::vector<Wish> ReadWanted(const OpSchema& op, nanobind::handle outputs);

/// WantedNames returns the names of those outputs, in the schema's order.
nanobind::list WantedNames(const OpSchema& op, nanobind::handle outputs);

/// ReadOut reads where they go: None; a dict by name; a tuple or list in the schema's order. Raises
/// as ReadWanted does, and ValueError for an output that is not wanted.
void ReadOut(const OpSchema& op, nanobind::handle out, std::vector<Wish>* wishes);

/// ReadInts reads a tuple or list of integers. Raises TypeError; `subject` begins the sentence.
IntList ReadInts(nanobind::handle values, const std::string& subject);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_ARGUMENTS_H_
