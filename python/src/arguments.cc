#include "arguments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "errors.h"
#include "lock.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// No caller means more names than these; who goes on for ever is not to be waited for.
constexpr int kMostNames = 1024;

std::string Subject(const OpSchema& op, const AttributeSpec& spec) {
  return std::string(op.name) + ": attribute " + std::string(spec.name);
}

[[noreturn]] void RaiseKind(const std::string& subject, nb::handle value, const char* expected) {
  RaiseTypeError(
      subject + " is " + ReprOf(value) + " (" + TypeNameOf(value) + "); expected " + expected);
}

/// An integer, or what stands for one, such as NumPy's.
std::int64_t
ReadInt(nb::handle value, nb::handle whole, const std::string& subject, const char* expected) {
  const nb::object index = nb::steal(InPython([value] { return PyNumber_Index(value.ptr()); }));
  if (!index.is_valid()) {
    ClearError();
    RaiseKind(subject, whole, expected);
  }
  const std::int64_t result = PyLong_AsLongLong(index.ptr());
  if (result == -1 && PyErr_Occurred() != nullptr) {
    ClearError();
    RaiseValueError(subject + " is " + ReprOf(whole) + "; expected integers of 64 bits");
  }
  return result;
}

/// A number; `whole` is what holds it.
double
ReadFloat(nb::handle value, nb::handle whole, const std::string& subject, const char* expected) {
  const double result = InPython([value] { return PyFloat_AsDouble(value.ptr()); });
  if (result == -1 && PyErr_Occurred() != nullptr) {
    ClearError();
    RaiseKind(subject, whole, expected);
  }
  return result;
}

/// True or False, or what stands for one: NumPy's, and the 0 and 1 of ONNX.
bool ReadBool(nb::handle value, const std::string& subject) {
  constexpr const char* kExpected = "True or False";
  if (PyBool_Check(value.ptr()) != 0) {
    return value.ptr() == Py_True;
  }
  const std::string type = TypeNameOf(value);
  if (type == "numpy.bool" || type == "numpy.bool_") {
    return InPython([value] { return PyObject_IsTrue(value.ptr()); }) == 1;
  }
  const std::int64_t integer = ReadInt(value, value, subject, kExpected);
  if (integer != 0 && integer != 1) {
    RaiseValueError(subject + " is " + ReprOf(value) + "; expected " + kExpected);
  }
  return integer == 1;
}

/// A list of numbers, each read by `read`. Of one that is too long the rest is not looked at.
template <typename Number, typename Read>
BasicList<Number>
ReadList(nb::handle values, const std::string& subject, const char* expected, Read read) {
  if (PySequence_Check(values.ptr()) == 0 || nb::isinstance<nb::str>(values)) {
    RaiseKind(subject, values, expected);
  }
  const Iterator items(values);
  BasicList<Number> list;
  for (nb::object item = items.Next(); item.is_valid() && !list.too_long(); item = items.Next()) {
    list.push_back(read(item, values, subject, expected));
  }
  return list;
}

AttributeValue ReadValue(const OpSchema& op, const AttributeSpec& spec, nb::handle value) {
  switch (spec.kind) {
    case AttributeKind::kInt:
      return ReadInt(value, value, Subject(op, spec), "an integer");
    case AttributeKind::kFloat:
      return ReadFloat(value, value, Subject(op, spec), "a number");
    case AttributeKind::kInts:
      return ReadInts(value, Subject(op, spec));
    case AttributeKind::kBool:
      return ReadBool(value, Subject(op, spec));
    case AttributeKind::kFloats:
      return ReadList<double>(value, Subject(op, spec), "a sequence of numbers", &ReadFloat);
    case AttributeKind::kEnum:
    case AttributeKind::kString:
      break;
  }
  const bool is_name = spec.kind == AttributeKind::kEnum;
  if (!nb::isinstance<nb::str>(value)) {
    RaiseKind(Subject(op, spec), value, is_name ? "a name" : "a str");
  }
  return is_name ? ShortTextOf(value) : TextOf(value);
}

