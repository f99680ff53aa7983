"""The structs of a C++ header: as much of the language as headers of kernels are written in.

Reading takes time in proportion to the text and always ends: what is no C++ ends it, and is told. A struct
may derive from one that stands before it, as in C++, so that there are no circles.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

INHERITED = ("Attributes", "Inputs", "Outputs")  # members of a base that what derives from it has
BLOCK = "{}"  # stands in a declaration for braces and what they hold
_TEXT = '"'  # begins the lexeme of a string: no other lexeme does

_SKIPPED = r"\s+|//(?:\\\n|[^\n])*|\#(?:\\\n|[^\n])*"  # blanks, comments, lines of the preprocessor
_LEXEME = re.compile(
    rf"""(?P<skipped>{_SKIPPED})
    | (?P<comment>/\*)
    | (?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{{0,16}})\()
    | "(?P<text>(?:\\.|[^"\\\n])*)"
    | '(?:\\.|[^'\\\n])*'
    | [^\W\d]\w* | \d(?:[\w.]|'\w)* | :: | .""",
    re.VERBOSE | re.DOTALL,
)

_NO_VARIABLE = frozenset(
    ("class", "enum", "extern", "friend", "struct", "template", "typedef", "union", "using")
)
# Words that another may follow or precede in a value; else a ';' is missing between two words.
_BEFORE = frozenset(
    "and bitand bitor compl const long new not or short signed sizeof typename unsigned xor".split()
)
_BETWEEN = frozenset("and and_eq bitand bitor const noexcept mutable not_eq or s sv xor".split())
_FIRST = frozenset(("namespace", "static", "using"))  # words that are in no value

Declaration = Sequence[str]  # its lexemes, without the ';'


@dataclass(eq=False, slots=True)
class Struct:
    name: str
    namespace: str = ""  # in which it is: "gradsmith::conv"; empty of structs in others
    derives: bool = False  # from whatever it is
    base: Struct | None = None  # from this struct alone
    declarations: list[Declaration] = field(default_factory=list)  # but those of structs
    variables: set[str] = field(default_factory=set)  # the names of those among the declarations
    members: dict[str, Struct | None] = field(default_factory=dict)  # None for names of other things
    inherited: dict[str, Struct | None] = field(default_factory=dict)
    is_closed: bool = False

    def member(self, name: str) -> Struct | None:
        return self.members[name] if name in self.members else self.inherited.get(name)

    def lineage(self) -> list[Struct]:
        """The structs that it derives from, and itself at the end."""
        found = [self]
        while found[-1].base:
            found.append(found[-1].base)
        return found[::-1]

    @property
    def has_unread_base(self) -> bool:
        """It derives, itself or through its base, from what is no one struct of the header."""
        return self.lineage()[0].derives


@dataclass(slots=True)
class Header:
    structs: dict[str, Struct] = field(default_factory=dict)  # those in no other struct
    declarations: list[Declaration] = field(default_factory=list)  # likewise
    fault: str = ""  # what ended the reading, and on which line


def head(declaration: Declaration) -> Declaration:
    """What stands before the value."""
    ends = [declaration.index(mark) for mark in ("=", BLOCK) if mark in declaration]
    return declaration[: min(ends, default=len(declaration))]


def variable(declaration: Declaration) -> str:
    """The name of a variable such as `static constexpr char kText[] = "X"`; empty where something else is
    declared."""
    lexemes = list(head(declaration))
    while lexemes[:1] == ["["] and "]" in lexemes:  # attributes
        del lexemes[: lexemes.index("]") + 1]
        del lexemes[: lexemes[:1] == ["]"]]
    while lexemes[-1:] == ["]"]:  # an array
        del lexemes[len(lexemes) - 1 - lexemes[::-1].index("[") if "[" in lexemes else 0 :]
    if len(lexemes) < 2 or lexemes[0] in _NO_VARIABLE or "(" in lexemes:
        return ""
    return lexemes[-1] if lexemes[-1].isidentifier() else ""


def text_of(lexemes: Sequence[str]) -> str | None:
    """What strings in a row say; None where there is anything else, or nothing."""
    if not lexemes or not all(lexeme.startswith(_TEXT) for lexeme in lexemes):
        return None
    return "".join([lexeme[1:] for lexeme in lexemes])


def read(text: str, namespaces: Sequence[str]) -> Header:
    """`namespaces` are those that names of the header's own structs may be qualified by."""
    reader = _Reader(text, frozenset(namespaces))
    try:
        reader.run()
    except _Fault as fault:
        reader.header.fault = str(fault)
    return reader.header


class _Fault(Exception):
    """The argument says what is wrong, and on which line."""


@dataclass(slots=True)
class _Scope:
    start: int  # of its brace
    struct: Struct | None = None
    namespace: str = ""  # that it opens; empty of one that is inline or has no name
    skipped: bool = False  # a block of something else than declarations


