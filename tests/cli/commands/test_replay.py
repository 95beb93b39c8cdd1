"""`pendula replay` verifies a journal, changes nothing, and reports each difference."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.cli import schedulers
from pendula.cli.schedulers import engine_of
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver
from pendula.kernel.journal import FileJournal
from pendula.testing.tally import Add, Advance, Draw, Take, Tally
from tests.cli.conftest import Finished, Pendula
from tests.cli.counter import record


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five commands, 13 in the middle, snapshots after the second, the fourth and the last."""
    engine(monkeypatch, "Counter")
    record(tmp_path / "journal", [1, 2, 13, 4, 5], snapshot_every=2)
    return tmp_path / "journal"


def engine(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(schedulers, "ENGINES", {"counter": f"tests.cli.counter:{name}"})


def document(ended: Finished) -> Any:
    assert ended.out.count("\n") == 1
    return json.loads(ended.out)


def table_of(ended: Finished) -> dict[str, str]:
    """The lines of the table: name and value."""
    return {name: value.rstrip() for name, value in (line.split(maxsplit=1) for line in ended.out.splitlines())}


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_a_good_journal_is_verified(journal: Path, pendula: Pendula) -> None:
    ended = pendula("replay", journal, "--json")

    report = document(ended)
    assert (ended.code, ended.err) == (0, "")
    assert report["verified"] is True
    assert report["first_difference"] is None
    assert (report["scheduler"], report["commands"], report["snapshots"], report["cut_tail_bytes"]) == (
        "counter",
        5,
        3,
        0,
    )
    assert (report["first_n"], report["last_n"]) == (0, 12)


def test_without_json_the_result_is_a_table(journal: Path, pendula: Pendula) -> None:
    ended = pendula("replay", journal)

    digest = document(pendula("replay", journal, "--json"))["digest"]
    lines = table_of(ended)
    assert ended.code == 0
    assert lines["commands"] == "5"
    assert lines["digest"] == digest
    assert lines["result"] == "every outcome is the same"


def test_the_digest_is_the_chain_in_the_last_frame(journal: Path, pendula: Pendula) -> None:
    report = document(pendula("replay", journal, "--json"))

    assert bytes.fromhex(report["digest"]) in b"".join(contents(journal).values())


def test_upto_stops_early(journal: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula) -> None:
    record(journal.parent / "shorter", [1, 2], snapshot_every=2)
    engine(monkeypatch, "Miscounter")

    ended = pendula("replay", journal, "--upto", 4, "--json")

    report = document(ended)
    assert ended.code == 0
    assert (report["commands"], report["last_n"]) == (2, 4)
    assert report["digest"] == document(pendula("replay", journal.parent / "shorter", "--json"))["digest"]


def test_a_difference_names_record_command_both_outcomes_and_path(
    journal: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    engine(monkeypatch, "Miscounter")

    ended = pendula("replay", journal, "--json")

    report = document(ended)
    assert ended.code == 1
    assert report["verified"] is False
    assert report["first_difference"] == {
        "command": {"amount": 13, "type": "add"},
        "computed": {"answer": None, "events": [{"total": 29, "type": "added"}], "refusal": None},
        "n": 5,
        "path": "$.events[0].total",
        "recorded": {"answer": None, "events": [{"total": 16, "type": "added"}], "refusal": None},
    }
    assert json.loads(ended.err)["error"] == {
        "code": "replay_differs",
        "details": {"n": 5, "path": "$.events[0].total"},
        "message": "Record 5 differs at $.events[0].total",
    }


def test_the_difference_is_readable_without_json_too(
    journal: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    engine(monkeypatch, "Miscounter")

    ended = pendula("replay", journal)

    lines = table_of(ended)
    assert ended.code == 1
    assert lines["record"] == "5"
    assert lines["command"] == '{"amount":13,"type":"add"}'
    assert '"total":16' in lines["recorded"]
    assert '"total":29' in lines["computed"]
    assert lines["path"] == "$.events[0].total"
    assert ended.err == "pendula: Record 5 differs at $.events[0].total (replay_differs)\n"


def test_other_decisions_are_refused_unless_forced(
    journal: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    engine(monkeypatch, "Recounter")

    refused, forced = pendula("replay", journal), pendula("replay", journal, "--force", "--json")

    assert (refused.code, refused.out) == (1, "")
    assert "(other_decisions)" in refused.err
    assert forced.code == 1
    assert document(forced)["first_difference"]["n"] == 5


def test_an_unknown_scheduler_is_refused_with_the_known_ones(
    journal: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.setattr(schedulers, "ENGINES", {"tally": "never:imported"})

    assert pendula("replay", journal) == Finished(
        1, "", "pendula: Unknown scheduler 'counter'; known are tally (unknown_scheduler)\n"
    )


def test_a_torn_tail_is_reported_and_left_alone(journal: Path, pendula: Pendula) -> None:
    segment = journal / "00000000.journal"
    segment.write_bytes(segment.read_bytes() + b"torn")
    before = contents(journal)

    report = document(pendula("replay", journal, "--json"))

    assert report["cut_tail_bytes"] == 4
    assert report["verified"] is True
    assert contents(journal) == before
    assert report["tail"].startswith("Journal: 00000000.journal ends in the middle of record")


def test_a_flipped_byte_in_the_last_record_is_reported(journal: Path, pendula: Pendula) -> None:
    segment = journal / "00000000.journal"
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])

    report = document(pendula("replay", journal, "--json"))

    assert "is complete but has a wrong checksum" in report["tail"]
    assert "If it was acknowledged, it was damaged later" in pendula("replay", journal).out.replace("\n", " ")


def test_a_corrupt_journal_is_a_broken_world(journal: Path, pendula: Pendula) -> None:
    segment = journal / "00000000.journal"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)

    ended = pendula("replay", journal)

    assert (ended.code, ended.out) == (3, "")
    assert "00000000.journal" in ended.err
    assert ended.err.endswith("(journal_corrupt)\n")


def test_a_folder_other_than_a_journal_is_distinguished(tmp_path: Path, pendula: Pendula) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()

    missing, file, empty = (pendula("replay", tmp_path / name) for name in ("missing", "file", "empty"))

    assert "missing does not exist" in missing.err
    assert "file is a file" in file.err
    assert empty.err == f"pendula: No journal found in {tmp_path / 'empty'} (journal_missing)\n"
    for ended in (missing, file, empty):
        assert (ended.code, ended.out) == (3, "")
        assert ended.err.endswith("(journal_missing)\n")
    assert not (tmp_path / "missing").exists()


class PruningServer:
    """A server that prunes its journal after each read of this many files, a given number of times."""

    def __init__(self, directory: Path, after_reads: int, times: int) -> None:
        self._directory = directory
        self._after_reads = after_reads
        self._reads_left = after_reads
        self.times_left = times

    def meets(self, read: Callable[..., bytes]) -> Callable[..., bytes]:
        """Wrap a read of a file or a part of it, so that it triggers this server."""

        def pruned(disk: RealDisk, name: str, *part: int) -> bytes:
            self._reads_left -= 1
            if self._reads_left < 0 and self.times_left:
                self.times_left -= 1
                self._reads_left = self._after_reads
                (self._directory / name).unlink()
            return read(disk, name, *part)

        return pruned


@pytest.fixture
def long_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Segments of a few records, each with a snapshot."""
    engine(monkeypatch, "Counter")
    record(tmp_path / "journal", range(40), snapshot_every=1, segment_bytes=800)
    return tmp_path / "journal"


def pruned_meanwhile(
    monkeypatch: pytest.MonkeyPatch, directory: Path, after_reads: int, times: int = 1
) -> PruningServer:
    server = PruningServer(directory, after_reads, times)
    for way in ("read", "read_part"):
        monkeypatch.setattr(RealDisk, way, server.meets(getattr(RealDisk, way)))
    return server


@pytest.mark.parametrize("while_it_is", ["listed", "opened", "replayed", "digested"])
def test_a_journal_pruned_during_the_replay_is_read_again(
    while_it_is: str, long_journal: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    segments = len(contents(long_journal))
    first_of = {"listed": 0, "opened": 1, "replayed": segments + 1, "digested": 2 * segments + 1}
    server = pruned_meanwhile(monkeypatch, long_journal, first_of[while_it_is])

    ended = pendula("replay", long_journal, "--json")

    assert (ended.code, ended.err) == (0, "")
    assert server.times_left == 0
    assert document(ended)["verified"] is True
    assert document(ended)["first_n"] > 0


def test_a_journal_that_is_pruned_repeatedly_is_a_broken_world(
    long_journal: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    pruned_meanwhile(monkeypatch, long_journal, after_reads=0, times=1000)

    ended = pendula("replay", long_journal)

    assert ended == Finished(
        3,
        "",
        f"pendula: {long_journal} is pruned faster than it can be read; replay a copy, or stop the server"
        " that writes it (world_broken)\n",
    )
    assert contents(long_journal), "it gave up early enough"


def test_long_values_are_shortened_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    engine(monkeypatch, "Miscounter")
    record(tmp_path / "journal", [10**3000, 13])

    ended = pendula("replay", tmp_path / "journal")

    assert "characters; --json shows all)" in "".join(ended.out.split("\n"))
    assert len(ended.out) < 10_000


def test_a_separate_process_verifies_a_tally(tmp_path: Path, python: Callable[..., Finished]) -> None:
    journal = FileJournal.create(
        RealDisk(tmp_path), scheduler="tally", decisions=Tally.decisions, time_unit=Tally.time_unit, config={"seed": 7}
    )
    driver = Driver(Tally.create({"seed": 7}), journal)
    for command in (Add(5), Draw(6), Add(2, at=9), Take(100), Advance(10)):
        driver.submit(command, "test")
    driver.close()

    ended = python("from pendula.cli import main; main()", "replay", str(tmp_path), "--json")

    report = document(ended)
    assert (ended.code, ended.err) == (0, "")
    assert (report["scheduler"], report["commands"], report["verified"]) == ("tally", 5, True)


@pytest.mark.parametrize("scheduler", list(schedulers.ENGINES))
def test_every_engine_in_the_table_has_its_scheduler_name(scheduler: str) -> None:
    found = engine_of(scheduler)

    assert found.scheduler == scheduler
    assert callable(found.apply)
