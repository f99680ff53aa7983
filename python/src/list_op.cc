#include "list_op.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/list_schema.h"
#include "errors.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// How many items a list or a tuple has; -1 of what is neither. What a subclass says of its length
/// need not be so.
Py_ssize_t SizeOf(nb::handle object) {
  if (nb::isinstance<nb::tuple>(object)) {
    return PyTuple_Size(object.ptr());
  }
  return nb::isinstance<nb::list>(object) ? PyList_Size(object.ptr()) : -1;
}

nb::object ItemOf(nb::handle object, Py_ssize_t i) {
  PyObject* const item = nb::isinstance<nb::tuple>(object) ? PyTuple_GetItem(object.ptr(), i)
                                                           : PyList_GetItem(object.ptr(), i);
  if (item == nullptr) {  // another thread has made the list shorter
    throw nb::python_error();
  }
  return nb::borrow(item);
}

std::string Arrays(Py_ssize_t count) {
  return std::to_string(count) + (count == 1 ? " array" : " arrays");
}

}  // namespace

ListOp::ListOp(std::string name, nb::object result)
    : name_(std::move(name)),
      result_(std::move(result)),
      rows_(Op::RowsOf(name_)),
      schema_(rows_.front()->op) {}

ListOp::Given ListOp::Read(const TensorSpec& spec, nb::handle object) const {
  if (object.is_none()) {
    return {&spec, {}, spec.list.empty() ? 1 : 0};
  }
  if (spec.list.empty()) {
    return {&spec, nb::borrow(object), 1};
  }
  const Py_ssize_t size = SizeOf(object);
  if (size < 0) {
    RaiseTypeError(
        name_ + ": " + std::string(spec.name) + " is " + ReprOf(object) + " (" +
        TypeNameOf(object) + "); expected a list or tuple of arrays");
  }
  return {&spec, nb::borrow(object), size};
}

std::vector<ListOp::Given> ListOp::ReadInputs(nb::handle inputs) const {
  std::vector<Given> given;
  for (std::size_t i = 0; i < schema_->inputs.size(); ++i) {
    const TensorSpec& spec = schema_->inputs[i];
    given.push_back(Read(spec, PyTuple_GetItem(inputs.ptr(), static_cast<Py_ssize_t>(i))));
    if (!spec.list.empty() && !given.back().object.is_valid() && !spec.optional) {
      RaiseTypeError(
          name_ + ": " + std::string(spec.name) + " is None; expected a list or tuple of arrays");
    }
  }
  return given;
}

int ListOp::LengthOf(const std::vector<Given>& inputs, const std::vector<Given>& out) const {
  const Given* first = nullptr;
  for (const std::vector<Given>* arguments : {&inputs, &out}) {
    for (const Given& given : *arguments) {
      if (given.spec->list.empty() || !given.object.is_valid()) {
        continue;
      }
      first = first == nullptr ? &given : first;
      const std::string has =
          name_ + ": " + std::string(given.spec->name) + " has " + Arrays(given.size);
      if (given.size != first->size) {
        RaiseValueError(
            has + "; expected " + std::to_string(first->size) + ", as many as " +
            std::string(first->spec->name));
      }
      if (given.size < 1 || given.size > internal::kMaxListLength) {
        RaiseValueError(has + "; expected 1 to " + std::to_string(internal::kMaxListLength));
      }
    }
  }
  if (first == nullptr) {
    RaiseValueError(
        name_ + ": nothing tells how many arrays a list has; expected lists to write to in out");
  }
  return static_cast<int>(first->size);
}

ListOp::Spelled& ListOp::ForLength(int length) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Spelled>& spelled = spelled_[length];
  if (spelled == nullptr) {
    auto made = std::make_unique<Spelled>();
    made->schema = internal::SpellOut(*schema_, length);
    std::vector<const Row*> rows;
    made->rows.reserve(rows_.size());
    for (const Row* row : rows_) {
      made->rows.push_back(*row);
      made->rows.back().op = made->schema.get();
      rows.push_back(&made->rows.back());
    }
    made->op = std::make_unique<Op>(
        name_, std::move(rows), nb::borrow(reinterpret_cast<PyObject*>(&PyTuple_Type)));
    spelled = std::move(made);
  }
  return *spelled;
}

