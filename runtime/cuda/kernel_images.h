#ifndef GRADSMITH_CUDA_KERNEL_IMAGES_H_
#define GRADSMITH_CUDA_KERNEL_IMAGES_H_

namespace gradsmith::cuda {

/// KernelImage is what nvcc made of one file of cuda/kernels: code for every architecture.
struct KernelImage {
  const char* name;
  const unsigned char* bytes;
};

/// One for each file, in a source that the build writes. Each is a symbol of its own, so that a
/// program keeps those of the operators that it calls.
extern const KernelImage kImage_batch_norm;           // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_batch_norm_check;     // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_batch_norm_relu;      // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_channel_copies;       // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_compare;              // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_depthwise;       // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_depthwise_rows;  // NOLINT(readability-identifier-naming)
extern const KernelImage
    kImage_conv_depthwise_rows_filter;                      // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_depthwise_tiles;       // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_depthwise_tiles_both;  // NOLINT(readability-identifier-naming)
extern const KernelImage
    kImage_conv_depthwise_tiles_filter;                    // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_direct;               // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_few_channels_data;    // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_few_channels_filter;  // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_grouped;              // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_images;               // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_images_filter;        // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_planes;               // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_planes_narrow;        // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_pointwise;            // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_tensor_cores_data;    // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_tensor_cores_filter;  // NOLINT(readability-identifier-naming)
extern const KernelImage
    kImage_conv_tensor_cores_filter_lines;                  // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_tensor_cores_forward;  // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_tensor_cores_lines;    // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_window_correlate;      // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_window_filter;         // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_conv_warpgroups_filter;     // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_copy;                       // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_elementwise;                // NOLINT(readability-identifier-naming)
extern const KernelImage kImage_sum_channels;               // NOLINT(readability-identifier-naming)

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNEL_IMAGES_H_