@dataclass(slots=True)
class _Pending:
    """A declaration that is being read."""

    lexemes: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # where they begin
    struct_at: int = -1  # where the last `struct` stands
    has_parentheses: bool = False
    depth: int = 0  # of these
    has_value: bool = False
    is_tail: bool = False  # what stands between a struct's brace and its ';'
    angles: int = 0  # depth of a template's parameters

    def add(self, lexeme: str, place: int) -> None:
        if self.lexemes == ["template"] or self.angles:
            self.angles += (lexeme == "<") - (lexeme == ">")
        if lexeme == "struct":
            self.struct_at = len(self.lexemes)
        self.has_parentheses |= lexeme == "("
        self.depth += (lexeme == "(") - (lexeme == ")")
        is_value = lexeme == "=" and self.depth == 0 and self.angles == 0
        self.has_value |= is_value and self.lexemes[-1:] != ["operator"]
        self.lexemes.append(lexeme)
        self.places.append(place)

    def is_ended_by(self, lexeme: str) -> bool:
        """Two words in a row are never in a value, but for strings and a few words."""
        last = self.lexemes[-1] if self.has_value and self.depth == 0 else ""
        is_word = last == BLOCK or last[:1].isalnum() or last[:1] in ("_", _TEXT)
        is_ended = is_word and last not in _BEFORE and lexeme.isidentifier() and lexeme not in _BETWEEN
        return is_ended or (bool(last) and lexeme in _FIRST)

    @property
    def opens_namespace(self) -> bool:
        first = self.lexemes[: 2 if self.lexemes[:1] == ["inline"] else 1]
        return first[-1:] == ["namespace"] or self.lexemes[:1] == ["extern"]

    @property
    def namespace(self) -> str:
        """What is opened, as names are qualified by it: without those that are inline or have no name."""
        if self.lexemes[0] != "namespace":
            return ""
        begin = len(self.lexemes) - self.lexemes[::-1].index("]") if "]" in self.lexemes else 1
        words = [word for word in self.lexemes[begin:] if word.isidentifier()]
        names = [word for before, word in pairwise(["", *words]) if "inline" not in (before, word)]
        return "::".join(names)

    @property
    def opens_struct(self) -> bool:
        return self.struct_at >= 0 and not self.has_parentheses and not self.has_value