nb::object ListOp::Flattened(const std::vector<Given>& given, int length) {
  Py_ssize_t size = 0;
  for (const Given& one : given) {
    size += one.spec->list.empty() ? 1 : length;
  }
  nb::object flat = nb::steal(PyTuple_New(size));
  Py_ssize_t next = 0;
  for (const Given& one : given) {
    const int count = one.spec->list.empty() ? 1 : length;
    for (int i = 0; i < count; ++i) {
      nb::object item = one.object;
      if (!one.object.is_valid()) {
        item = nb::none();
      } else if (!one.spec->list.empty()) {
        item = ItemOf(one.object, i);
      }
      PyTuple_SetItem(flat.ptr(), next++, item.release().ptr());
    }
  }
  return flat;
}

nb::object ListOp::WantedOf(const Spelled& spelled, const std::vector<Wish>& wishes, int length)
    const {
  if (std::all_of(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.is_wanted; })) {
    return nb::none();
  }
  nb::list names;
  std::size_t next = 0;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const int count = schema_->outputs[i].list.empty() ? 1 : length;
    for (int place = 0; place < count; ++place, ++next) {
      if (wishes[i].is_wanted) {
        names.append(nb::str(spelled.schema->outputs[next].name.data()));
      }
    }
  }
  return nb::tuple(names);
}

ListOp::Flat ListOp::Bind(nb::handle inputs, nb::handle outputs, nb::handle out) {
  std::vector<Wish> wishes = ReadWanted(*schema_, outputs);
  ReadOut(*schema_, out, &wishes);
  const std::vector<Given> given = ReadInputs(inputs);
  std::vector<Given> written;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const nb::object& into = wishes[i].into;
    written.push_back(Read(schema_->outputs[i], into.is_valid() ? into : nb::none()));
  }
  const int length = LengthOf(given, written);
  Spelled& spelled = ForLength(length);
  return {
      &spelled, length, Flattened(given, length), WantedOf(spelled, wishes, length),
      out.is_none() ? nb::none() : Flattened(written, length)};
}

nb::object ListOp::Grouped(nb::handle flat, int length) const {
  nb::object fields = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(schema_->outputs.size())));
  Py_ssize_t next = 0;
  for (std::size_t i = 0; i < schema_->outputs.size(); ++i) {
    nb::object field;
    if (schema_->outputs[i].list.empty()) {
      field = ItemOf(flat, next++);
    } else {
      nb::list list;
      for (int place = 0; place < length; ++place) {
        list.append(ItemOf(flat, next++));
      }
      field = nb::object(list[0]).is_none() ? nb::none() : nb::object(std::move(list));
    }
    PyTuple_SetItem(fields.ptr(), static_cast<Py_ssize_t>(i), field.release().ptr());
  }
  return result_.Make(std::move(fields));
}

nb::object ListOp::Call(
    nb::handle inputs,
    nb::handle attributes,
    nb::handle outputs,
    nb::handle out,
    Policies& policies) {
  const Flat flat = Bind(inputs, outputs, out);
  return Grouped(
      flat.spelled->op->Call(flat.inputs, attributes, flat.outputs, flat.out, policies),
      flat.length);
}

double ListOp::Time(
    nb::handle inputs,
    nb::handle attributes,
    nb::handle outputs,
    nb::handle out,
    Policies& policies,
    int calls) {
  const Flat flat = Bind(inputs, outputs, out);
  return flat.spelled->op->Time(flat.inputs, attributes, flat.outputs, flat.out, policies, calls);
}

nb::list ListOp::Wanted(nb::handle outputs) const {
  return WantedNames(*schema_, outputs);
}

nb::object ListOp::InferShapes(nb::handle inputs, nb::handle attributes) {
  const std::vector<Given> given = ReadInputs(inputs);
  const int length = LengthOf(given, {});
  return Grouped(ForLength(length).op->InferShapes(Flattened(given, length), attributes), length);
}

}  // namespace gradsmith::python
