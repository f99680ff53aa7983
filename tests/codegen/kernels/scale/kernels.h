// Kernels of the tests' small schemas, of which there is nothing but this. Their members are in a
// form that the generator does not read, so that the schemas may vary as they like.
struct Scale {
  struct Attributes : Any {};
  struct Inputs : Any {};
  struct Outputs : Any {};
  static Status RunCpu(const Context& context, const Attributes& attributes);
  static Status RunCuda(const Context& context, const Attributes& attributes);
};

struct ScaleGrad {
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context& context, const Attributes& attributes);
  static Status RunCuda(const Context& context, const Attributes& attributes);
};

struct Other {
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context& context, const Attributes& attributes);
  static Status RunCuda(const Context& context, const Attributes& attributes);
};

Result<Dims> Larger(const Attributes& attributes, const Dims& D);

struct CpuOnly {
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context& context, const Attributes& attributes);
};
