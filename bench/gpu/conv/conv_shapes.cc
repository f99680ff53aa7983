#include "gpu/conv/conv_shapes.h"

#include "gpu/measure.h"

namespace gradsmith::bench {

namespace {

/// Length of y along a spatial axis.
std::int64_t OutputLength(const ConvShapes& shapes, int axis) {
  const ConvGeometry& geometry = shapes.geometry;
  const std::int64_t x = shapes.x[axis + 2];
  const std::int64_t stride = geometry.strides[axis];
  const std::int64_t reach = (geometry.dilations[axis] * (shapes.w[axis + 2] - 1)) + 1;
  const std::int64_t pads = geometry.pads[axis] + geometry.pads[axis + geometry.strides.size()];
  return shapes.transposed ? (stride * (x - 1)) + reach - pads + shapes.output_padding[axis]
                           : ((x + pads - reach) / stride) + 1;
}

}  // namespace

double ConvShapes::Operations() const {
  // Each element of what the convolution computes, x of a transposed one, meets a whole filter.
  const Dims& result = transposed ? x : y;
  return 2.0 * static_cast<double>(NumElements(result)) * static_cast<double>(NumElements(w)) /
         static_cast<double>(w[0]);
}

ConvShapes ShapesOf(const SuiteCase& suite_case) {
  const IntList spatial = suite_case.Numbers("spatial");
  const IntList kernel = suite_case.Numbers("kernel");
  const std::int64_t images = suite_case.Number("N");
  const std::int64_t x_channels = suite_case.Number("C");
  const std::int64_t y_channels = suite_case.Number("K");
  ConvShapes shapes;
  shapes.transposed = !suite_case.Text("output_padding").empty();
  shapes.output_padding = suite_case.Numbers("output_padding");
  ConvGeometry& geometry = shapes.geometry;
  geometry.strides = suite_case.Numbers("stride");
  geometry.dilations = suite_case.Numbers("dilation");
  geometry.group = suite_case.Number("groups");
  for (const char* side : {"pad", suite_case.Text("pad_end").empty() ? "pad" : "pad_end"}) {
    for (const std::int64_t p : suite_case.Numbers(side)) {
      geometry.pads.push_back(p);
    }
  }
  shapes.x = {images, x_channels};
  shapes.y = {images, y_channels};
  shapes.w = shapes.transposed ? Dims{x_channels, y_channels / geometry.group}
                               : Dims{y_channels, x_channels / geometry.group};
  for (int axis = 0; axis < spatial.size(); ++axis) {
    shapes.x.push_back(spatial[axis]);
    shapes.w.push_back(kernel[axis]);
    shapes.y.push_back(OutputLength(shapes, axis));
  }
  const bool last = suite_case.channels_last();
  shapes.x_strides = StridesOf(shapes.x, last);
  shapes.w_strides = StridesOf(shapes.w, last);
  shapes.y_strides = StridesOf(shapes.y, last);
  return shapes;
}

}  // namespace gradsmith::bench
