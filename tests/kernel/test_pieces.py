"""A journal is read in pieces: what a reader holds does not grow with it, and it finds what is there all the same."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.kernel import journal as journal_module
from pendula.kernel.disk import RealDisk
from pendula.kernel.frames import JournalCorrupt, seal
from pendula.testing import FaultyDisk
from tests.kernel.journals import new_journal


class Counting(RealDisk):
    """A disk that knows how much was asked of it at once, and what is asked as a whole is not allowed."""

    most = 0

    def read_part(self, name: str, start: int, length: int) -> bytes:
        self.most = max(self.most, length)
        return super().read_part(name, start, length)


class Parts(FaultyDisk):
    """A disk in memory that can read parts."""

    def read_part(self, name: str, start: int, length: int) -> bytes:
        return self.read(name)[start : start + length]


def test_a_long_segment_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Counting(tmp_path)
    journal = new_journal(disk)
    for n in range(3000):
        journal.append("input", n, b'{"x":"%b"}' % (b"x" * 1000))
    journal.flush()
    whole = journal.total_bytes
    monkeypatch.setattr(disk, "read", None)

    found = [record.n for record in journal.read(2990)]

    assert found == list(range(2990, 3000))
    assert disk.most <= journal_module.PIECE_BYTES < whole // 10
    monkeypatch.undo()
    journal.close()


@given(sizes=st.lists(st.integers(0, 400), max_size=12), piece=st.integers(1, 700), start=st.integers(0, 12))
def test_pieces_of_any_length_give_the_same_records(sizes: list[int], piece: int, start: int) -> None:
    journal = new_journal(Parts())
    for n, size in enumerate(sizes):
        journal.append("input", n, b'{"x":"%b"}' % (b"x" * size))
    journal.flush()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(journal_module, "PIECE_BYTES", piece)
        found = [(record.n, len(bytes(record.body)) - 8) for record in journal.read(start)]

    assert found == [(n, size) for n, size in enumerate(sizes) if n >= start]


def test_damage_found_while_reading_has_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Parts()
    journal = new_journal(disk)
    for n in range(20):
        journal.append("input", n, b'{"x":1}')
    journal.flush()
    [name] = journal_module.segment_names(disk)
    data = disk.read(name)
    at = data.rindex(b'{"body":{"x":1},"kind":"input","n":15') - 40
    frame, _ = seal(bytes(32), b'{"body":{"x":2},"kind":"input","n":15,"t":15}')
    monkeypatch.setattr(disk, "read", lambda _: data[:at] + frame + data[at + len(frame) :])
    monkeypatch.setattr(journal_module, "PIECE_BYTES", 100)

    reader = journal.read()
    with pytest.raises(JournalCorrupt, match=f"the digest chain is broken at record 15 .*offset {at}"):
        list(reader)
