"""The browsable reference: it says all of every operator, leads nowhere broken, and needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml


@dataclass
class Read(HTMLParser):
    """What a page has to link to, and what it links to."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and "href" in given:
            self.loaded.append(given["href"])
        if "src" in given:
            self.loaded.append(given["src"])


@cache
def read(page: Path) -> Read:
    found = Read()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def pages(html: Path) -> list[Path]:
    return sorted(html.rglob("*.html"))


def broken(page: Path) -> Iterator[str]:
    for link in (*read(page).links, *read(page).loaded):
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = page.parent / unquote(place.partition("?")[0]) if place else page
        if not target.is_file() or anchor and target.suffix == ".html" and unquote(anchor) not in read(target).ids:
            yield link


def test_no_link_is_broken(html: Path) -> None:
    found = {str(page.relative_to(html)): list(broken(page)) for page in pages(html)}
    assert {name: links for name, links in found.items() if links} == {}
    assert len(found) > 180


def test_nothing_is_loaded_from_elsewhere(html: Path) -> None:
    loaded = {one for page in pages(html) for one in read(page).loaded if re.match(r"[a-z]+:|//", one)}
    assert {one for one in loaded if not one.startswith("data:")} == set()
    styles = "".join(path.read_text(encoding="utf-8") for path in (html / "_static").rglob("*.css"))
    assert re.findall(r"@import[^;]*|url\(['\"]?(?:https?:)?//[^)]*", styles) == []


def test_every_operator_has_a_page(html: Path, repository: Path) -> None:
    ops = yaml.safe_load((repository / "ops.yaml").read_text(encoding="utf-8"))["ops"]
    index = (html / "generated/docs/README.html").read_text(encoding="utf-8")
    for op in ops:
        text = (html / f"generated/docs/{op['name']}.html").read_text(encoding="utf-8")
        for needed in ("Inputs", "Type combinations", "Where and how it is computed", "Example"):
            assert f"<h2>{needed}<" in text, op["name"]
        assert ("<math" in text) == ("formulas" in op), op["name"]
        assert f"href='{op['name']}.html'" in index


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("SoftmaxGrad", ["on the pattern rows", "Measured", "16384x1024 axis -1"]),
        ("ConvGrad", ["Which source serves which cell", "graph, packed", "rn50_stem NCHW"]),
        ("BatchNormalizationReluGrad", ["Which source serves which cell", "half, float parameters"]),
        ("HardSwishGrad", ["What they give in double", "gradsmith.hard_swish_grad(dY, X)"]),
        ("InstanceNormalizationGrad", ["pass 1 of 2, rows along D"]),
    ],
)
def test_what_a_page_tells(html: Path, page: str, told: list[str]) -> None:
    text = (html / f"generated/docs/{page}.html").read_text(encoding="utf-8")
    shown = re.sub(r"<[^>]*>", "", text)
    assert [one for one in told if one not in shown] == []


def test_the_pages_of_the_repository_are_there(html: Path) -> None:
    for name in ("index", "docs/install", "docs/python", "docs/schema", "docs/lab/README", "CONTRIBUTING", "api/index"):
        assert (html / f"{name}.html").is_file(), name
    assert not (html / "docs/gpu-runs").exists()


def test_the_interface_of_the_headers(html: Path) -> None:
    shown = re.sub(r"<[^>]*>", "", (html / "api/context.html").read_text(encoding="utf-8"))
    assert "SearchMode says how a kernel is chosen for a problem" in shown
    assert "[[nodiscard]] Context ForPreparing() const;" in shown
    assert "MakeState" not in shown  # is private
    assert "DecisionCache;" not in shown  # is internal


MAIN = """
int main() {{
  int failed = 0;
  const auto run = [&](const char* name, const gradsmith::Status& status) {{
    if (!status.ok()) {{
      std::printf("%s: %s\\n", name, status.message().c_str());
      failed = 1;
    }}
  }};
{calls}
  return failed;
}}
"""


def test_the_cpp_of_pages_runs(html: Path, repository: Path, tmp_path: Path) -> None:
    """All of it, in one program, of which each example gives success."""
    tree = Path(os.environ.get("GRADSMITH_BUILD_DIR", repository / "build/default"))
    if not (tree / "libgradsmith.a").exists():
        pytest.skip("examples in C++ are not run: the library is not built")
    folder = html.parent / "source/generated/docs"
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))]
    blocks = [block for text in texts for block in re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    names = [name for block in blocks for name in re.findall(r"^gradsmith::Status (\w+)\(\) \{$", block, re.MULTILINE)]
    assert len(names) == len(blocks) > 140
    main = MAIN.format(calls="\n".join(f'  run("{name}", {name}());' for name in names))
    source, program = tmp_path / "examples.cc", tmp_path / "examples"
    source.write_text("\n".join(["#include <cstdio>", *blocks, main]), encoding="utf-8")
    include = [f"-I{repository / 'runtime/include'}", f"-I{tree / 'generated/include'}"]
    warnings = ["-Wall", "-Wextra", "-Werror"]
    command = ["c++", "-std=c++20", "-O0", *warnings, *include, str(source), *linked(tree), "-o", str(program)]
    compiled = subprocess.run(command, check=False, text=True, capture_output=True)
    assert compiled.returncode == 0, compiled.stderr
    ran = subprocess.run([str(program)], check=False, text=True, capture_output=True)
    assert (ran.stdout, ran.returncode) == ("", 0)


def linked(tree: Path) -> list[str]:
    """What a program of others links, by the file for pkg-config."""
    (libraries,) = re.findall(r"^Libs: (.*)$", (tree / "gradsmith.pc").read_text(encoding="utf-8"), re.MULTILINE)
    others = [one for one in libraries.split() if "gradsmith" not in one and "${" not in one]
    return [str(tree / "libgradsmith.a"), *others]
