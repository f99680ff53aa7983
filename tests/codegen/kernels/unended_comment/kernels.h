// A header in which a comment has no end.
namespace gradsmith::unended_comment {

/* The kernel.
struct Scale {};

}  // namespace gradsmith::unended_comment
