// Kernels that take lists of tensors.
namespace gradsmith::lists {

struct Join {
  static constexpr std::string_view kShapes = "X [P, *B], rate [], Y [S, *B], Z [*B], S = sum(P)";
  static constexpr std::string_view kTypes = "X T, rate float, Y T, Z T";
  struct Attributes {};
  struct Inputs {
    RequiredInputs X;
    const ConstTensorRef* rate = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
    std::span<const TensorRef> Z;
  };
  static Status RunCpu(const Context& context, const Attributes& attributes);
};

struct Add {
  static constexpr std::string_view kShapes = "X [*D], Y [*D], Z [*D]";
  static constexpr std::string_view kTypes = "X T, Y T, Z T";
  struct Attributes {};
  struct Inputs {
    RequiredInputs X;
  };
  struct Outputs {
    const TensorRef* Y = nullptr;
    std::span<const TensorRef> Z;
  };
  static Status RunCpu(const Context& context, const Attributes& attributes);
};

}  // namespace gradsmith::lists
