"""Headers that are no C++, or odd C++: reading them ends, soon, and says what is wrong."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from gradsmith_codegen.cpp_structs import Header, read
from gradsmith_codegen.kernel_headers import RUNTIME, KernelHeaders


def structs(text: str) -> Header:
    return read(text, ("gradsmith", "family"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("struct A {\nstruct B : A {\n};\n};\n", ""),  # B stands in A, of which it can be no part
        ("struct A {\n  int a;\n\nstruct B : A {\n};\n", "line 1: this '{' has no '}'"),
        ("namespace n {\nstruct A {\n  int a;\n\nstruct B : A {\n};\n}\n", "line 2: this '{' has no '}'"),
        ("namespace n {\nstruct A {\n  struct I {\n  };\n};\n", "line 1: this '{' has no '}'"),
        ("struct A {\n};\n}\n", "line 3: this '}' has no '{'"),
        ("struct A {\n};\n/* no end\n", "line 3: this comment has no end"),
        ('struct A {\n};\nauto x = "no end\n', 'line 3: this " has no end'),
        ("struct A {\n};\nauto x = 'no end\n", "line 3: this ' has no end"),
        ('struct A {\n};\nauto x = R"x(no end)"\n', "line 3: this string has no end"),
        ("struct A {\n};\n#if 0\nstruct A {\n};\n", "line 4: a second A; the preprocessor's #if is not read"),
    ],
)
def test_what_is_no_cpp_is_told_with_its_line(text: str, fault: str) -> None:
    for ends in (text, text.replace("\n", "\0\n")):
        header = structs(ends)
        assert header.fault == fault
        assert "A" in header.structs or fault == "line 1: this '{' has no '}'"


@pytest.mark.parametrize(
    "text",
    [
        "struct B : A {}; struct A : B {};",
        "struct A : A {};",
        "struct A { struct B : A {}; struct C : B {}; };",
        "struct A { using A = A; };",
        "struct A { using I = B::I; }; struct B { using I = A::I; };",
    ],
)
def test_circles_are_none(text: str) -> None:
    """A struct derives from what stands before it, or from something that is not known."""
    header = structs(text)
    assert not header.fault
    for struct in header.structs.values():
        assert len(struct.lineage()) <= 2


@pytest.mark.parametrize(
    "declaration",
    [
        "template <int N = 2> static int F() { return N; } int a;",
        "template <typename T = int> static T F(T t = T()); int a;",
        "static constexpr auto f = [](int a) { return a; }; int a;",
        "static constexpr auto f = [](int a) mutable noexcept { return a; }; int a;",
        "bool operator==(const A& other) const = default; int a;",
        "bool F() const; int F(int a) const; int F; int a = 2 and not 3;",
        '[[deprecated("b")]] int b; unsigned long long a = sizeof(const unsigned char) + 0x1p-3;',
        "using F = const unsigned char* (*)(int a, int b); enum class E; enum class E { k }; int a[] = {1, 2};",
        'static constexpr auto k = "text"sv; public: int a = B::C ? 1 : 2;',
    ],
)
def test_odd_declarations_that_are_right_are_read(declaration: str) -> None:
    header = structs(f"struct A {{ {declaration} }};")
    assert not header.fault
    assert "a" in header.structs["A"].variables


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        ("%s", ""),
        ("namespace a::b { %s }", "a::b"),
        ("namespace a { struct B {}; namespace b { %s } }", "a::b"),
        ("namespace x { int f() { return 1; } } namespace a { %s }", "a"),
        ("namespace a::inline v1 { inline namespace v2 { namespace { %s } } }", "a"),
        ('extern "C++" { namespace [[deprecated("x")]] a { %s } }', "a"),
    ],
)
def test_the_namespace_of_a_struct(text: str, namespace: str) -> None:
    assert structs(text % "struct S { struct Inputs {}; };").structs["S"].namespace == namespace


def test_what_only_looks_like_code_is_none() -> None:
    text = r"""
    // struct A { \
    struct B {
    /* struct C { " */
    #define D struct D { \
      int d;
    const char* text = "struct E { \" /*";
    const char* raw = R"x(struct F { )" } )x";
    char brace = '{', quote = '\'';
    int number = 1'000'000;
    enum class G : int { kA, kB };
    template <typename T> struct H { T value; };
    inline int Function(int x = 1) { struct I { int i; }; return x; }
    extern "C" { struct J { int j; }; }
    struct K;
    struct K final { int operator=(int k) { return k; } double k = 1; } instance;
    """
    header = structs(text)
    assert not header.fault
    assert list(header.structs) == ["H", "J", "K"]
    assert header.structs["K"].declarations[-1] == ["double", "k", "=", "1"]


SIZE = 2**16


@pytest.mark.parametrize(
    "piece",
    [
        *("{", "}", "struct A {", "struct A : B {", "/*", '"', "'", 'R"(', r"\'", "//", "#", "(", "a ", "::", "= {}"),
        *("int a;", "int f() {}", "using A = B;", "namespace {", "<", ", ", "1'", "\\\n", "\r\n", "é", "\0"),
    ],
)
def test_a_long_text_of_anything_is_read_soon(piece: str) -> None:
    """Whatever grows with the square of this takes many minutes."""
    structs(piece * (SIZE // len(piece)))


@pytest.mark.parametrize("form", ["struct A{i} : A{before} {{}};", "struct A{i} : A{before} {{ int a{i}; }};"])
def test_a_long_lineage_is_read_soon(tmp_path: Path, form: str) -> None:
    members = "struct Attributes {}; struct Inputs {}; struct Outputs {};"
    lines = [form.format(i=i, before=i - 1) for i in range(1, SIZE // 40)]
    (tmp_path / "family").mkdir()
    (tmp_path / "family/kernels.h").write_text("\n".join([f"struct A0 {{ {members} }};", *lines]), encoding="utf-8")
    headers = KernelHeaders([tmp_path])
    assert len(headers.kernel_names()) == SIZE // 40
    kernel = headers.kernel(f"family::A{SIZE // 40 - 1}")
    assert kernel
    assert kernel.faults[0] == "it has no kShapes"


@pytest.mark.parametrize("family", ["conv", "batch_norm"])
def test_a_header_with_a_piece_less_or_moved(family: str, tmp_path: Path) -> None:
    """Reading ends whatever is missing; every brace that is missing is told."""
    text = (RUNTIME / family / "kernels.h").read_text(encoding="utf-8")
    generator = random.Random(family)
    code = re.sub(r'R"\(.*?\)"', lambda raw: " " * len(raw[0]), text, flags=re.DOTALL)
    for place in [at for at, character in enumerate(code) if character in "{}"]:
        assert structs(text[:place] + text[place + 1 :]).fault
    for _ in range(100):
        first, second = sorted(generator.sample(range(len(text)), 2))
        for changed in (text[:first] + text[second:], text[first:] + text[:first], text[:second] + text[first:]):
            (tmp_path / family).mkdir(exist_ok=True)
            (tmp_path / family / "kernels.h").write_text(changed, encoding="utf-8")
            headers = KernelHeaders([tmp_path])
            for name in headers.kernel_names():
                assert headers.kernel(name)
