#ifndef GRADSMITH_CORE_EIGEN_NAMESPACE_H_
#define GRADSMITH_CORE_EIGEN_NAMESPACE_H_

/// Include this before any Eigen header. It gives this library's copy of Eigen a namespace of its
/// own: Eigen is templates, and a program that links this library and uses Eigen itself, compiled
/// for another instruction set or alignment, would otherwise have one of the two copies serve both.
#define Eigen GradsmithEigen  // NOLINT(cppcoreguidelines-macro-usage)

#endif  // GRADSMITH_CORE_EIGEN_NAMESPACE_H_
