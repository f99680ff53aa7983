"""The style of a schema's text: `fmt` brings one into it, and changes nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml
from gradsmith_codegen import vocabulary
from gradsmith_codegen.cli import main
from gradsmith_codegen.formatting import ORDERS, formatted
from gradsmith_codegen.loader import read_source, source_of
from gradsmith_codegen.reader import read_document
from gradsmith_codegen.verbs import Refused
from schemas import CONVOLVE, SCALE, edited

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _formatted(text: str) -> str:
    """Formatting what is formatted changes nothing."""
    result = formatted(source_of("ops.yaml", text))
    assert formatted(source_of("ops.yaml", result)) == result
    return result


def test_each_key_has_its_place() -> None:
    tensor = dict.fromkeys([*vocabulary.INPUT.all, *vocabulary.OUTPUT.all])
    known = {
        "schema": vocabulary.SCHEMA.all,
        "operator": vocabulary.OP.all,
        "tensor": tensor,
        "symbol": vocabulary.SYMBOL.all,
        "attribute": vocabulary.ATTRIBUTE.all,
        "case": vocabulary.CASE.all,
        "revision": vocabulary.REVISION.all,
        "special value": vocabulary.SPECIAL_VALUE.all,
        "seam": vocabulary.SEAM.all,
    }
    assert {name: sorted(form.order) for name, form in ORDERS.items()} == {n: sorted(keys) for n, keys in known.items()}


@pytest.mark.parametrize("path", ["ops.yaml", "tests/kernels/ops.yaml"])
def test_our_own_are_in_the_style(repository: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", str(repository / path)]) == 0
    assert capsys.readouterr().out == ""


def test_small_schemas_of_the_tests_are_in_the_style() -> None:
    assert _formatted(SCALE) == SCALE
    assert _formatted(CONVOLVE) == CONVOLVE


UNTIDY = """\
# The file.

since_version:   1   # of all

# The format.
schema_version: 1
domain: com.example


ops:

# The first.
- doc: "Y is X, scaled."
  name: Scale # its name
  # What computes it.
  kernel: scale::Scale
  backends:
  - cpu


  attributes: &factors # of Scale
    # X is multiplied by it.
    factor:
        default: 1.0
        type: float
        doc: by [1], or more
  inputs:
     X: {shape: [ N , "*D" ],type: T}  # the input
     # Between two.
     W:
       # Within one.
       type: T
       shape: [N]
  outputs: {Y: {like: X, doc: 'a ''Y''', type: T}}
  dims: {D: {length: [ 0,
                       3 ]}}
  rows:
    float:
      T: float
  cases:
  - {X: [2,3], name: plain}
  - layout: strided
    X:
    - 4
    - 5
    name: other
    # A comment of the cases.
# The second.
- {"name": "Other", "doc": "Other.", kernel: scale::Scale, backends: [cpu], inputs: {X: {type: T, shape: [N]}},
   outputs: {Y: {type: T, like: X}}, attributes: *factors, rows: {float: {T: float}}, cases: [{name: plain, X: [2]}]}
# The end.
"""

TIDY = """\
# The file.

# The format.
schema_version: 1
domain: com.example
since_version: 1  # of all

ops:

  # The first.
  - name: Scale  # its name
    doc: "Y is X, scaled."
    # What computes it.
    kernel: scale::Scale
    backends: [cpu]
    inputs:
      X: {type: T, shape: [N, "*D"]}  # the input
      # Between two.
      W:
        # Within one.
        type: T
        shape: [N]
    outputs: {Y: {type: T, like: X, doc: 'a ''Y'''}}
    dims:
      D: {length: [0, 3]}

    attributes: &factors  # of Scale
      # X is multiplied by it.
      factor: {type: float, default: 1.0, doc: "by [1], or more"}
    rows:
      float: {T: float}
    cases:
      - {name: plain, X: [2, 3]}
      - {name: other, X: [4, 5], layout: strided}
      # A comment of the cases.

  # The second.
  - "name": "Other"
    "doc": "Other."
    kernel: scale::Scale
    backends: [cpu]
    inputs: {X: {type: T, shape: [N]}}
    outputs: {Y: {type: T, like: X}}
    attributes: *factors
    rows: {float: {T: float}}
    cases:
      - {name: plain, X: [2]}
