"""What the loader and the reader find fault with: for each id, the sentence and what it means.

A fault function returns the sentence; the decorator makes it a function from the place and the same arguments
to a `Diagnostic`. What holds between several parts of the schema is stated in `checks`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Concatenate, ParamSpec

from . import lookalikes
from .diagnostics import Diagnostic, Severity, register
from .spans import Span
from .suggestions import did_you_mean, instead, listing, nearest

P = ParamSpec("P")

WRONG_ALIAS, UNUSED_ANCHOR = "G035", "G022"


def fault(
    rule_id: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[P, str]], Callable[Concatenate[Span | None, P], Diagnostic]]:
    """Registers the decorated sentence as a rule."""

    def decorate(sentence: Callable[P, str]) -> Callable[Concatenate[Span | None, P], Diagnostic]:
        rule = register(rule_id, severity, sentence.__doc__)

        @functools.wraps(sentence)
        def diagnose(span: Span | None, /, *args: P.args, **kwargs: P.kwargs) -> Diagnostic:
            return Diagnostic(rule.id, rule.severity, sentence(*args, **kwargs), span)

        return diagnose

    return decorate


# ----------------------------------------------------------------------------------------------------
# The file


@fault("G001")
def unreadable(reason: str) -> str:
    """The file cannot be read: it is missing, a folder, or forbidden."""
    return f"cannot read the schema: {reason}"


@fault("G002")
def bad_text(problem: str) -> str:
    """The file is not UTF-8 text, or holds a control character."""
    return problem


@fault("G003")
def syntax(problem: str) -> str:
    """The text is not YAML."""
    return problem


@fault("G004")
def empty_document() -> str:
    """The file holds no YAML document, or an empty one."""
    return "the schema is empty"


@fault("G005")
def several_documents() -> str:
    """The file holds more than one YAML document."""
    return "a second YAML document starts here; a schema is one document"


# ----------------------------------------------------------------------------------------------------
# YAML


@fault("G006")
def recursive_alias(anchor: str) -> str:
    """An alias stands inside the very node that it repeats."""
    return f"alias '*{anchor}' stands inside what it repeats"


@fault("G007")
def duplicate_key(key: str) -> str:
    """A key occurs twice in one mapping. (YAML loaders keep the last one and say nothing.)"""
    return f"duplicate key '{key}'"


@fault("G008")
def unknown_key(keys: Sequence[str], owner: str, known: Collection[str]) -> str:
    """A key means nothing where it stands."""
    return f"unknown key{'s' if len(keys) > 1 else ''} {listing(keys)} in {owner}{instead(keys[0], known)}"


@fault("G009")
def missing_key(keys: Iterable[str], owner: str) -> str:
    """A key that must be there is not."""
    keys = list(keys)
    return f"{owner} lacks the key{'s' if len(keys) > 1 else ''} {listing(keys)}"


@fault("G010")
def wrong_kind(owner: str, expected: str, got: str) -> str:
    """A mapping, a list or a plain value stands where another of these is meant, or nothing at all."""
    return f"{owner} must be {expected}, not {got}"


@fault("G011")
def yaml_surprise(sentence: str) -> str:
    """A plain word that YAML reads as something else than it looks like: `no` is false, `010` is 8, `1_000`
    is 1000, `12:30` is 750, `1e3` is a string."""
    return sentence


@fault("G012")
def bad_number(owner: str, expected: str, got: str) -> str:
    """A number is meant, and this is none, or not of the right kind, or not representable."""
    return f"{owner} must be {expected}, not {got}"


@fault("G013")
def unsupported_version(version: int, supported: int) -> str:
    """The schema's version is not one that this generator reads."""
    return f"schema_version {version} is not supported; this generator reads version {supported}"


# What the element types are called by NumPy, PyTorch and others: names that differ by a digit are not near.
_ELSEWHERE = {
    **dict.fromkeys(("float16", "fp16", "f16"), "'half' (MLFloat16)"),
    **dict.fromkeys(("float32", "fp32", "f32", "single"), "'float'"),
    **dict.fromkeys(("float64", "fp64", "f64"), "'double'"),
    "bfloat16": "'BFloat16'",
    **dict.fromkeys(("int", "integer"), "'int32' or 'int64'"),
    **dict.fromkeys(("long", "i64"), "'int64'"),
    "i32": "'int32'",
}


@fault("G014")
def unknown_type(name: str, known: Collection[str]) -> str:
    """An element type that does not exist."""
    return f"unknown type '{name}'{instead_of_type(name, known)}"


def instead_of_type(name: str, known: Collection[str]) -> str:
    """As `instead`, also of what others call types."""
    meant = _ELSEWHERE.get(name.lower())
    return f"; did you mean {meant}?" if meant else instead(name, known)


