// Kernels of the tests' small schemas, of which there is nothing but this. They take any
// arguments, so that the schemas may vary as they like.
namespace gradsmith::scale {

struct Scale {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  struct Attributes : Any {};
  struct Inputs : Any {};
  struct Outputs : Any {};
  static Status RunCpu(const Context& context, const Attributes& attributes);
  static Status RunCuda(const Context& context, const Attributes& attributes);
};

struct ScaleGrad {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context& context, const Attributes& attributes);
  static Status RunCuda(const Context& context, const Attributes& attributes);
};

struct Other {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context& context, const Attributes& attributes);
  static Status RunCuda(const Context& context, const Attributes& attributes);
};

Result<Dims> Larger(const Attributes& attributes, const Dims& D);

struct CpuOnly {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context& context, const Attributes& attributes);
};

}  // namespace gradsmith::scale
