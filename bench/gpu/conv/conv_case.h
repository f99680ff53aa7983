#ifndef GRADSMITH_BENCH_GPU_CONV_CONV_CASE_H_
#define GRADSMITH_BENCH_GPU_CONV_CONV_CASE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "gpu/cases.h"
#include "gpu/conv/conv_shapes.h"
#include "gpu/measure.h"

/// A case of ConvGrad or ConvTransposeGrad in memory, ready to be called, and of their forward
/// operators.
namespace gradsmith::bench {

/// The tensors of a set of arguments.
enum ConvTensor : std::uint8_t { kX, kW, kDY, kDX, kDW, kDB };

/// Which outputs a call computes.
struct WantedGradients {
  const char* name;
  bool dX, dW, dB;
};
inline constexpr WantedGradients kAllGradients = {"all", true, true, true};
inline constexpr std::array<WantedGradients, 4> kWantedGradients = {
    {{"dX", true, false, false},
     {"dW", false, true, false},
     {"dB", false, false, true},
     kAllGradients}};

class ConvCase {
 public:
  /// Throws where there is no memory for it.
  ConvCase(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

  [[nodiscard]] DataType type() const { return type_; }
  [[nodiscard]] const ConvShapes& shapes() const { return shapes_; }
  [[nodiscard]] const ArgumentSets& sets() const { return sets_; }

  /// Options of a context under the case's policies.
  [[nodiscard]] ContextOptions Options(SearchMode mode) const;

  [[nodiscard]] Status Call(const Context& context, const WantedGradients& wanted, int set) const;
  /// Forward calls Conv or ConvTranspose without a bias; Y takes the place of dY.
  [[nodiscard]] Status Forward(const Context& context, int set) const;
  [[nodiscard]] TensorRef Ref(int set, ConvTensor tensor) const;

  /// What a call takes and its first took, or why it does not run.
  [[nodiscard]] JsonObject
  Measure(const Context& context, const WantedGradients& wanted, int samples) const;
  [[nodiscard]] JsonObject MeasureForward(const Context& context, int samples) const;

  /// What the case is: sets, bytes, operations.
  [[nodiscard]] JsonObject Size() const;
  /// Saves the first set's tensors, dX, dW and dB computed anew.
  void Save(const std::string& folder) const;

 private:
  template <typename T>
  [[nodiscard]] Status CallOf(const Context& context, const WantedGradients& wanted, int set) const;
  template <typename T>
  [[nodiscard]] Status ForwardOf(const Context& context, int set) const;
  /// Calls visit with a value of the case's type.
  template <typename Visit>
  [[nodiscard]] Status VisitType(const Visit& visit) const;
  [[nodiscard]] JsonObject Time(const std::function<Status(int set)>& call, int samples) const;
  template <typename Inputs, typename T>
  [[nodiscard]] Inputs InputsOf(int set) const;
  template <typename Outputs, typename T>
  [[nodiscard]] Outputs OutputsOf(const WantedGradients& wanted, int set) const;

  Gpu* gpu_;
  DataType type_;
  bool allow_tf32_;
  double budget_seconds_;
  ConvShapes shapes_;
  ConvGradAttributes attributes_;
  ConvTransposeGradAttributes transposed_attributes_;
  Device device_;
  ArgumentSets sets_;
};

/// ChosenKernels returns the kernel that is remembered for each problem.
JsonObject ChosenKernels();

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_CONV_CONV_CASE_H_
