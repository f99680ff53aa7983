"""examples/autoencoder: what it learns, what it writes, and what it says to wrong options and broken data."""

from __future__ import annotations

import csv
import os
import pty
import re
import struct
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from build_tree import REPOSITORY

DIGITS = REPOSITORY / "examples/data/optical_digits.csv"
SIDE, ZOOM, GAP = 8, 10, 8
TILE = SIDE * ZOOM

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(autoencoder: Path, tmp_path: Path) -> Run:
    """Runs the program in an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(autoencoder), *arguments]
        return subprocess.run(command, cwd=tmp_path, check=False, text=True, capture_output=True)

    return run


# --- what it learns -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    output: str
    picture: bytes


@pytest.fixture(scope="module")
def training(autoencoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A run as a newcomer starts it; that it exits with 0 is checked."""
    folder = tmp_path_factory.mktemp("training")
    result = subprocess.run([str(autoencoder)], cwd=folder, check=True, text=True, capture_output=True, timeout=300)
    return Training(result.stdout, (folder / "autoencoder.png").read_bytes())


def test_held_out_error_is_a_tenth_of_the_mean_images(training: Training) -> None:
    match = re.search(r"held-out mean squared error ([\d.]+), of the mean image ([\d.]+)", training.output)
    assert match
    assert float(match[1]) <= 0.1 * float(match[2])
    assert float(match[2]) == pytest.approx(pixel_variance(), rel=0.1)


def pixel_variance() -> float:
    """The mean squared error of the mean image on all images."""
    columns = list(zip(*(pixels for pixels, _ in read_digits()), strict=True))
    means = [sum(column) / len(column) for column in columns]
    errors: list[float] = [
        sum((value - mean) ** 2 for value in column) for column, mean in zip(columns, means, strict=True)
    ]
    return sum(errors) / (len(columns) * len(columns[0]))


def read_digits() -> list[tuple[list[float], int]]:
    with DIGITS.open() as file:
        rows = [[int(field) for field in row] for row in csv.reader(file)]
    return [([ink / 16 for ink in row[:-1]], row[-1]) for row in rows]


def test_loss_falls_and_w_b_comes_to_match_w_f(training: Training) -> None:
    line = r"^epoch +(\d+)/100  loss ([\d.]+)  held-out [\d.]+  cosine\(w_b, w_f transposed\) (-?[\d.]+)$"
    epochs = re.findall(line, training.output, re.MULTILINE)
    assert [int(number) for number, _, _ in epochs] == [1, *range(10, 101, 10)]
    assert float(epochs[-1][1]) < 0.1 * float(epochs[0][1])
    start, end = re.findall(r"(-?[\d.]+) at the (?:start|end)", training.output)
    assert abs(float(start)) < 0.2
    assert float(end) > 0.85
    assert end == epochs[-1][2]


# --- the verdict ----------------------------------------------------------------------------------------------------

VERDICT = re.compile(
    r"(passed|failed): the held-out error is (\S+) of the mean image's, ((?:not )?at most) 0\.1; "
    r"it took ([\d.]+) seconds, ((?:not )?at most) ([\d.]+)"
)


def verdict(output: str) -> re.Match[str]:
    match = VERDICT.fullmatch(output.splitlines()[-1])
    assert match is not None, output
    return match


def test_enough_training_in_time_passes(training: Training) -> None:
    word, ratio, good, seconds, quick, limit = verdict(training.output).groups()
    assert (word, good, quick, limit) == ("passed", "at most", "at most", "60")
    assert 0 < float(ratio) <= 0.1
    assert 0 < float(seconds) <= 60


def test_too_little_training_fails(run: Run) -> None:
    result = run("--epochs", "1")
    word, ratio, good, _, quick, _ = verdict(result.stdout).groups()
    assert (result.returncode, word, good, quick) == (1, "failed", "not at most", "at most")
    assert float(ratio) > 0.1


def test_too_much_time_fails(run: Run) -> None:
    result = run("--epochs", "30", "--time-limit", "0.001")
    word, ratio, good, seconds, quick, limit = verdict(result.stdout).groups()
    assert (result.returncode, word, good, quick, limit) == (1, "failed", "at most", "not at most", "0.001")
    assert float(ratio) <= 0.1
    assert float(seconds) > 0.001


def test_a_loss_that_is_not_a_number_fails(run: Run, tmp_path: Path) -> None:
    # All images alike leave nothing to explain: 0 / 0.
    data = tmp_path / "alike.csv"
    data.write_text((",".join(["0"] * 65) + "\n") * 60)
    result = run("--data", str(data), "--learning-rate", "0")
    assert (result.returncode, *verdict(result.stdout).group(1, 3)) == (1, "failed", "not at most")
    assert "nan" in verdict(result.stdout)[2]