std::string OutputNames(const OpSchema& op) {
  std::string names;
  for (const TensorSpec& spec : op.outputs) {
    names += (names.empty() ? "" : ", ") + std::string(spec.name);
  }
  return names;
}

/// Names such as dX are as near to each other as to most that are mistyped.
std::string DidYouMean(const OpSchema& op, const std::string& output) {
  for (const TensorSpec& spec : op.outputs) {
    if (2 * internal::EditDistance(output, spec.name) < static_cast<int>(output.size())) {
      return "; did you mean '" + std::string(spec.name) + "'?";
    }
  }
  return "";
}

Wish& WishOf(const OpSchema& op, nb::handle name, std::vector<Wish>* wishes, const char* argument) {
  if (!nb::isinstance<nb::str>(name)) {
    RaiseTypeError(
        std::string(op.name) + ": " + argument + " holds " + ReprOf(name) +
        "; expected names of outputs: " + OutputNames(op));
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    // The names of the table are literals, so they end with a null.
    if (PyUnicode_CompareWithASCIIString(name.ptr(), op.outputs[i].name.data()) == 0) {
      return (*wishes)[i];
    }
  }
  RaiseValueError(
      std::string(op.name) + ": " + argument + " holds " + ReprOf(name) +
      "; expected names of outputs: " + OutputNames(op) + DidYouMean(op, ShortTextOf(name)));
}

void SetInto(const OpSchema& op, std::size_t i, nb::object array, std::vector<Wish>* wishes) {
  if (array.is_none()) {
    return;
  }
  if (!(*wishes)[i].is_wanted) {
    RaiseValueError(
        std::string(op.name) + ": out holds an array for " + std::string(op.outputs[i].name) +
        ", which outputs does not ask for; expected it among outputs");
  }
  (*wishes)[i].into = std::move(array);
}

}  // namespace

bool IsFixed(nb::handle object) {
  if (PyTuple_CheckExact(object.ptr()) == 0) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(object.ptr()); ++i) {
    PyObject* const item = PyTuple_GetItem(object.ptr(), i);
    const bool is_plain = item == Py_None || PyLong_CheckExact(item) != 0 ||
                          PyFloat_CheckExact(item) != 0 || PyUnicode_CheckExact(item) != 0 ||
                          PyBool_Check(item) != 0;
    if (!is_plain && !IsFixed(item)) {
      return false;
    }
  }
  return true;
}

bool HasItems(nb::handle a, nb::handle b) {
  const Py_ssize_t size = PyTuple_Size(a.ptr());
  if (PyTuple_Size(b.ptr()) != size) {
    return false;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (PyTuple_GetItem(a.ptr(), i) != PyTuple_GetItem(b.ptr(), i)) {
      return false;
    }
  }
  return true;
}

Iterator::Iterator(nb::handle iterable)
    : iterator_(nb::steal(InPython([iterable] { return PyObject_GetIter(iterable.ptr()); }))) {
  if (!iterator_.is_valid()) {
    throw nb::python_error();
  }
}

