"""The reference as a browser shows it, without a server: narrow and wide, light and dark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import browser
import pytest

NARROW, WIDE = 390, 1280
INDEX = "generated/docs/README.html"
PAGES = [
    "index.html",
    INDEX,
    "generated/docs/ConvGrad.html",
    "generated/docs/GroupNormalizationGrad.html",
    "generated/docs/SoftmaxCrossEntropyWithLabelsGrad.html",
    "docs/schema.html",
    "docs/performance.html",
    "api/context.html",
]
SHOWN = "[...document.querySelectorAll('table.operators tbody tr')].filter(row => row.offsetHeight > 0)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    path = browser.program()
    if path is None:
        # Not every system has a package of it that `./run test` can install.
        pytest.skip("no page is looked at: there is no Chromium (Debian: apt-get install chromium)")
    opened = browser.Browser(path)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _without_complaints(chromium: browser.Browser) -> Iterator[None]:
    chromium.complaints.clear()
    yield
    assert chromium.complaints == []


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_no_page_is_wider_than_its_window(html: Path, chromium: browser.Browser, width: int, is_dark: bool) -> None:
    chromium.look(width, is_dark)
    for page in PAGES:
        chromium.open(html / page)
        assert chromium.value("document.documentElement.scrollWidth") <= width, page
        red, green, blue = chromium.value(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
        )
        assert (red + green + blue < 200) == is_dark, page


def test_no_page_complains(html: Path, chromium: browser.Browser) -> None:
    """Of all pages, at one width: no error or warning on the console, and something is shown."""
    chromium.look(WIDE, is_dark=False)
    pages = sorted(page for page in html.rglob("*.html") if "_static" not in page.parts)
    assert len(pages) > 180
    complaints = {}
    for page in pages:
        chromium.open(page)
        is_empty = chromium.value("document.body.innerText.trim() === ''")
        if chromium.complaints or is_empty:
            complaints[str(page.relative_to(html))] = [*chromium.complaints, *(["it is empty"] if is_empty else [])]
            chromium.complaints.clear()
    assert complaints == {}


def test_formulas_are_typeset(html: Path, chromium: browser.Browser) -> None:
    chromium.look(WIDE, is_dark=False)
    chromium.open(html / "generated/docs/HardSwishGrad.html")
    fraction = "document.querySelector('.formula mfrac').getBoundingClientRect()"
    letter = "document.querySelector('.formula mi').getBoundingClientRect()"
    assert chromium.value(f"{fraction}.height > 1.5 * {letter}.height")


def choose(chromium: browser.Browser, facet: str, value: str) -> list[str]:
    """The names that are left."""
    field = f"document.querySelector('[data-facet={facet}].operators-filter, .operators-filter [data-facet={facet}]')"
    chromium.value(f"{field}.value = {value!r}; {field}.dispatchEvent(new Event('input'))")
    names = chromium.value(f"{SHOWN}.map(row => row.querySelector('a').textContent)")
    assert isinstance(names, list)
    return names


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_filter_filters(html: Path, chromium: browser.Browser, width: int) -> None:
    chromium.look(width, is_dark=False)
    chromium.open(html / INDEX)
    every = chromium.value(f"{SHOWN}.length")
    assert every > 140
    pools = choose(chromium, "pattern", "windows")
    assert "MaxPoolGrad" in pools
    assert not {"Conv", "Relu"} & set(pools)
    assert choose(chromium, "name", "globalmax") == ["GlobalMaxPool", "GlobalMaxPoolGrad"]
    assert chromium.value("document.querySelector('.operators-filter output').value") == f"2 of {every}"
    assert choose(chromium, "name", "nothing like it") == []
    choose(chromium, "name", "")
    choose(chromium, "pattern", "")
    names = ("Loss", "LossGrad", "LossInternalGrad", "WithLabels", "WithLabelsGrad")
    losses = [f"SoftmaxCrossEntropy{name}" for name in names]
    assert sorted(choose(chromium, "type", "int64")) == losses
    choose(chromium, "type", "")
    assert len(choose(chromium, "backend", "cuda")) > 140
    assert len(choose(chromium, "backend", "")) == every


def test_a_choice_can_be_linked_to(html: Path, chromium: browser.Browser) -> None:
    chromium.look(WIDE, is_dark=False)
    chromium.open(html / INDEX, "#pattern=windows&name=average")
    assert chromium.value(f"{SHOWN}.length") == 4
    choose(chromium, "pattern", "rows")
    assert chromium.value("location.hash") == "#name=average&pattern=rows"


def test_the_search_needs_no_server(html: Path, chromium: browser.Browser) -> None:
    chromium.look(WIDE, is_dark=False)
    chromium.open(html / "search.html", "?q=InstanceNormalizationGrad")
    end = time.monotonic() + 60
    while not (
        found := chromium.value("[...document.querySelectorAll('#search-results li a')].map(one => one.textContent)")
    ):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "InstanceNormalizationGrad" in found