def test_a_seed_gives_the_same_bits_on_any_number_of_threads(run: Run, tmp_path: Path) -> None:
    def outcome(*arguments: str) -> tuple[str, bytes]:
        output = run("--epochs", "2", *arguments).stdout
        return re.sub(r"[\d.]+ seconds", "", output), (tmp_path / "autoencoder.png").read_bytes()

    first = outcome("--seed", "7", "--threads", "1")
    assert first == outcome("--seed", "7", "--threads", "1")
    assert first == outcome("--seed", "7", "--threads", "3")
    assert first != outcome("--seed", "8", "--threads", "1")


# --- what it writes -------------------------------------------------------------------------------------------------


def test_picture_shows_each_digit_above_its_reconstruction(training: Training) -> None:
    rows = decode_gray_png(training.picture)
    assert len(rows) == GAP + 2 * (TILE + GAP)
    assert {len(row) for row in rows} == {GAP + 10 * (TILE + GAP)}
    known = {(digit, tuple(round(255 * ink) for ink in pixels)) for pixels, digit in read_digits()}
    errors = []
    for digit in range(10):
        original, drawn = tile(rows, 0, digit), tile(rows, 1, digit)
        assert (digit, tuple(original)) in known
        assert drawn != original
        errors += [((a - b) / 255) ** 2 for a, b in zip(original, drawn, strict=True)]
    assert sum(errors) / len(errors) < 0.1 * pixel_variance()


def tile(rows: list[bytes], row: int, column: int) -> list[int]:
    """The pixels of a tile, each of which must be a square of one gray."""
    top, left = GAP + row * (TILE + GAP), GAP + column * (TILE + GAP)
    pixels: list[int] = []
    for y in range(top, top + TILE, ZOOM):
        for x in range(left, left + TILE, ZOOM):
            grays = {gray for line in rows[y : y + ZOOM] for gray in line[x : x + ZOOM]}
            assert len(grays) == 1
            pixels += grays
    return pixels


