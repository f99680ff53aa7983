"""A scratch copy of the sources, built with a compiler and a generator that note each of their runs.

That compiler writes what each object depends on, and no code: these builds are about what an edit compiles. The folders
stay between runs of the tests, so that only what changed since is compiled again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from few_operators import few_operators

REPOSITORY = Path(__file__).resolve().parents[2]
SCRATCH = REPOSITORY / "build/test-scratch"
JOBS = str(len(os.sched_getaffinity(0)))

# What a build of the library reads.
SOURCES = ("CMakeLists.txt", "LICENSE", "cmake", "codegen", "generated", "ops.yaml", "runtime", "templates")


# In place of a compiler: -E overrides -c, and leaves the list of the headers that were read, for which no macro need be
# replaced in the text. An empty file is an object to ar.
NOTE_AND_PREPROCESS = """\
for argument; do
  case "$argument" in *.cc) echo "compile $argument" >> {log} ;; esac
  if [ "$before" = -o ]; then object="$argument"; fi
  before="$argument"
done
"$@" -E -fdirectives-only && : > "$object"
"""


# In place of nvcc, which is asked for what is no image alone, such as its version. An image is of its source and of the
# formulas that are beside that.
NOTE_AND_COPY = """\
for argument; do
  case "$argument" in *.cu) source="$argument" ;; --fatbin) makes_image=yes ;; esac
  case "$before" in -o) image="$argument" ;; -MF) list="$argument" ;; esac
  before="$argument"
done
if [ -z "$makes_image" ] || [ -z "$image" ]; then exec {nvcc} "$@"; fi
echo "compile $source" >> {log}
printf '%064d' 0 > "$image"
header="${{source%.cu}}.h"
[ -e "$header" ] || header=
echo "$image: $source $header" > "$list"
"""


@dataclass(frozen=True)
class BuildLog:
    """What one build did."""

    succeeded: bool
    compiled: list[str]  # the names of the source files, sorted
    generator_runs: int
    output: str


class BuildTree:
    """A copy of the sources at `source`, configured and built in `folder`."""

    def __init__(self, root: Path, generator: str) -> None:
        self.source = root / "source"
        self.folder = root / "build"
        self.generated = self.folder / "generated"
        self._generator = generator
        self._log = root / "commands.log"
        self._nvcc = root / "nvcc"
        self._options: list[str] = []
        root.mkdir(parents=True, exist_ok=True)
        self._compiler_launcher = write_script(root / "compiler_launcher", NOTE_AND_PREPROCESS.format(log=self._log))
        self._python = write_script(
            root / "python",
            f'case " $* " in *" generate "*) echo generate >> {self._log} ;; esac\nexec {sys.executable} "$@"\n',
        )

    def note_nvcc(self, nvcc: Path) -> None:
        """Has the build use a compiler of kernels that makes none, and notes what it was given."""
        body = NOTE_AND_COPY.format(log=self._log, nvcc=nvcc)
        nvcc_option = f"-DCUDAToolkit_NVCC_EXECUTABLE={write_script(self._nvcc, body)}"
        self._options = ["-DGRADSMITH_CUDA=ON", nvcc_option, "-DGRADSMITH_BUILD_TOOLS=OFF"]

    def configure(self, *options: str) -> None:
        configure(
            self.source,
            self.folder,
            self._generator,
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={self._compiler_launcher}",
            f"-DPython3_EXECUTABLE={self._python}",
            *self._options,
            *options,
        )

    def restore(self) -> None:
        """Makes the copy equal to the repository again, but for its few operators, and brings the build up to date."""
        copy_with_few_operators(REPOSITORY, self.source)
        if not (self.folder / "CMakeCache.txt").exists():
            self.configure()
        log = self.build()
        assert log.succeeded, log.output

    def build(self) -> BuildLog:
        self._log.write_text("")
        result = build(self.folder, check=False)
        lines = self._log.read_text().splitlines()
        return BuildLog(
            succeeded=result.returncode == 0,
            compiled=sorted(Path(line.split(" ", 1)[1]).name for line in lines if line.startswith("compile ")),
            generator_runs=lines.count("generate"),
            output=result.stdout,
        )

    def edit(self, path: str, old: str, new: str) -> None:
        """Replaces the one place where `old` stands in a source file."""
        replace_once(self.source / path, old, new)

    def shard_of(self, op: str) -> str:
        """The name of the source file that holds an op's schema and its rows."""
        definition = re.compile(rf'\bkSchema = {{[^{{}}]*\.name = "{op}",')
        shards = [p.name for p in self.generated.glob("src/ops_shard_*.cc") if definition.search(p.read_text())]
        assert len(shards) == 1, f"{op} is defined in {shards}"
        return shards[0]


def configure(source: Path, folder: Path, generator: str, *options: str) -> None:
    """Configures a quick build: what is tested is what gets built, not how fast it is."""
    command = ["cmake", "-S", str(source), "-B", str(folder), "-G", generator, "-DCMAKE_BUILD_TYPE=Debug"]
    # Without CUDA, whose kernels take minutes; a later option of the same name counts.
    command += ["-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DGRADSMITH_BUILD_TESTS=OFF", "-DGRADSMITH_CUDA=OFF", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def build(
    folder: Path, *targets: str, check: bool = True, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = ["cmake", "--build", str(folder), "--parallel", JOBS]
    command += ["--target", *targets] if targets else []
    result = subprocess.run(
        command, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert not check or result.returncode == 0, result.stdout
    return result


def run_generator(*arguments: str, repository: Path = REPOSITORY, cwd: Path = REPOSITORY, **environment: str) -> str:
    """Runs the generator of a repository, or of an installed package, and returns what it prints."""
    command = [sys.executable, "-B", "-m", "gradsmith_codegen", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(repository / "codegen"), **environment}
    result = subprocess.run(command, cwd=cwd, env=variables, check=False, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def declared_rows(schema: Path = REPOSITORY / "ops.yaml") -> list[dict[str, Any]]:
    """The rows of a schema, as the generator lists them."""
    rows: list[dict[str, Any]] = json.loads(run_generator("list", "--schema", str(schema), "--format", "json"))
    assert rows
    return rows


def replace_once(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path} holds {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new))


def copy_with_few_operators(
    origin: Path, copy: Path, names: Iterable[str] = SOURCES, operators: Iterable[str] = ()
) -> None:
    """As copy_sources, with operators that are soon generated and compiled in place of all."""
    schema = copy.parent / "few_operators.yaml"
    schema.parent.mkdir(parents=True, exist_ok=True)
    schema.write_text(few_operators(operators), encoding="utf-8")
    copy_sources(origin, copy, names, {Path("ops.yaml"): schema})


def copy_sources(
    origin: Path, copy: Path, names: Iterable[str] = SOURCES, instead: Mapping[Path, Path] | None = None
) -> None:
    """Writes the files that differ and removes the others' remains, so that what is equal keeps its age."""
    wanted = {path.relative_to(origin): path for path in _files(origin / name for name in names)} | dict(instead or {})
    for path in _files([copy]) if copy.exists() else []:
        if path.relative_to(copy) not in wanted:
            path.unlink()
    for relative, path in wanted.items():
        target = copy / relative
        if path.is_symlink():
            if not target.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(path.readlink())
        elif not target.exists() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _files(roots: Iterable[Path]) -> list[Path]:
    """Every file below the roots; a link to a folder counts as a file."""
    found: list[Path] = []
    for root in roots:
        if root.is_dir() and not root.is_symlink():
            found += _files(child for child in root.iterdir() if child.name != "__pycache__")
        else:
            found.append(root)
    return found


def write_script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(0o755)
    return path