@fault("G015")
def unknown_backend(name: str, known: Collection[str]) -> str:
    """A backend that does not exist."""
    return f"unknown backend '{name}'{instead_of_backend(name, known)}"


def instead_of_backend(name: str, known: Collection[str]) -> str:
    """As `instead`, also of what others call backends."""
    return "; did you mean 'cuda'?" if name.lower() in ("gpu", "nvidia") else instead(name, known)


# As frameworks call them.
_LAYOUTS_ELSEWHERE = {
    **dict.fromkeys(("nhwc", "nwc", "nlc", "ndhwc", "channellast"), "channels_last"),
    **dict.fromkeys(("nchw", "ncw", "ncl", "ncdhw", "channelsfirst", "dense", "packed"), "contiguous"),
}


@fault("G016")
def unknown_layout(name: str, known: Collection[str]) -> str:
    """A memory layout that no test can give its tensors."""
    meant = _LAYOUTS_ELSEWHERE.get(re.sub(r"[\W_]", "", name.lower()))
    hint = f"; did you mean '{meant}'?" if meant else instead(name, known)
    return f"unknown layout '{name}'{hint}"


@fault("G017")
def undefined_alias(anchor: str, known: Collection[str], key: str = "") -> str:
    """An alias has no anchor before it. A list symbol of a shape must be quoted: `"*D"`."""
    near = did_you_mean(anchor, known)
    meant = near or (f'; to mean a list symbol, write "*{anchor}"' if key == "shape" else "")
    return f"alias '*{anchor}' has no anchor '&{anchor}' before it{meant}"


@fault("G018")
def tag(text: str) -> str:
    """A YAML tag (`!!str`, `!thing`); the schema knows none."""
    return f"YAML tag '{text}' is not supported; remove it"


@fault("G019")
def too_deep(limit: int) -> str:
    """Lists and mappings are nested deeper than any schema needs."""
    return f"nested more than {limit} levels deep"


@fault("G020")
def bad_merge(got: str) -> str:
    """The value of the merge key `<<` is no mapping or list of mappings."""
    return f"'<<' merges a mapping or a list of mappings, not {got}"


@fault("G037")
def unknown_repeatable(name: str, known: Collection[str]) -> str:
    """A word for whether calls are repeatable that does not exist."""
    return f"'{name}' does not say whether calls are repeatable{instead(name, known)}"


@fault("G036")
def too_many_merged(limit: int) -> str:
    """The merge key `<<` brings more entries than any schema needs."""
    return f"'<<' brings more than {limit} entries"


@fault("G021")
def duplicate_anchor(anchor: str) -> str:
    """Two nodes have the same anchor, so that it depends on the place what an alias repeats."""
    return f"duplicate anchor '&{anchor}'"


@fault("G022", Severity.WARNING)
def unused_anchor(anchor: str) -> str:
    """No alias uses the anchor."""
    return f"anchor '&{anchor}' is not used"


# ----------------------------------------------------------------------------------------------------
# Files that are included


@fault("G038")
def unreadable_inclusion(text: str, reason: str) -> str:
    """A file that is to be included cannot be read: it is missing, a folder, or forbidden."""
    return f"cannot read the included file '{text}': {reason}"


@fault("G039")
def circular_inclusion(names: Sequence[str]) -> str:
    """A file includes itself, directly or through others."""
    return f"a file includes itself: {', '.join(names[:-1])}, and that {names[-1]} again"


@fault("G040")
def bad_inclusion_name(text: str, other: str) -> str:
    """Two included files have the same name, but for their folders, or one has a name that references cannot
    begin with: parts are referred to by it, as `conv.attributes`."""
    if other:
        return f"'{text}' is called as '{other}' is, so that references could mean either"
    return f"'{text}' has a name that no reference can begin with; expected letters, digits, '_' and '-'"


@fault("G041")
def unknown_part(reference: str, names: Collection[str], known: Collection[str]) -> str:
    """A reference, such as `conv.attributes`, names no file that is included, or no anchor of that file."""
    name, _, anchor = reference.partition(".")
    if name in names:
        return f"the included file '{name}' has no anchor '&{anchor}'{instead(reference, known)}"
    return f"'{reference}' refers to no included file{instead(reference, known)}"


@fault("G042")
def other_domain(domain: str, own: str) -> str:
    """An included file's operators are of another domain than the schema's."""
    return f"domain is '{domain}' here, and '{own}' in the schema that includes this"


# ----------------------------------------------------------------------------------------------------
# Values


@fault("G023")
def nothing_there(owner: str, member: str) -> str:
    """A list or mapping is empty that needs an entry."""
    return f"{owner} must have at least one {member}"


@fault("G024")
def bad_doc(problem: str) -> str:
    """Documentation is empty, longer than a line, or holds a control character."""
    return f"documentation {problem}"