# The end.
"""


def test_an_untidy_schema() -> None:
    assert _formatted(UNTIDY) == TIDY


def test_an_alias_stays_behind_its_anchor() -> None:
    text = edited(
        SCALE,
        ('X: {type: T, shape: [N, "*D"]}', 'X: {shape: &dims [N, "*D"], type: T}\n      W: {like: X, type: T}'),
        ("    attributes:\n", "    attributes:\n      bias: {default: &one 1.0, min: *one, type: float}\n"),
        ("    cases:\n      - {name: plain, X: [2, 3]}\n", ""),
        (
            "    rows:\n      float: {T: float}",
            "    cases: [&case {name: plain, X: [2, 3]}]\n    rows: {float: {T: float}}",
        ),
    )
    text = edited(text, ("Y: {type: T, like: X}", "Y: {shape: *dims, type: T}"))
    result = _formatted(text.replace("&case ", ""))
    assert '      X: {type: T, shape: &dims [N, "*D"]}\n      W: {type: T, like: X}\n' in result
    assert "      Y: {type: T, shape: *dims}\n" in result
    assert "      bias: {type: float, default: &one 1.0, min: *one}\n" in result
    backwards = edited(text.replace("&case ", ""), ("default: &one 1.0, min: *one", "min: &one 1.0, default: *one"))
    assert "      bias: {min: &one 1.0, default: *one, type: float}\n" in _formatted(backwards)


@pytest.mark.parametrize("mark", [",", "[", "]", "{", "}"])
def test_what_needs_quotes_in_braces_alone_gets_them(mark: str) -> None:
    block = f"factor:\n        type: float\n        default: 1.0\n        doc: a{mark}b"
    result = _formatted(edited(SCALE, ("factor: {type: float, default: 1.0}", block)))
    assert f'      factor: {{type: float, default: 1.0, doc: "a{mark}b"}}\n' in result


def test_long_texts_stay_as_they_are() -> None:
    text = edited(
        SCALE,
        ("doc: Y is X times factor.", "doc: >-\n      Y is X\n      times factor.\n    # What computes it."),
        ("kernel: scale::Scale", "formulas:\n        Y: X *\n           factor"),
        ("factor: {type: float, default: 1.0}", 'factor: {type: float, default: 1.0, doc: "a\n        text"}'),
    )
    result = _formatted(text)
    assert "    doc: >-\n      Y is X\n      times factor.\n    # What computes it.\n    formulas:\n" in result
    assert "      Y: X *\n         factor\n" in result
    assert '      factor: {type: float, default: 1.0, doc: "a\n        text"}\n' in result


def test_a_document_may_begin_with_its_mark() -> None:
    assert _formatted("# One.\n---\n\n\n" + SCALE) == "# One.\n---\n\n" + SCALE


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_a_byte_order_mark_stay(tmp_path: Path, line_end: str, mark: bytes) -> None:
    path = tmp_path / "ops.yaml"
    untidy = edited(SCALE, ("[cpu]", "[ cpu ]"))
    path.write_bytes(mark + untidy.replace("\n", line_end).encode())
    assert main(["fmt", str(path)]) == 0
    assert path.read_bytes() == mark + SCALE.replace("\n", line_end).encode()


def test_a_comment_without_a_place_is_not_lost() -> None:
    text = edited(SCALE, ("  - name: Scale", "  - # a comment\n    name: Scale"))
    with pytest.raises(Refused, match=r"^ops.yaml:5: # a comment stands where a formatted file has no place for it$"):
        formatted(source_of("ops.yaml", text))


def test_comments_in_braces_stay_where_they_are() -> None:
    text = edited(
        SCALE, ('X: {type: T, shape: [N, "*D"]}', 'X: {shape: [N, "*D"], # any\n          type: T}  # the input')
    )
    assert _formatted(text) == text


# -- Whatever it is written like ---


def test_json_and_blocks_become_the_same(ops_yaml: Path) -> None:
    """But for mappings of names, which may be in { } on a line."""
    tree = yaml.load(ops_yaml.read_text(encoding="utf-8"), Loader=LOADER)
    tree["ops"] = tree["ops"][:12]
    texts = [
        json.dumps(tree, indent=1).replace("1e-05", "1.0e-5"),
        yaml.dump(tree, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=10_000),
        yaml.dump(tree, Dumper=_Dumper, sort_keys=True, default_flow_style=None, width=10_000),
    ]
    results = [_formatted(text) for text in texts]
    for result in results:
        assert yaml.load(result, Loader=LOADER) == tree
        assert max(map(len, result.splitlines())) > 100
    assert results[0].count("\n") == results[1].count("\n")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def test_what_has_faults_of_meaning_alone_is_formatted_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent / "bad")  # from where they include others
    count = 0
    for path in sorted((Path(__file__).parent / "bad").glob("*.yaml")):
        source, diagnostics = read_source(path)
        if not diagnostics and read_document(source)[0]:
            _formatted(source.text)
            count += 1
    assert count > 100


@pytest.mark.parametrize("seed", range(8))
def test_keys_in_any_order_with_comments_anywhere(ops_yaml: Path, seed: int) -> None:
    chance = random.Random(seed)
    tree = yaml.load(ops_yaml.read_text(encoding="utf-8"), Loader=LOADER)
    tree["ops"] = chance.sample(tree["ops"], 6)
    shuffled = {key: tree[key] for key in chance.sample(sorted(tree), len(tree))}
    shuffled["ops"] = [{key: op[key] for key in chance.sample(sorted(op), len(op))} for op in tree["ops"]]
    flow = chance.choice([None, False])
    text = yaml.dump(shuffled, Dumper=_Dumper, sort_keys=False, default_flow_style=flow, width=10_000)
    lines = []
    for number, line in enumerate(text.splitlines()):
        indent = " " * (len(line) - len(line.lstrip()))
        lines += [""] * chance.choice([0, 0, 0, 2])
        lines += [f"{indent}# comment {number}"] * chance.choice([0, 0, 0, 1])
        lines.append(line + (f" # behind {number}" if chance.random() < 0.1 else ""))
    text = "\n".join(lines) + "\n"
    result = _formatted(text)
    assert yaml.load(result, Loader=LOADER) == tree
    assert sorted(_comments(result)) == sorted(_comments(text))


def _comments(text: str) -> list[str]:
    return [line[line.index("# ") :] for line in text.splitlines() if "# comment " in line or "# behind " in line]


# -- The verb ---


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(edited(SCALE, ("{name: plain, X: [2, 3]}", "{X: [2,3], name: plain}")), encoding="utf-8")
    assert main(["fmt", "--check", str(path)]) == 1
    assert capsys.readouterr().out == (
        f"--- {path} (on disk)\n+++ {path} (formatted)\n@@ -17,4 +17,4 @@\n     rows:\n       float: {{T: float}}\n"
        "     cases:\n-      - {X: [2,3], name: plain}\n+      - {name: plain, X: [2, 3]}\n"
    )
    assert main(["fmt", "--schema", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: formatted\n"
    assert path.read_text(encoding="utf-8") == SCALE
    assert main(["fmt", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: no change\n"
    assert main(["fmt", "--check", str(path)]) == 0
    assert capsys.readouterr().out == ""


def test_a_schema_that_does_not_read_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.yaml"
    bad = edited(SCALE, ("{T: float}", "{T: flaot }"))
    path.write_text(bad, encoding="utf-8")
    assert main(["fmt", str(path)]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.splitlines()[0]) == (
        "",
        f"{path}:18:18: error[G014]: unknown type 'flaot'; did you mean 'float'?",
    )
    assert path.read_text(encoding="utf-8") == bad


def test_a_fault_of_what_is_meant_is_none_of_the_style(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(edited(SCALE, ("kernel: scale::Scale", "kernel: no::Such")), encoding="utf-8")
    assert main(["fmt", "--check", str(path)]) == 0
    source, _ = read_source(path)
    assert formatted(source) == source.text
