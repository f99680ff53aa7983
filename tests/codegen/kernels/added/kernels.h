// A kernel that adds, and its gradient, which is that of both inputs.
namespace gradsmith::added {

struct Attributes {};

struct Add {
  static constexpr std::string_view kShapes = "A [*D], B [*D], Y [*D]";
  static constexpr std::string_view kTypes = "A T, B T, Y T";
  using Attributes = added::Attributes;
  struct Inputs {
    RequiredInput A = nullptr;
    RequiredInput B = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

struct AddGrad {
  static constexpr std::string_view kShapes = "dY [*D], dA [*D]";
  static constexpr std::string_view kTypes = "dY T, dA T";
  static constexpr std::string_view kGradientOf = "Add, dY of Y, dA of A and B";
  using Attributes = added::Attributes;
  struct Inputs {
    RequiredInput dY = nullptr;
  };
  struct Outputs {
    RequiredOutput dA = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

}  // namespace gradsmith::added
