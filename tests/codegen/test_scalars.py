"""What a plain scalar is taken for, by its source text."""

from __future__ import annotations

import pytest
from gradsmith_codegen import scalars


@pytest.mark.parametrize("text", ["no", "No", "off", "ON", "yes", "TRUE", "~", "null", "3", "-1", "010", "0x1f"])
def test_words_that_yaml_takes_for_something_else(text: str) -> None:
    assert not scalars.is_word(text)
    assert "quote it" in scalars.misread_word(text)


@pytest.mark.parametrize("text", ["1_000", "12:30", "1e3", "1.5", ".5", ".inf", "2001-12-14", "0b11", "0o7"])
def test_numbers_and_dates_are_no_words(text: str) -> None:
    assert not scalars.is_word(text)
    assert "quote it" in scalars.misread_word(text)


@pytest.mark.parametrize("text", ["T", "N", "y", "none", "scale::Scale", "C / group", "2 * D", "nobody", "1 / 2"])
def test_words(text: str) -> None:
    assert scalars.is_word(text)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-7", -7), ("9223372036854775807", 2**63 - 1)])
def test_integers(text: str, value: int) -> None:
    assert scalars.integer(text) == value
    assert scalars.number(text) == value


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("010", "write 8 or 10"),
        ("00", "write 0"),
        ("0x10", "write 16"),
        ("0b101", "write 5"),
        ("1_000", "write 1000"),
        ("12:30", "write 750"),
        ("-1:00", "write -60"),
        ("+5", "write 5"),
        ("08", "write 8"),
        ("1e3", "write 1.0e\\+3"),
    ],
)
def test_integers_that_yaml_reads_otherwise(text: str, advice: str) -> None:
    with pytest.raises(scalars.Surprise, match=f"{advice}(?![0-9])"):
        scalars.integer(text)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("1.5", "the real number 1.5"),
        ("x", "'x'"),
        ("no", "false"),
        (".nan", "'.nan'"),
        ("2001-01-01", "date"),
    ],
)
def test_no_integers(text: str, instead: str) -> None:
    with pytest.raises(scalars.NotANumber, match=instead):
        scalars.integer(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "9" * 5000])
def test_integers_beyond_64_bits(text: str) -> None:
    with pytest.raises(scalars.NotANumber, match="does not fit in 64 bits"):
        scalars.integer(text)


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("-0.25", -0.25), ("1.0e-5", 1e-5), ("2.", 2.0)])
def test_numbers(text: str, value: float) -> None:
    assert scalars.number(text) == value


@pytest.mark.parametrize(
    ("text", "advice", "value"),
    [
        ("1e3", "1.0e+3", 1000),
        ("1.5e5", "1.5e+5", 150000),
        (".5", "0.5", 0.5),
        ("+1.5", "1.5", 1.5),
        ("007.5", "7.5", 7.5),
        ("1:30.5", "90.5", 90.5),
    ],
)
def test_numbers_that_yaml_reads_otherwise(text: str, advice: str, value: float) -> None:
    with pytest.raises(scalars.Surprise) as surprise:
        scalars.number(text)
    assert f"write {advice}" in str(surprise.value)
    assert scalars.number(advice) == value


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan", "1.0e+999", "1.0e+" + "9" * 99, "_" * 5000, "1_" * 3000])
def test_no_finite_numbers(text: str) -> None:
    with pytest.raises(scalars.NotANumber):
        scalars.number(text)


def test_booleans() -> None:
    assert scalars.boolean("true") is True
    assert scalars.boolean("false") is False
    with pytest.raises(scalars.Surprise, match="write true"):
        scalars.boolean("Yes")
    with pytest.raises(scalars.Surprise, match="write false"):
        scalars.boolean("off")
    with pytest.raises(scalars.NotABoolean):
        scalars.boolean("maybe")