def decode_gray_png(data: bytes) -> list[bytes]:
    """The rows of an 8-bit grayscale PNG (ISO/IEC 15948)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]
        chunks[kind] = chunks.get(kind, b"") + body
        at += 12 + length
    width, height, *kind_of_image = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert kind_of_image == [8, 0, 0, 0, 0]
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == height * (width + 1)
    rows = [bytes(width)]
    for y in range(height):
        line = raw[y * (width + 1) : (y + 1) * (width + 1)]
        rows.append(unfilter(line[0], line[1:], rows[-1]))
    return rows[1:]


def unfilter(method: int, line: bytes, above: bytes) -> bytes:
    result = bytearray()
    for x, value in enumerate(line):
        a = result[x - 1] if x else 0
        b = above[x]
        c = above[x - 1] if x else 0
        nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        result.append((value + (0, a, b, (a + b) // 2, nearest)[method]) % 256)
    return bytes(result)


def test_no_bar_where_output_is_no_terminal(run: Run) -> None:
    output = run("--epochs", "2").stdout
    assert len(re.findall(r"^epoch ", output, re.MULTILINE)) == 2
    assert not re.search(r"[\r\033]", output)


def test_about_ten_epochs_have_a_line(run: Run) -> None:
    output = run("--epochs", "23", "--filters", "1").stdout
    epochs = re.findall(r"^epoch +(\d+)/23 ", output, re.MULTILINE)
    assert [int(number) for number in epochs] == [1, *range(3, 23, 3), 23]


def test_bar_grows_with_the_training_on_a_terminal(autoencoder: Path, tmp_path: Path) -> None:
    output = on_a_terminal([str(autoencoder), "--epochs", "2"], tmp_path)
    bars = re.findall(r"\repoch +[12]/2  \[(#*)(\.*)\]", output)
    assert {len(done + rest) for done, rest in bars} == {40}
    lengths = [len(done) for done, _ in bars]
    assert lengths == sorted(lengths)
    assert set(lengths) == set(range(40))
    assert len(re.findall(r"\r\033\[Kepoch +\d/2  loss", output)) == 2


def on_a_terminal(command: list[str], folder: Path) -> str:
    terminal, far_end = pty.openpty()
    with subprocess.Popen(command, cwd=folder, stdout=far_end, stderr=subprocess.DEVNULL):
        os.close(far_end)
        output = b""
        try:
            while piece := os.read(terminal, 65536):
                output += piece
        except OSError:  # Linux's answer once the other end is closed
            pass
        os.close(terminal)
    return output.decode()


def test_quiet_leaves_out_the_epochs(run: Run) -> None:
    output = run("--epochs", "2", "--quiet").stdout
    assert "epoch " not in output
    assert "held-out mean squared error" in output


def test_a_picture_that_cannot_be_written_fails(run: Run) -> None:
    result = run("--epochs", "1", "--output", "/dev/full")
    assert (result.returncode, result.stderr) == (1, "autoencoder: cannot write /dev/full: No space left on device\n")


def test_a_picture_that_cannot_be_opened_fails_before_the_training(run: Run) -> None:
    result = run("--output", "missing/folder.png")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "autoencoder: cannot write missing/folder.png: No such file or directory\n"


@pytest.mark.parametrize("there", [b"a picture", None])
def test_training_that_fails_leaves_the_picture_as_it_was(run: Run, tmp_path: Path, there: bytes | None) -> None:
    picture = tmp_path / "autoencoder.png"
    if there is not None:
        picture.write_bytes(there)
    assert run("--data", "missing.csv").returncode == 1
    assert (picture.read_bytes() if picture.exists() else None) == there


# --- options --------------------------------------------------------------------------------------------------------

OPTIONS = ["data", "output", "device", "epochs", "batch", "filters", "learning-rate", "weight-decay", "seed", "threads"]
OPTIONS += ["time-limit", "quiet", "help"]


def test_help_lists_every_option(run: Run) -> None:
    result = run("--help")
    assert result.returncode == 0
    assert re.findall(r"^  --([\w-]+)", result.stdout, re.MULTILINE) == OPTIONS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epoch", "3"], "unknown option '--epoch'; --help lists them"),
        (["digits.csv"], "unknown option 'digits.csv'; --help lists them"),
        (["--epochs"], "--epochs needs a value"),
        (["--epochs", "0"], "--epochs takes a whole number from 1 to 100000, not '0'"),
        (["--epochs", "3x"], "--epochs takes a whole number from 1 to 100000, not '3x'"),
        (["--epochs", ""], "--epochs takes a whole number from 1 to 100000, not ''"),
        (["--batch", "-1"], "--batch takes a whole number from 1 to 100000, not '-1'"),
        (["--filters", "99999999999"], "--filters takes a whole number from 1 to 1000, not '99999999999'"),
        (["--learning-rate", "nan"], "--learning-rate takes a number from 0 to 1, not 'nan'"),
        (["--weight-decay", "2"], "--weight-decay takes a number from 0 to 1, not '2'"),
        (["--seed", "1.5"], "--seed takes a whole number from 0 to 4294967295, not '1.5'"),
        (["--time-limit", "-1"], "--time-limit takes a number from 0 to 1e+06, not '-1'"),
        (["--device", "gpu"], "--device takes auto, cpu or cuda, not 'gpu'"),
        (["--threads", "two"], "--threads takes a whole number from 0 to 1000, not 'two'"),
    ],
)
def test_wrong_options_are_refused(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert (result.returncode, result.stderr, result.stdout) == (2, f"autoencoder: {message}\n", "")


def test_options_change_the_model(run: Run) -> None:
    output = run("--filters", "3", "--batch", "100", "--epochs", "1").stdout
    assert "the code has 12 values for 64 pixels" in output


# --- data -----------------------------------------------------------------------------------------------------------

COLUMNS = "expected 64 pixels and a digit, 65 numbers separated by commas"
GOOD = ",".join(["0"] * 64 + ["1"])


def with_field(column: int, text: str) -> str:
    fields = GOOD.split(",")
    fields[column - 1] = text
    return ",".join(fields)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the data file {path} is empty: expected an image on each line"),
        ("1,2,3", "{path}, line 1: {columns}, got 3: '1,2,3'"),
        (f"{GOOD}\n{GOOD},0", "{path}, line 2: {columns}, got 66: "),
        (f"{GOOD}\n\n{GOOD}", "{path}, line 2: {columns}, got 1: ''"),
        (with_field(3, "ink"), "{path}, line 1, column 3: expected a whole number from 0 to 16, got 'ink'"),
        (with_field(64, "17"), "{path}, line 1, column 64: expected a whole number from 0 to 16, got '17'"),
        (with_field(1, "-1"), "{path}, line 1, column 1: expected a whole number from 0 to 16, got '-1'"),
        (with_field(2, "1.5"), "{path}, line 1, column 2: expected a whole number from 0 to 16, got '1.5'"),
        (with_field(2, ""), "{path}, line 1, column 2: expected a whole number from 0 to 16, got ''"),
        (with_field(65, "10"), "{path}, line 1, column 65: expected a whole number from 0 to 9, got '10'"),
        (bytes(range(256)) * 9, "{path}, line 1: {columns}, got 1: "),
        (f"{GOOD}\n" * 30, "{path} has too few images: 25 to train on, in batches of 32, and 5 to hold out"),
        (f"{GOOD}\n" * 5, "{path} has too few images: 5 to train on, in batches of 32, and 0 to hold out"),
    ],
)
def test_broken_data_is_refused(run: Run, tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "digits.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("--data", str(path))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("autoencoder: " + message.format(path=path, columns=COLUMNS))
    assert result.stderr.count("\n") == 1
    assert result.stderr.isascii()


@pytest.mark.parametrize(("name", "why"), [("missing.csv", "No such file or directory"), (".", "Is a directory")])
def test_data_that_cannot_be_read_is_named(run: Run, name: str, why: str) -> None:
    result = run("--data", name)
    assert result.returncode == 1
    assert result.stderr == f"autoencoder: cannot read the data file {name}: {why}\n"


def test_the_last_line_may_lack_its_end(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "digits.csv"
    path.write_text("\n".join([GOOD] * 60))
    assert "50 digits to train on, 10 held out" in run("--data", str(path), "--epochs", "1").stdout