# As ONNX, Python and C++ call them.
_KINDS_ELSEWHERE = {
    **dict.fromkeys(("integer", "int64", "int64t", "int32", "long"), "'int'"),
    "boolean": "'bool'",
    **dict.fromkeys(("double", "real", "number", "float32", "float64"), "'float'"),
    **dict.fromkeys(("list", "intlist", "listint", "integers", "tuple", "array", "vector"), "'ints'"),
    **dict.fromkeys(("listfloat", "floatlist", "doubles", "numbers"), "'floats'"),
    **dict.fromkeys(("str", "text"), "'string' or 'enum'"),
}


@fault("G025")
def unknown_attribute_type(name: str, known: Collection[str]) -> str:
    """An attribute type that does not exist."""
    meant = _KINDS_ELSEWHERE.get(re.sub(r"[\W_]", "", name.lower()))
    return f"unknown attribute type '{name}'{f'; did you mean {meant}?' if meant else instead(name, known)}"


@fault("G026")
def bad_dim(text: str) -> str:
    """A shape's entry is not a symbol (`N`), a list symbol (`"*D"`), a quotient (`C / group`, `ceil(N / 32)`)
    or a number, nor one of these with a condition (`N if reduction == none`)."""
    forms = 'a symbol N, a list symbol "*D", a quotient C / group or ceil(N / 32), or a number'
    if " if " in text:
        forms = "N if reduction == none or N if keepdims, with any such entry for N"
    return f"'{text}' is no shape entry; expected {forms}"


@fault("G027")
def bad_length(text: str, expected: str) -> str:
    """A length does not read as one: a number, `[min, max]` or a list symbol for a symbol of `dims`, one of
    the first two in `length_if`; a list symbol or a multiple of it, `2 * D`, for an attribute."""
    return f"'{text}' is no length; expected {expected}"


@fault("G028")
def bad_rule(text: str, known: Collection[str]) -> str:
    """A shape rule does not read as `family::Function(D, K)`, `broadcast(P, Q)` or `sum(P)`."""
    function, _, arguments = text.partition("(")
    meant = _qualified(function, known) if arguments else ""
    whole = f"{meant}({arguments.rstrip(')')})"
    form = "expected the form family::Function(D, K), broadcast(P, Q) or sum(P)"
    hint = f"did you mean '{whole}'?" if meant else form
    return f"'{text}' is no shape rule; {hint}"


@fault("G029")
def bad_kernel(text: str, known: Collection[str]) -> str:
    """A kernel's name does not read as `family::Name`."""
    meant = _qualified(text, known)
    form = "expected the form family::Name, for example conv::ConvGrad"
    hint = f"did you mean '{meant}'?" if meant else form
    return f"'{text}' is no kernel name; {hint}"


def _qualified(text: str, known: Collection[str]) -> str:
    """The name that has its last part, whatever stands before it; or the nearest."""
    last = re.split(r"\W+", text.strip())[-1].lower()
    alike = [name for name in known if name.rpartition("::")[2].lower() == last]
    return alike[0] if len(alike) == 1 else nearest(text, alike or known)


@fault("G030")
def repeated_entry(text: str, owner: str) -> str:
    """A list names the same thing twice."""
    return f"'{text}' occurs twice in {owner}"


@fault("G031")
def key_not_for_kind(key: str, owner: str, remedy: str) -> str:
    """A key that has a meaning elsewhere has none here: `min` of an enum, `length` of a number, `shape`
    beside `like`."""
    return f"'{key}' does not apply to {owner}; {remedy}"


@fault("G032")
def bad_domain(text: str) -> str:
    """The domain is not a dotted name such as `com.microsoft`."""
    return f"'{text}' is no domain; expected a dotted name such as com.microsoft"


@fault("G033")
def lookalike(text: str, meant: str) -> str:
    """A character only looks like the one that is meant: a no-break space, a full-width letter, a typographic
    quote."""
    place = lookalikes.first(text)
    seen = f" has {lookalikes.named(text[place])}, which only looks right" if place >= 0 else ""
    return f"'{text}'{seen}; write `{meant}`"


@fault("G034")
def no_blank(text: str, pair: tuple[str, str]) -> str:
    """A ':' lacks the blank after it, so that YAML takes key and value for one word."""
    return f"YAML takes `{text}` for one word; write `{pair[0]}: {pair[1]}`"


@fault("G035")
def wrong_alias(owner: str, expected: str, got: str) -> str:
    """An alias repeats something else than is meant where it stands: attributes as rows, a list as a
    mapping."""
    return f"{owner} must be {expected}, and this alias repeats {got}"


@fault("G401")
def wrong_value_type(owner: str, expected: str, got: str) -> str:
    """A default, or a case's value, is not of the attribute's type."""
    return f"{owner} must be {expected}, not {got}"