nb::object Iterator::Next() const {
  nb::object item = nb::steal(InPython([this] { return PyIter_Next(iterator_.ptr()); }));
  if (!item.is_valid() && PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  return item;
}

IntList ReadInts(nb::handle values, const std::string& subject) {
  return ReadList<std::int64_t>(values, subject, "a sequence of integers", &ReadInt);
}

std::vector<GivenAttribute> ReadAttributes(const OpSchema& op, nb::handle values) {
  std::vector<GivenAttribute> given;
  given.reserve(op.attributes.size());
  for (std::size_t i = 0; i < op.attributes.size(); ++i) {
    const nb::handle value = PyTuple_GetItem(values.ptr(), static_cast<Py_ssize_t>(i));
    if (!value.is_none()) {
      given.push_back({static_cast<int>(i), ReadValue(op, op.attributes[i], value)});
    }
  }
  return given;
}

std::vector<Attribute> ToAttributes(const OpSchema& op, const std::vector<GivenAttribute>& given) {
  std::vector<Attribute> attributes;
  attributes.reserve(given.size());
  for (const GivenAttribute& attribute : given) {
    attributes.push_back({std::string(op.attributes[attribute.index].name), attribute.value});
  }
  return attributes;
}

namespace {

bool CanBeIterated(nb::handle object) {
  return PyType_GetSlot(Py_TYPE(object.ptr()), Py_tp_iter) != nullptr ||
         PySequence_Check(object.ptr()) != 0;
}

void ReadNames(const OpSchema& op, nb::handle outputs, std::vector<Wish>* wishes) {
  const Iterator names(outputs);
  int count = 0;
  for (nb::object name = names.Next(); name.is_valid(); name = names.Next()) {
    if (++count > kMostNames) {
      RaiseValueError(
          std::string(op.name) + ": outputs holds more than " + std::to_string(kMostNames) +
          " names; expected names of outputs: " + OutputNames(op));
    }
    WishOf(op, name, wishes, "outputs").is_wanted = true;
  }
}

}  // namespace

std::vector<Wish> ReadWanted(const OpSchema& op, nb::handle outputs) {
  std::vector<Wish> wishes(op.outputs.size());
  if (outputs.is_none()) {
    for (Wish& wish : wishes) {
      wish.is_wanted = true;
    }
  } else if (nb::isinstance<nb::str>(outputs)) {
    WishOf(op, outputs, &wishes, "outputs").is_wanted = true;
  } else if (!CanBeIterated(outputs)) {
    RaiseTypeError(
        std::string(op.name) + ": outputs is " + ReprOf(outputs) +
        "; expected names of outputs: " + OutputNames(op));
  } else {
    ReadNames(op, outputs, &wishes);
    if (std::none_of(wishes.begin(), wishes.end(), [](const Wish& w) { return w.is_wanted; })) {
      RaiseValueError(
          std::string(op.name) +
          ": outputs asks for nothing; expected names of outputs: " + OutputNames(op));
    }
  }
  return wishes;
}

nb::list WantedNames(const OpSchema& op, nb::handle outputs) {
  const std::vector<Wish> wishes = ReadWanted(op, outputs);
  nb::list names;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (wishes[i].is_wanted) {
      names.append(nb::str(op.outputs[i].name.data()));
    }
  }
  return names;
}

void ReadOut(const OpSchema& op, nb::handle out, std::vector<Wish>* wishes) {
  if (out.is_none()) {
    return;
  }
  if (nb::isinstance<nb::dict>(out)) {
    for (const auto [name, array] : nb::borrow<nb::dict>(out)) {
      const Wish& wish = WishOf(op, name, wishes, "out");
      SetInto(op, static_cast<std::size_t>(&wish - wishes->data()), nb::borrow(array), wishes);
    }
    return;
  }
  const bool is_tuple = nb::isinstance<nb::tuple>(out);
  // What a subclass says of its length need not be so.
  Py_ssize_t size = -1;
  if (is_tuple) {
    size = PyTuple_Size(out.ptr());
  } else if (nb::isinstance<nb::list>(out)) {
    size = PyList_Size(out.ptr());
  }
  if (size != static_cast<Py_ssize_t>(wishes->size())) {
    RaiseTypeError(
        std::string(op.name) + ": out is " + TypeNameOf(out) +
        (size < 0 ? "" : " of " + std::to_string(size)) +
        "; expected a dict of arrays by name, or a tuple with an array or None for each of " +
        OutputNames(op));
  }
  for (std::size_t i = 0; i < wishes->size(); ++i) {
    // Named tuples are slow to index by what serves all sequences.
    const auto at = static_cast<Py_ssize_t>(i);
    PyObject* const array =
        is_tuple ? PyTuple_GetItem(out.ptr(), at) : PyList_GetItem(out.ptr(), at);
    SetInto(op, i, nb::borrow(array), wishes);
  }
}

}  // namespace gradsmith::python
