// A kernel of another library.
namespace mylib::elsewhere {

struct Scale {
  static constexpr std::string_view kShapes = "any";
  static constexpr std::string_view kTypes = "any";
  struct Attributes : Any {};
  struct Inputs : Any {};
  struct Outputs : Any {};
  static Status RunCpu(const Context& context, const Attributes& attributes);
  static Status RunCuda(const Context& context, const Attributes& attributes);
};

}  // namespace mylib::elsewhere
