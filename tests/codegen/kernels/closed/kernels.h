// A header in which a brace is one too many.
struct Scale {};
}
