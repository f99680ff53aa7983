"""Characters that only look like those that a schema is written with."""

from __future__ import annotations

import re
import unicodedata

_PAIR = re.compile(r"([A-Za-z_]\w*) *: *(.*)\Z", re.ASCII | re.DOTALL)
_QUOTED = re.compile(r"""(["'])(.*)\1\Z""", re.DOTALL)

# What Unicode's compatible forms (full-width ones and their like) do not tell.
_LOOKALIKES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\u00ad\ufeff", ""),
    **dict.fromkeys("\u2217\u204e\u00d7", "*"),
    **dict.fromkeys("\u2044\u2215", "/"),
    **dict.fromkeys("\u2236\u02d0\ua789", ":"),
    "\u3001": ",",
    # Cyrillic and Greek letters.
    **dict(
        zip(
            "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u0501"
            "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406"
            "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
            "aeopcxyijsdABEKMHOPCTXIABEZHIKMNOPTYXo",
            strict=True,
        )
    ),
}


def seen(text: str) -> str:
    """What a text looks like."""
    return "".join(map(_seen, text)).strip()


def meant(text: str) -> str:
    """What a text is meant to say; empty where that is nothing a schema is written with."""
    looks = seen(text)
    quoted = _QUOTED.match(looks)
    return "" if not looks.isascii() else quoted[2] if quoted else looks


def pair(text: str) -> tuple[str, str] | None:
    """Key and value of `T:double`, which YAML takes for one word."""
    found = _PAIR.match(seen(text))
    value = meant(found[2]) if found else ""
    return (found[1], value) if found and value and not value.startswith(":") else None


def first(text: str) -> int:
    """Where the first such character stands; -1 where there is none."""
    return next((i for i, one in enumerate(text) if not one.isascii() and _seen(one).isascii()), -1)


def named(character: str) -> str:
    """`U+00A0 (no-break space)`."""
    name = unicodedata.name(character, "").lower()
    return f"U+{ord(character):04X}{f' ({name})' if name else ''}"


def _seen(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return _LOOKALIKES.get(character, unicodedata.normalize("NFKC", character))
