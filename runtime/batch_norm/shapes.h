#ifndef GRADSMITH_BATCH_NORM_SHAPES_H_
#define GRADSMITH_BATCH_NORM_SHAPES_H_

#include "batch_norm/kernels.h"
#include "gradsmith/status.h"

namespace gradsmith::batch_norm {

/// CheckShapes returns an error where the arguments' dims and types do not fit together as the
/// kernels' kShapes and kTypes say: then an op's entry in ops.yaml has let them pass.
Status CheckShapes(
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs);
/// CheckShapes is for a gradient, with an activation or without, where B is null.
Status CheckShapes(
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_SHAPES_H_
