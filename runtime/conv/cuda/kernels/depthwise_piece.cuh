#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_PIECE_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_PIECE_CUH_

/// How depthwise kernels choose among the numbers of elements that a row is read by.
namespace gradsmith::conv::depthwise {

template <int kPiece>
struct Piece {
  static constexpr int kValue = kPiece;
};

/// WithPiece calls with the largest power of two up to kMost that `piece` has room for, as a
/// constant.
template <int kMost, typename Call>
__device__ __forceinline__ void WithPiece(int piece, const Call& call) {
  if constexpr (kMost == 1) {
    call(Piece<1>());
  } else {
    if (piece >= kMost) {
      call(Piece<kMost>());
    } else {
      WithPiece<kMost / 2>(piece, call);
    }
  }
}

}  // namespace gradsmith::conv::depthwise

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_PIECE_CUH_
