"""What a scalar means, judged by its source text.

YAML 1.1 reads a plain `no` as false, `010` as 8, `1_000` as 1000, `12:30` as 750, and `1e3` as text; YAML 1.2
differs. The schema takes words and numbers only in spellings on which all of YAML agrees, and says what to
write instead of others.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from fractions import Fraction

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_LONGEST_LIST = 16  # numbers that a message shows
_LONGEST_NUMBER = 40  # characters of a number that is worth converting for a message

_BOOLEAN = re.compile(r"(?:yes|no|true|false|on|off)$", re.IGNORECASE)
_TRUE = {"yes", "true", "on"}
_NULL = {"~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+][0-9]+)?$")
_IS_NOT_ZERO = re.compile(r"[^eE]*[1-9]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?$")

# Numbers that are read otherwise than they look, or by some YAML versions only.
_OCTAL = re.compile(r"[-+]?0[0-7_]+$")
_OTHER_BASE = re.compile(r"[-+]?0(?:x[0-9a-fA-F_]+|b[01_]+|o[0-7]+)$")
_GROUPED = re.compile(r"[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?$")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$")
_ODD_DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$")
_INFINITY = {".inf": math.inf, "-.inf": -math.inf}
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|nan)$", re.IGNORECASE)


class Surprise(Exception):
    """The text means something else to YAML than to a reader; the argument is the sentence."""


class NotANumber(Exception):
    """The argument says what the text is instead."""


class NotABoolean(Exception):
    """The text is no spelling of true or false."""


@functools.lru_cache(maxsize=4096)  # a schema says the same few words over and over
def is_word(text: str) -> bool:
    """YAML takes the plain scalar for the text that it looks like."""
    return bool(text) and not _reading(text)


def misread_word(text: str) -> str:
    """Says what YAML takes a plain scalar for that is meant as text."""
    return f"`{text}` is {_reading(text)}; quote it to mean the text"


def is_old_boolean(text: str) -> bool:
    """YAML 1.1 takes the plain scalar for true or false."""
    return bool(_BOOLEAN.match(text))


def boolean(text: str) -> bool:
    """A plain scalar that is meant as true or false."""
    if text in ("true", "false"):
        return text == "true"
    if _BOOLEAN.match(text):
        truth = "true" if text.lower() in _TRUE else "false"
        raise Surprise(f"`{text}` is YAML's old spelling of {truth}; write {truth}")
    raise NotABoolean


def is_number(text: str) -> bool:
    return bool(_INTEGER.match(text) or _FLOAT.match(text))


def is_real(text: str) -> bool:
    """A real number as other languages spell it too: `.5`, `1e5`."""
    return bool(_ODD_DECIMAL.match(text)) and not text.lstrip("+-").isdecimal()


def integer(text: str) -> int:
    """A plain scalar that is meant as an integer."""
    if not _INTEGER.match(text):
        raise _not_an_integer(text)
    if len(text) > len(str(INT64_MIN)) or not INT64_MIN <= int(text) <= INT64_MAX:
        raise NotANumber(f"{shortened(text)}, which does not fit in 64 bits")
    return int(text)


def number(text: str) -> float:
    """A plain scalar that is meant as a real number. Integers stay what they are."""
    if _INTEGER.match(text):
        return integer(text)
    if not _FLOAT.match(text):
        raise _not_a_number(text)
    value = float(text)
    if not math.isfinite(value):
        raise NotANumber(f"{shortened(text)}, which does not fit in a double")
    if value == 0 and _IS_NOT_ZERO.match(text):
        raise NotANumber(f"{shortened(text)}, which is too near to 0 for a double and would be 0")
    return value


def extended_number(text: str) -> float:
    """A plain scalar that is meant as a real number or as infinity."""
    if text in _INFINITY:
        return _INFINITY[text]
    if _NOT_FINITE.match(text) and text.lower().lstrip("+-") == ".inf":
        raise Surprise(f"write {'-' if text.startswith('-') else ''}.inf for `{text}`")
    return number(text)


def _not_an_integer(text: str) -> Exception:
    if _FLOAT.match(text):
        return NotANumber(f"the real number {shortened(text)}")
    return _number_surprise(text) or NotANumber(_what(text))


def _not_a_number(text: str) -> Exception:
    return _number_surprise(text) or NotANumber(_what(text))


def _number_surprise(text: str) -> Surprise | None:
    """What to write for a number that YAML misreads."""
    if len(text) > _LONGEST_NUMBER or _NOT_FINITE.match(text):
        return None
    known = next((explain for pattern, explain in _SURPRISES if pattern.match(text)), None)
    return Surprise(known(text)) if known else None


def _octal(text: str) -> str:
    octal, decimal = int(text.replace("_", ""), 8), int(text.replace("_", ""), 10)
    write = f"{octal} or {decimal}" if octal != decimal else str(octal)
    return f"`{text}` is YAML's spelling of {octal} (octal); write {write}"


def _other_base(text: str) -> str:
    return f"write {int(text.replace('_', ''), 0)} for `{text}`; numbers are decimal"


def _grouped(text: str) -> str:
    return f"write {text.replace('_', '')} for `{text}`; YAML's versions differ on what `_` means"


def _base_60(text: str) -> str:
    return f"`{text}` is YAML's spelling of {_sexagesimal(text)} (base 60); write {_sexagesimal(text)}"


def _odd_decimal(text: str) -> str:
    return f"write {plain_decimal(text)} for `{text}`; YAML's versions differ on what it means"


_SURPRISES = (
    (_OCTAL, _octal),
    (_OTHER_BASE, _other_base),
    (_GROUPED, _grouped),
    (_SEXAGESIMAL, _base_60),
    (_ODD_DECIMAL, _odd_decimal),
)


def _reading(text: str) -> str:
    """What YAML 1.1 or 1.2 takes a plain scalar for, where that is not text."""
    if _BOOLEAN.match(text):
        return f"YAML's spelling of {'true' if text.lower() in _TRUE else 'false'}"
    if text in _NULL:
        return "YAML's spelling of nothing"
    if _INTEGER.match(text) or _FLOAT.match(text) or _NOT_FINITE.match(text):
        return "a number"
    if _DATE.match(text):
        return "YAML's spelling of a date"
    if _SEXAGESIMAL.match(text) and len(text) <= _LONGEST_NUMBER:
        return f"YAML's spelling of {_sexagesimal(text)} (base 60)"
    return "a number" if any(pattern.match(text) for pattern, _ in _SURPRISES) else ""


def _what(text: str) -> str:
    if _BOOLEAN.match(text):
        return f"`{text}`, which is YAML's spelling of {'true' if text.lower() in _TRUE else 'false'}"
    if _DATE.match(text):
        return f"the date {shortened(text)}"
    return f"'{shortened(text)}'"


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_NUMBER else text[: _LONGEST_NUMBER - 3] + "..."


def list_text(values: Sequence[int]) -> str:
    """`[2, 3]`; of a long list the first few and how many there are."""
    if len(values) <= _LONGEST_LIST:
        return str(list(values))
    return f"[{', '.join(map(str, values[:_LONGEST_LIST]))}, ... {len(values)} in all]"


def _sexagesimal(text: str) -> str:
    sign = "-" if text.startswith("-") else ""
    total = Fraction(0)
    for part in text.lstrip("+-").replace("_", "").split(":"):
        total = total * 60 + Fraction(part if not part.endswith(".") else part + "0")
    return sign + (str(total.numerator) if total.denominator == 1 else str(float(total)))


def plain_decimal(text: str) -> str:
    """A spelling that every YAML reads as this number."""
    mantissa, _, exponent = text.lower().lstrip("+").partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, point, fraction = mantissa.partition(".")
    whole = whole.lstrip("0") or "0"
    if not exponent:
        return sign + whole + (f".{fraction or '0'}" if point else "")
    if not exponent.startswith(("+", "-")):
        exponent = "+" + exponent
    return f"{sign}{whole}.{fraction or '0'}e{exponent}"
