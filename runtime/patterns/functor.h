#ifndef GRADSMITH_PATTERNS_FUNCTOR_H_
#define GRADSMITH_PATTERNS_FUNCTOR_H_

/// What functors of the kernel patterns are written with. A functor is a plain struct that CPU and
/// CUDA share: kernels compile it as well, in C++17.

#ifdef __CUDACC__
#define GRADSMITH_FUNCTOR __host__ __device__ __forceinline__
#else
#define GRADSMITH_FUNCTOR inline
#endif

#endif  // GRADSMITH_PATTERNS_FUNCTOR_H_