class _Reader:
    def __init__(self, text: str, namespaces: frozenset[str]) -> None:
        self.header = Header()
        self._text = text
        self._namespaces = namespaces
        self._scopes: list[_Scope] = []
        self._pending = _Pending()
        self._closed: list[tuple[int, int]] = []  # where braces begin and end
        self._nested: list[tuple[int, int]] = []  # where structs begin, and those that they hold

    def run(self) -> None:
        for lexeme, start in self._lexemes():
            if lexeme == "{":
                self._open(start)
            elif lexeme == "}":
                self._close(start)
            elif self._scopes and self._scopes[-1].skipped:
                continue
            elif lexeme == ";":
                self._end_declaration()
            else:
                self._add(lexeme, start)
        if self._scopes:
            raise _Fault(f"{self._line(self._unclosed())}: this '{{' has no '}}'")

    # -- Lexemes ---

    def _lexemes(self) -> Iterator[tuple[str, int]]:
        text, match = self._text, _LEXEME.match
        start = 0
        while found := match(text, start):
            here, start = start, found.end()
            kind = found.lastgroup
            if kind == "comment":
                start = self._after("*/", start, here, "comment")
            elif kind in ("raw", "mark"):
                end = self._after(f'){found["mark"]}"', start, here, "string")
                yield _TEXT + text[start : end - len(found["mark"]) - 2], here
                start = end
            elif kind == "text":
                yield _TEXT + found["text"], here
            elif kind != "skipped":
                if found[0] in ('"', "'"):
                    raise _Fault(f"{self._line(here)}: this {found[0]} has no end")
                yield found[0], here

    def _after(self, end: str, start: int, begin: int, what: str) -> int:
        found = self._text.find(end, start)
        if found < 0:
            raise _Fault(f"{self._line(begin)}: this {what} has no end")
        return found + len(end)

    # -- Scopes ---

    @property
    def _struct(self) -> Struct | None:
        return self._scopes[-1].struct if self._scopes else None

    @property
    def _namespace(self) -> str:
        return "" if self._struct else "::".join([one.namespace for one in self._scopes if one.namespace])

    def _open(self, start: int) -> None:
        pending = self._pending
        if self._scopes and self._scopes[-1].skipped:
            self._scopes.append(_Scope(start, skipped=True))
        elif not self._struct and pending.opens_namespace:
            self._scopes.append(_Scope(start, namespace=pending.namespace))
            self._pending = _Pending()
        elif pending.opens_struct:
            struct = self._new_struct(pending.lexemes[pending.struct_at + 1 :], start)
            if self._struct:
                self._nested.append((self._scopes[-1].start, start))
            self._scopes.append(_Scope(start, struct))
            self._pending = _Pending()
        else:
            self._scopes.append(_Scope(start, skipped=True))

    def _close(self, start: int) -> None:
        if not self._scopes:
            raise _Fault(f"{self._line(start)}: this '}}' has no '{{'")
        scope = self._scopes.pop()
        self._closed.append((scope.start, start))
        if scope.skipped:
            if not (self._scopes and self._scopes[-1].skipped):
                self._pending.add(BLOCK, start)
                if self._pending.has_parentheses and not self._pending.has_value:  # a function's body
                    self._end_declaration()
        else:
            if scope.struct and not self._pending.is_tail and variable(self._pending.lexemes):
                raise self._unended()
            self._pending = _Pending(is_tail=scope.struct is not None)
            if scope.struct:
                scope.struct.is_closed = True

    def _add(self, lexeme: str, start: int) -> None:
        if self._pending.is_ended_by(lexeme):
            raise self._unended()
        self._pending.add(lexeme, start)

    def _unended(self) -> _Fault:
        name = variable(self._pending.lexemes)
        what = f" of {name}" if name else ""
        return _Fault(
            f"{self._line(self._pending.places[-1])}: expected ';' at the end of the declaration{what}"
        )

    def _end_declaration(self) -> None:
        pending, self._pending = self._pending, _Pending()
        if pending.is_tail or not pending.lexemes:
            return
        struct = self._struct
        if struct is None:
            self.header.declarations.append(pending.lexemes)
        elif pending.lexemes[0] == "using" and pending.lexemes[2:3] == ["="]:
            name = pending.lexemes[1]
            self._expect_first(name, struct.members, pending.places[1])
            struct.members[name] = self._find(pending.lexemes[3:])
        else:
            name = variable(pending.lexemes)
            if name:
                self._expect_first(name, struct.variables, pending.places[pending.lexemes.index(name)])
                struct.variables.add(name)
            struct.declarations.append(pending.lexemes)

    def _expect_first(self, name: str, known: Container[str], place: int) -> None:
        if name in known:
            raise _Fault(f"{self._line(place)}: a second {name}; the preprocessor's #if is not read")

    # -- Structs ---

    def _new_struct(self, head: list[str], start: int) -> Struct:
        """From what stands between `struct` and its brace."""
        colon = head.index(":") if ":" in head else len(head)
        words = [lexeme for lexeme in head[:colon] if lexeme != "final"]
        bases = [lexeme for lexeme in head[colon + 1 :] if lexeme not in ("public", "struct")]
        base = self._find(bases)
        struct = Struct(words[-1] if words else "", self._namespace, bool(bases), base)
        if base:
            own = {name: base.members[name] for name in INHERITED if name in base.members}
            struct.inherited = base.inherited | own
        outer = self._struct
        siblings = outer.members if outer else self.header.structs
        self._expect_first(struct.name, siblings, start)
        siblings[struct.name] = struct
        return struct

    def _find(self, path: Sequence[str]) -> Struct | None:
        """The struct of a name such as `family::Kernel::Inputs`; None where there is none so far."""
        names, separators = list(path[::2]), path[1::2]
        if not names or any(separator != "::" for separator in separators):
            return None
        while len(names) > 1 and names[0] in self._namespaces:
            del names[0]
        outer = self._struct
        own = outer.members.get(names[0]) if outer and len(path) == 1 else None
        found = own or self.header.structs.get(names[0])
        for name in names[1:]:
            found = found.member(name) if found else None
        return found if found and found.is_closed else None

    # -- Places ---

    def _line(self, start: int) -> str:
        return f"line {self._text.count(chr(10), 0, start) + 1}"

    def _unclosed(self) -> int:
        """The brace that lacks its partner, by the indentation: the first whose partner does not stand below
        the beginning of its line, or that holds a struct no further in than its own; else the outermost."""
        starts = [0, *[match.end() for match in re.finditer("\n", self._text)]]

        def line_and_indent(place: int) -> tuple[int, int]:
            line = bisect_right(starts, place) - 1
            beginning = self._text[starts[line] : starts[line] + 80]
            return line, len(beginning) - len(beginning.lstrip())

        suspects = [self._scopes[0].start]
        for pairs, is_sound in ((self._closed, int.__eq__), (self._nested, int.__lt__)):
            for start, end in pairs:
                (first, outer), (last, inner) = line_and_indent(start), line_and_indent(end)
                if first != last and not is_sound(outer, inner):
                    suspects.append(start)
        return min(suspects[1:], default=suspects[0])
