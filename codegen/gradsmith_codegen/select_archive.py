"""Links what selected rows need of the library's archive into one object, with nothing else in it.

The CMake function gradsmith_select runs it as `python -m gradsmith_codegen.select_archive`. The archive was
compiled with a section for each function, so that the linker finds what is reached from what must stay: the
selected rows, and the functions that programs call by name (Registry, Kernel, Context, ...). What a family of
kernels offers programs beside its operators begins with the family's name, as ConvAlgorithms of conv, and is
there where the family's rows on CUDA are selected.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import images
from .verbs import FAILED, OK, Refused

# The mangled name of what stands in namespace gradsmith itself: of a type or a function. Namespaces in it,
# whose names begin in lower case, are no interface.
_PUBLIC = re.compile(r"_ZNK?9gradsmith(?:[a-z]{2}|\d+(?P<name>[A-Z]\w*))")
_GENERATED = re.compile(r"(?:ops_shard_\d+|dispatch_table)\.")  # members of the archive
_IMAGE = re.compile(r"\.rodata\.gradsmith_image_(\w+)")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        roots = {*_symbols(options, options.objects), *_interface(options)}
        undefined = [argument for root in sorted(roots) for argument in ("-u", root)]
        linked = [*options.objects, options.archive]
        _run([options.ld, "-r", "--gc-sections", *undefined, "-o", options.output, *linked])
        names = _image_names(options)
        if options.architecture:
            _keep_architectures(options, names)
    except Refused as error:
        print(f"gradsmith_select({options.name}): {error}", file=sys.stderr)
        Path(options.output).unlink(missing_ok=True)
        return FAILED
    before, after = (Path(path).stat().st_size for path in (options.archive, options.output))
    print(f"gradsmith_select({options.name}): {_size(after)} of {_size(before)}, {_told(names)}")
    return OK


def _run(command: list[str]) -> str:
    result = subprocess.run(command, check=False, text=True, capture_output=True)  # noqa: S603 - our own
    if result.returncode != 0:
        raise Refused(f"{command[0]} failed: {result.stderr.strip()}")
    return result.stdout


def _names(options: argparse.Namespace, files: Sequence[str], which: str = "--defined-only") -> list[str]:
    """The lines in which nm tells what the files define for others: a name and what kind it is of."""
    return _run([options.nm, which, "--extern-only", "--format=posix", *files]).splitlines()


def _symbols(options: argparse.Namespace, files: Sequence[str], which: str = "--defined-only") -> list[str]:
    return [line.split()[0] for line in _names(options, files, which) if len(line.split()) > 1]


def _families_on_cuda(symbols: Iterable[str]) -> set[str]:
    """Those of which a kernel's RunCuda is among the symbols."""
    scopes = (_scopes(symbol) for symbol in symbols)
    return {
        names[1] for names in scopes if len(names) == 4 and (names[0], names[3]) == ("gradsmith", "RunCuda")
    }


def _scopes(symbol: str) -> list[str]:
    """["gradsmith", "conv", "ConvGrad", "RunCuda"] of the mangled name, in which lengths come first."""
    names = []
    rest = symbol.removeprefix("_ZN")
    while rest != symbol and (length := re.match(r"\d+", rest)):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:]
    return names


def _begins_with(family: str, name: str) -> bool:
    """Whether `ConvAlgorithms` is of `conv`, and `Convert` is not."""
    prefix = "".join(word.capitalize() for word in family.split("_"))
    return re.match(rf"{prefix}(?![a-z])", name) is not None


def _interface(options: argparse.Namespace) -> list[str]:
    """What programs call by name, of what the archive defines."""
    selected = _families_on_cuda(_symbols(options, options.objects, "--undefined-only"))
    left_out = _families_on_cuda(_symbols(options, [options.archive])) - selected
    found = []
    is_generated = False
    for line in _names(options, [options.archive]):
        if line.endswith("]:"):  # the next member
            is_generated = bool(_GENERATED.match(line.rpartition("[")[2]))
            continue
        name, kind = [*line.split(), "", ""][:2]
        public = _PUBLIC.match(name) if kind in ("T", "D", "R", "B") and not is_generated else None
        if public and not any(_begins_with(family, public["name"] or "") for family in left_out):
            found.append(name)
    return found


def _image_names(options: argparse.Namespace) -> list[str]:
    return sorted(set(_IMAGE.findall(_run([options.objdump, "-h", "-w", options.output]))))


def _keep_architectures(options: argparse.Namespace, names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sections = {f".rodata.gradsmith_image_{name}": Path(folder, name) for name in names}
        if not sections:
            return
        dumps = [f"--dump-section={section}={path}" for section, path in sections.items()]
        _run([options.objcopy, *dumps, options.output, str(Path(folder, "all.o"))])
        for path in sections.values():
            path.write_bytes(images.only(path.read_bytes(), options.architecture))
        updates = [f"--update-section={section}={path}" for section, path in sections.items()]
        _run([options.objcopy, *updates, options.output])


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _told(names: Sequence[str]) -> str:
    return f"images of kernels: {', '.join(names)}" if names else "no images of kernels"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gradsmith_codegen.select_archive")
    parser.add_argument("--name", required=True, help="of the library that is made")
    parser.add_argument("--archive", required=True, help="libgradsmith.a")
    parser.add_argument("--output", required=True, help="the object to write")
    parser.add_argument(
        "--architecture", action="append", default=[], help="whose code is kept, as 90-real; all by default"
    )
    for tool in ("ld", "nm", "objcopy", "objdump"):
        parser.add_argument(f"--{tool}", default=tool)
    parser.add_argument("objects", nargs="+", help="those of the selected rows")
    return parser


if __name__ == "__main__":
    sys.exit(main())
