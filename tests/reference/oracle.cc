#include "reference/oracle.h"

namespace gradsmith::reference {

Shapes ShapesOf(const Tensors& tensors) {
  Shapes shapes;
  for (const auto& [name, tensor] : tensors) {
    shapes[name] = tensor.dims;
  }
  return shapes;
}

}  // namespace gradsmith::reference
