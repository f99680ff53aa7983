#ifndef GRADSMITH_TESTS_SUPPORT_OP_TESTS_H_
#define GRADSMITH_TESTS_SUPPORT_OP_TESTS_H_

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gradsmith/attributes.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "reference/oracle.h"
#include "support/test_tensor.h"

/// What a generated test shard consists of: tables of an op's rows and cases, and adapters of its
/// typed functions. All that is done with them is written by hand, in checks.h.
namespace gradsmith::support {

/// NamedShape is an input's or output's name and dims.
struct NamedShape {
  std::string name;
  reference::Shape dims;
};

/// Case is a problem on which every row of an op is tested. The shapes are those that the generator
/// worked out; of an input that holds a shape, the dims are those that it holds.
struct Case {
  std::string name;
  Layout layout = Layout::kContiguous;
  std::vector<NamedShape> inputs = {};
  std::vector<NamedShape> outputs = {};
  /// The attributes that differ from their defaults, for the dynamic door.
  std::vector<Attribute> attributes = {};
  /// The same as the op's attributes struct, for the typed door.
  const void* typed_attributes = nullptr;
};

/// TypedCall is a call of the dynamic door on its way to a typed function.
struct TypedCall {
  const Context& context;
  const void* attributes;
  std::span<const ConstTensorRef> inputs;
  std::span<const TensorRef> outputs;

  template <typename Struct>
  [[nodiscard]] const Struct& Attributes() const {
    return *static_cast<const Struct*>(attributes);
  }
  template <typename T>
  [[nodiscard]] TensorView<const T> Input(std::size_t i) const {
    return ViewOf<const T>(inputs[i]);
  }
  template <typename T>
  [[nodiscard]] TensorView<T> Output(std::size_t i) const {
    return ViewOf<T>(outputs[i]);
  }

 private:
  template <typename T>
  static TensorView<T> ViewOf(const typename TensorView<T>::Ref& tensor) {
    if (!tensor.present) {
      return {};
    }
    if (tensor.type != kDataTypeOf<std::remove_const_t<T>>) {
      throw std::invalid_argument("a typed view of another type than its tensor's");
    }
    return {static_cast<T*>(tensor.data), tensor.dims, tensor.strides, tensor.device};
  }
};

/// TypedShapes is a call of a typed InferShapes: `required` are the dims of the inputs that are not
/// optional.
struct TypedShapes {
  const void* attributes;
  std::span<const Dims> required;

  template <typename Struct>
  [[nodiscard]] const Struct& Attributes() const {
    return *static_cast<const Struct*>(attributes);
  }
};

/// TypedRow is a row's name and an adapter that calls the typed function for the row's types.
struct TypedRow {
  std::string name;
  Status (*run)(const TypedCall& call) = nullptr;
};

/// OpTests is all that a shard says of an op.
struct OpTests {
  std::string op;
  const reference::Oracle* oracle = nullptr;
  /// The attributes' defaults.
  std::span<const Attribute> defaults = {};
  std::span<const Backend> backends = {};
  std::span<const TypedRow> rows = {};
  Result<std::vector<Dims>> (*infer_shapes)(const TypedShapes& call) = nullptr;
  std::span<const Case* const> cases = {};
};

/// AddOpTests hands a shard's op over; RegisterGeneratedTests makes tests of it. The argument
/// outlives all tests.
bool AddOpTests(const OpTests& tests);

/// AllOpTests returns what was added, by op name.
const std::vector<const OpTests*>& AllOpTests();

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_OP_TESTS_H_
