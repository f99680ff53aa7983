// A header in which a text has no end.
namespace gradsmith::unended_text {

struct Scale {
  static constexpr std::string_view kShapes = "any;
};

}  // namespace gradsmith::unended_text
