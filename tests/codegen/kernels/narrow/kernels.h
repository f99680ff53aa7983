// A kernel whose attributes are narrower than the schema's, which C++ calls by the same words.
namespace gradsmith::narrow {

struct Scale {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  struct Attributes {
    float factor = 1;
    int count = 1;
  };
  struct Inputs : Any {};
  struct Outputs : Any {};
  static Status RunCpu(const Context& context, const Attributes& attributes);
};

}  // namespace gradsmith::narrow
