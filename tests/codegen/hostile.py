"""A schema whose every name is one that C, C++, Python, a page or the generated code itself has another use for, and
texts that would be code in any kind of output."""

from __future__ import annotations

from collections.abc import Iterable

INPUTS = "I NAN errno Dims TensorView std gradsmith None np A self context inputs in to T_1"
OUTPUTS = "Kernel result outputs Any BFloat16 NamedTuple index lambda"
INTS = "unix linux assert stdin min max NULL attributes policies out IntList from major EOF signbit"
ENUMS = ("auto_pad", "autoPad", "AUTO_pad")
CHOICES = "[NOTSET, SAME_UPPER, SAME_LOWER, VALID]"

# Macros, names of files and of what Python has, and what the tests' support and the generated code call things.
OPS = """EOF NULL EINVAL NAN I T README Int Str Dict Float Std Import Lambda None HasConv ConvRows Conv Explain Torch
    PRIdMAX LSTM"""
OWN_OPS = (
    "Layout Case OpTests TypedRow TypedShapes TypedCall TestTensor NamedShape Make Run Infer Given CallTyped Callable"
)
TYPE_PARAMETERS = """Context Status Row Run CallTyped Result EOF NULL Given Backend DataType T U Infer typename_1 Make
    OpSchema float_1 IntList GRADSMITH_OPS_H Input"""

# Each would end, continue or become something in one of the outputs.
TEXTS = [
    'quotes """',
    'ends in a quote "',
    '\'single\' "double" \'\'\' """"',
    "ends in a trigraph ??/",
    "??/ ???/ ??' ??< ??????/",
    "*/ /* // /**/ #error no",
    "{{ 7 * 7 }} {% raw %} {# no #} ${HOME} $(id) `id`",
    "| a | b |\\x |",
    "<script>alert(1)</script> <!-- --> &lt; &amp; <b",
    "[link](javascript:alert(1)) ![image](x) <http://x> *a* _b_ __c__ ~~d~~",
    "# heading",
    "1. list",
    "--- dashes",
    "> quote",
    ">>> open('PWNED', 'w')",
    ">>> " + "import os " * 20 + ">>> os.abort() " * 12,
    "coding: utf-7 coding=latin-1",
    "\\N{DIGIT ONE} \\u0041 \\x41 \\n \\",
    "%s %d {0} {name} \\0 \\777",
    'R"(raw)" u8"x" )"',
    "caf\u00e9 \u540d\u524d \U0001f600",
]
FILE_NAMES = [
    *TEXTS,
    'x\nopen("PWNED", "w")\n#',
    'x\r\n#error "PWNED"\r\n',
    "x\n-->\n<script>",
    "bidi \u202e \u2066 \u200f",
    "separators \u2028 \u2029 \x85 \x0b \x0c",
    "bytes \udcff\udc80",
    "nul is impossible, escape \x1b[31m is not",
]


def schema(docs: Iterable[str]) -> str:
    """With a doc at each operator and each tensor, in turn."""
    texts = iter(docs)

    def doc() -> str:
        return "'" + next(texts).replace("'", "''") + "'"

    lines = ["schema_version: 1", "domain: com.example", "since_version: 1", "ops:"]
    parameters = TYPE_PARAMETERS.split()
    for number, op in enumerate(ops()):
        parameter = parameters[number % len(parameters)]
        first, *others = INPUTS.split()
        lines += [
            f'  - name: "{op}"',
            f"    doc: {doc()}",
            "    kernel: hostile::Hostile",
            "    backends: [cpu]",
            "    inputs:",
            f'      "{first}": {{type: "{parameter}", shape: [N, C], doc: {doc()}}}',
            *[f'      "{name}": {{type: "{parameter}", like: "{first}"}}' for name in others],
            "    outputs:",
            *[f'      "{name}": {{type: "{parameter}", like: "{first}", doc: {doc()}}}' for name in OUTPUTS.split()],
            "    attributes:",
            *[f'      "{name}": {{type: int, default: 1, doc: {doc()}}}' for name in INTS.split()],
            *[f'      "{name}": {{type: enum, enum: AutoPad, choices: {CHOICES}, default: VALID}}' for name in ENUMS],
            "    rows:",
            f'      int: {{"{parameter}": {("half", "float")[number % 2]}}}',
            "    cases:",
            f'      - {{name: class, "{first}": [2, 3], "NULL": 3, unix: 4, autoPad: NOTSET}}',
        ]
    return "\n".join(lines) + "\n"


def ops() -> list[str]:
    return f"{OPS} {OWN_OPS}".split()


def names() -> list[str]:
    """What the generated C++ declares for callers, but for what no C++ can do without."""
    return sorted({*f"{INPUTS} {OUTPUTS} {INTS} {OPS}".split(), *ENUMS} - {"std", "gradsmith"})


def _fields(kind: str, fields: str) -> str:
    return "".join(f"    {kind} {name};\n" for name in fields.split())


def _each(what: str) -> str:
    return ", ".join(f"{name} {what}" for name in f"{INPUTS} {OUTPUTS}".split())


# As a kernel's author would have to write it, who wants such names.
KERNELS_H = f"""\
#pragma once
#include "core/kernel_arguments.h"
#include "gradsmith/attributes.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
{"".join(f'#pragma push_macro("{name}")' + chr(10) + f"#undef {name}" + chr(10) for name in names())}
namespace gradsmith::hostile {{
struct Hostile {{
  static constexpr std::string_view kShapes = "{_each("[N, C]")}";
  static constexpr std::string_view kTypes = "{_each("T")}";
  struct Attributes {{
{_fields("std::int64_t", INTS)}{_fields("AutoPad", " ".join(ENUMS))}  }};
  struct Inputs {{
{_fields("RequiredInput", INPUTS)}  }};
  struct Outputs {{
{_fields("RequiredOutput", OUTPUTS)}  }};
  static constexpr bool Covers(Backend, std::span<const DataType>) {{ return true; }}
  static Status RunCpu(const Context&, const Attributes&, const Inputs&, const Outputs&);
}};
}}  // namespace gradsmith::hostile
{"".join(f'#pragma pop_macro("{name}")' + chr(10) for name in reversed(names()))}
"""
ORACLE_H = """\
#include "reference/oracle.h"
namespace gradsmith::reference::hostile {
const Oracle& Hostile();
}
"""
