#ifndef GRADSMITH_TESTS_SUPPORT_OP_TESTS_H_
#define GRADSMITH_TESTS_SUPPORT_OP_TESTS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gradsmith/attributes.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "reference/formula.h"
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
/// worked out; of an input that holds a shape, the dims are those that it holds, and of a list
/// those of its tensors, X[0], X[1] and so on.
struct Case {
  std::string name;
  Layout layout = Layout::kContiguous;
  /// How outputs lie, where it is not as inputs do.
  std::optional<Layout> layout_of_outputs = std::nullopt;
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
  /// The tensors of a list, of which the first is that at `begin`.
  template <typename T>
  [[nodiscard]] std::vector<TensorView<const T>> Inputs(std::size_t begin, std::size_t length)
      const {
    std::vector<TensorView<const T>> list;
    for (std::size_t i = begin; i < begin + length; ++i) {
      list.push_back(Input<T>(i));
    }
    return list;
  }
  template <typename T>
  [[nodiscard]] std::vector<TensorView<T>> Outputs(std::size_t begin, std::size_t length) const {
    std::vector<TensorView<T>> list;
    for (std::size_t i = begin; i < begin + length; ++i) {
      list.push_back(Output<T>(i));
    }
    return list;
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
  /// The length of the op's lists, of which so many are required beside other inputs.
  [[nodiscard]] std::size_t ListLength(std::size_t single, std::size_t lists) const {
    return lists == 0 ? 0 : (required.size() - single) / lists;
  }
  [[nodiscard]] std::vector<Dims> List(std::size_t begin, std::size_t length) const {
    const auto first = required.begin() + static_cast<std::ptrdiff_t>(begin);
    return {first, first + static_cast<std::ptrdiff_t>(length)};
  }
};

/// TypedRow is a row's name and an adapter that calls the typed function for the row's types.
struct TypedRow {
  std::string name;
  Status (*run)(const TypedCall& call) = nullptr;
};

/// SeamValue is what an element of a tensor is at a seam: the number of a node.
struct SeamValue {
  std::string tensor;
  std::size_t node = 0;
};

/// Seam is a place where an op's formulas choose between sides, and what the schema says that they
/// give there.
struct Seam {
  /// As the schema has it, for messages.
  std::string text;
  std::vector<SeamValue> at;
  std::vector<SeamValue> gives;
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
  std::span<const Seam> seams = {};
  /// What the seams' values are made of.
  std::span<const reference::FormulaNode> seam_nodes = {};
};

/// AddOpTests hands a shard's op over; RegisterGeneratedTests makes tests of it. The argument
/// outlives all tests.
bool AddOpTests(const OpTests& tests);

/// AllOpTests returns what was added, by op name.
const std::vector<const OpTests*>& AllOpTests();

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_OP_TESTS_H_
