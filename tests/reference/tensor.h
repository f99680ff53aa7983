#ifndef GRADSMITH_TESTS_REFERENCE_TENSOR_H_
#define GRADSMITH_TESTS_REFERENCE_TENSOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

/// The oracle's own values. They share nothing with the runtime's, so that a fault there cannot
/// hide here.
namespace gradsmith::reference {

/// Shape is a tensor's dims, outermost first.
using Shape = std::vector<std::int64_t>;

/// Count returns the number of elements.
inline std::int64_t Count(const Shape& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

/// Tensor is dense, last dimension fastest.
struct Tensor {
  Shape dims;
  std::vector<double> values;
};

/// Tensors and Shapes are an op's arguments by name. An absent optional argument has no entry.
using Tensors = std::map<std::string, Tensor, std::less<>>;
using Shapes = std::map<std::string, Shape, std::less<>>;

/// AttributeValue is an int, a float, the name of an enumerator or a text, a list of ints, a bool,
/// or a list of floats. Attributes lack an optional one that is absent.
using AttributeValue = std::variant<
    std::int64_t,
    double,
    std::string,
    std::vector<std::int64_t>,
    bool,
    std::vector<double>>;
using Attributes = std::map<std::string, AttributeValue, std::less<>>;

/// AttributeOr returns the attribute, or `absent` where the op does not have it.
template <typename T>
T AttributeOr(const Attributes& attributes, const std::string& name, T absent) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? absent : std::get<T>(found->second);
}

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_TENSOR_H_
