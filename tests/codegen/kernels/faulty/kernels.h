// A kernel whose constants do not fit its fields.
namespace gradsmith::faulty {

struct Scale {
  static constexpr std::string_view kShapes = "X [N, *D], Z [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context& context, const Attributes& attributes);
};

// A kernel with two functions for the CPU.
struct Twice {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status Run(const Context&, const Attributes&, const Inputs&, const Outputs&);
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

}  // namespace gradsmith::faulty
