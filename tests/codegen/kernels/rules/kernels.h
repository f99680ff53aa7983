// Kernels that say much of what they take, and shape rules of theirs.
namespace gradsmith::rules {

struct Attributes {
  std::int64_t axis = -1;
  std::int64_t count = 1;
  IntList steps = {};
  IntList sizes = {};
};

struct Limited {
  static constexpr std::string_view kShapes = "X [*A, C, *B], S [*S], Y [*A, C, *B]";
  static constexpr std::string_view kTypes = "X T, S T, Y T, T = float | double";
  static constexpr std::string_view kLimits =
      "A length axis, axis axis_of X, S broadcast_to B, count max 9, steps length B";
  using Attributes = rules::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
    const ConstTensorRef* S = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

struct Axis {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "axis axis_of X, steps length D";
  using Attributes = rules::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

inline constexpr std::string_view kPart = R"(
    floor(D / count)
)";
Result<Dims> Part(const Attributes& attributes, const Dims& D);

inline constexpr std::string_view kStep = R"(
    entry(steps, 1) * D - K
)";
Result<Dims> Step(const Attributes& attributes, const Dims& D, const Dims& K);

inline constexpr std::string_view kUnread = R"(
    D +
)";
Result<Dims> Unread(const Attributes& attributes, const Dims& D);

struct Ruled {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *O], O = rules::Part(D)";
  static constexpr std::string_view kTypes = "X T, Y T";
  using Attributes = rules::Attributes;
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// It takes any arguments, and their shapes by any rule.
struct Free {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

}  // namespace gradsmith::rules
