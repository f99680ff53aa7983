"""Builds the browsable reference: `./run docs`, which installs what this needs.

    python docs/site/build_site.py [OUT]

OUT (build/docs) gets `source`, what Sphinx reads: the repository's pages, one for each operator from its entry in
ops.yaml, and those of the C++ headers; `html`, whose index.html needs no server; and `doctrees`, what Sphinx keeps for
the next time. A warning is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "docs/site"
sys.path[:0] = [str(HERE), str(ROOT / "codegen"), str(ROOT / "bench")]

import cpp_api  # noqa: E402
import operators  # noqa: E402
import pages  # noqa: E402


def sources() -> dict[str, str]:
    """Every page by its path below the source's folder."""
    names = list(pages.handwritten(ROOT))
    made = {**operators.sources(ROOT), **_api()}
    every = {*names, *made}
    texts = {name: pages.source_of(ROOT, name, every) for name in names} | made
    texts[pages.HOME] = pages.home(texts.pop("README.md"), sorted(every))
    return {
        name: text if name == pages.HOME or pages.is_in_navigation(name) else pages.orphaned(text)
        for name, text in texts.items()
    }


def _api() -> dict[str, str]:
    found = {f"api/{path.stem}.md": cpp_api.page(path) for path in cpp_api.headers(ROOT / "runtime/include/gradsmith")}
    found = {name: text for name, text in found.items() if text}
    return {**found, "api/index.md": cpp_api.index(found)}


def write(folder: Path, texts: dict[str, str]) -> None:
    """What has not changed keeps its time, by which Sphinx goes."""
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink()


def main(arguments: list[str]) -> int:
    out = Path(arguments[0]).absolute() if arguments else ROOT / "build/docs"
    write(out / "source", sources())
    trees = out / "doctrees"
    jobs = str(len(os.sched_getaffinity(0)))
    options = ["-b", "html", "-W", "--keep-going", "-q", "-j", jobs, "-c", str(HERE), "-d", str(trees)]
    sphinx = [sys.executable, "-m", "sphinx", *options, str(out / "source"), str(out / "html")]
    code = subprocess.run(sphinx, check=False).returncode
    if code != 0:
        shutil.rmtree(trees, ignore_errors=True)  # a page that is kept is not warned of again
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
