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

// A kernel whose attributes have two fields to a declaration.
struct UnreadFields {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  struct Attributes {
    double factor = 1, other = 2;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel whose kTypes say what no tensor has.
struct UnusedType {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T, U = float | half";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that is the gradient of another with a tensor that it lacks.
struct GradientOfNoField {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kGradientOf = "Scale, dY of Y";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel whose kTypes say nothing of Y.
struct LacksAField {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a symbol of two kinds.
struct ListAndSingleDim {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, D]";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that divides a dim by a double.
struct DividedByNoInteger {
  static constexpr std::string_view kShapes = "X [N / factor, *D], Y [N, *D]";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel whose output is in place of itself.
struct InPlaceOfNoInput {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D], Y in_place_of Y";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a rule for a single dim.
struct RuleOfASingleDim {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D], N = faulty::Larger(D)";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a rule that is not there.
struct RuleOfNoFunction {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *E], E = faulty::Smaller(D)";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a rule of too many symbols.
struct RuleOfTwoSymbols {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *E], E = faulty::Larger(D, D)";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a rule of what no shape has.
struct RuleOfNoSymbol {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *E], E = faulty::Larger(F)";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a sum of lists of dims.
struct SumOfAList {
  static constexpr std::string_view kShapes = "X [N, *D], Y [M, *D], M = sum(D)";
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
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that says of an output that its shape alone is read.
struct LimitOfNoInput {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "Y shape_only";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a limit of what it does not have.
struct LimitOfNothing {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "size min 1";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that limits the length of a single dim.
struct LengthOfASingleDim {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "N length [1, 3]";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that limits an integer of another size.
struct RangeOfANarrowInteger {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "count min 1";
  struct Attributes {
    int count = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that limits a text.
struct RangeOfAText {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "mode min 1";
  struct Attributes {
    std::string mode;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel whose list of dims broadcasts to a single dim.
struct BroadcastToNoList {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "D broadcast_to N";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with an axis of an output.
struct AxisOfAnOutput {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "axis axis_of Y";
  struct Attributes {
    std::int64_t axis = -1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel whose list has the length of a single dim.
struct LengthOfNoList {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "strides length N";
  struct Attributes {
    IntList strides;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a multiple of a double.
struct MultipleOfNoInteger {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kLimits = "N multiple_of factor";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that is the gradient of none.
struct NoSuchForward {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T, Y T";
  static constexpr std::string_view kGradientOf = "Scael, X of Y";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel with a constant that is none.
struct MistypedConstant {
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
  static constexpr std::string_view kLimit = "N multiple_of factor";
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel whose kTypes are no text.
struct ConstantOfNoText {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = Types();
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel whose kTypes have no comma.
struct ConstantDoesNotRead {
  static constexpr std::string_view kShapes = "X [N, *D], Y [N, *D]";
  static constexpr std::string_view kTypes = "X T Y T";
  struct Attributes {
    double factor = 1;
  };
  struct Inputs {
    RequiredInput X = nullptr;
  };
  struct Outputs {
    RequiredOutput Y = nullptr;
  };
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel that has no kTypes.
struct NoTypes {
  static constexpr std::string_view kShapes = "any";
  using Attributes = Any;
  using Inputs = Any;
  using Outputs = Any;
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
};

// A kernel of a base that is not read.
struct OfAnUnreadBase : Elsewhere {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
};

Result<Dims> Larger(const Attributes& attributes, const Dims& D);

}  // namespace gradsmith::faulty
