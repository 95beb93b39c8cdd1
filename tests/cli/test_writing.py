"""Files are written whole or not at all, and results are printed first."""

import errno
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pendula.cli.writing import write_pieces, write_whole
from tests.cli.conftest import Pendula

ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from pendula.cli.writing import write_whole

resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    write_whole(Path(sys.argv[1]), b"new and longer than ten bytes")
except OSError as error:
    print(error.filename)
"""


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "runs.csv"
    target.write_bytes(b"old")

    finished = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, target], capture_output=True, text=True, check=True, timeout=300
    )

    assert finished.stdout == f"{target}\n"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("runs.csv", b"old")]


def test_a_read_error_names_the_file_that_was_read(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"first"
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "00000003.journal")

    (tmp_path / "out.jsonl").write_bytes(b"old")

    with pytest.raises(FileNotFoundError) as error:
        write_pieces(tmp_path / "out.jsonl", pieces())

    assert error.value.filename == "00000003.journal"
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.jsonl", b"old")]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.svg").symlink_to(tmp_path / "picture.svg")

    for words in (b"first", b"second"):
        write_whole(tmp_path / "link.svg", words)

    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "picture.svg").read_bytes() == b"second"


@pytest.mark.parametrize(
    "words",
    [
        ("credit", "run", "village.json", "--ticks", "3", "--csv", "/dev/full"),
        ("credit", "sweep", "village.json", "--ticks", "3", "--seeds", "1", "--workers", "1", "--csv", "/dev/full"),
        ("credit", "compare", "village.json", "--ticks", "3", "--seeds", "1", "--skip", "0", "--csv", "/dev/full"),
    ],
)
def test_the_result_is_printed_although_its_file_cannot_be_written(
    words: tuple[str, ...], pendula: Pendula, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pendula("credit", "new", "--participants", "20", "-o", "village.json").code == 0

    ended = pendula(*words, "--json")

    assert (ended.code, "No space left on device" in ended.err) == (3, True)
    assert ended.out.startswith("{")


def test_a_generated_scenario_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)); import pendula.__main__"
    target = tmp_path / "village.json"

    words = [sys.executable, "-c", limited, "credit", "new", "--participants", "20", "-o", str(target)]
    ended = subprocess.run(words, capture_output=True, check=False, timeout=300)

    assert (ended.returncode, str(target) in ended.stderr.decode()) == (3, True)
    assert list(tmp_path.iterdir()) == []
