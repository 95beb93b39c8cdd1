"""Journals and artifacts of `pendula credit run`; `fork` and `why` on a journal."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from pendula.credit.runs.headless import plan_run
from pendula.credit.runs.recording import Recording
from pendula.credit.settings import BY_VARIABLE, Settings, change_settings
from pendula.documents import read_file
from pendula.kernel.disk import RealDisk
from pendula.kernel.journal import FileJournal
from tests.cli.commands.credit.villages import OFTEN, RING, error, read_json, write_file
from tests.cli.conftest import Finished, Pendula

RUN = ("--ticks", "12", "--seed", "3", *OFTEN, "--json")


@pytest.fixture(autouse=True)
def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BY_VARIABLE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "140")


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    return write_file(tmp_path / "ring.json")


@pytest.fixture(scope="module")
def written_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of `RUN`, for all tests."""
    folder = tmp_path_factory.mktemp("written")
    settings = change_settings(Settings(), {"clearing_every_n_ticks": "4"})
    plan = plan_run(read_file(write_file(folder / "ring.json")), seed=3, settings=settings)
    with Recording.begin(plan, RealDisk(folder / "journal")) as recording:
        recording.step(12)
    return folder / "journal"


@pytest.fixture
def journal(written_once: Path, tmp_path: Path) -> Path:
    return Path(copytree(written_once, tmp_path / "journal"))


def lines(directory: Path) -> list[Any]:
    return [json.loads(line) for line in (directory / "events.ndjson").read_text(encoding="utf-8").splitlines()]


def normalised(events: list[Any]) -> list[Any]:
    """Without run ids and wall-clock times."""
    kept = [{name: value for name, value in one.items() if name not in ("event_id", "ts", "run_id")} for one in events]
    for one in kept:
        one.get("error", {}).pop("at", None)
    return kept


def torn(journal: Path) -> Path:
    """A journal after a kill: without the last third of its records, cut inside a record."""
    (segment,) = journal.glob("*.journal")
    data = segment.read_bytes()
    segment.write_bytes(data[: 2 * len(data) // 3])
    return journal


def test_a_journal_changes_nothing_and_replays(ring: Path, journal: Path, pendula: Pendula) -> None:
    plain = read_json(pendula("credit", "run", ring, *RUN))
    again = read_json(pendula("credit", "run", ring, *RUN, "--journal", journal.with_name("second")))

    report = read_json(pendula("replay", journal, "--json"))

    assert again == plain
    assert (report["scheduler"], report["commands"], report["verified"]) == ("credit", 12, True)
    assert report["digest"] == read_json(pendula("replay", journal.with_name("second"), "--json"))["digest"]


def test_a_journal_is_never_overwritten(ring: Path, journal: Path, pendula: Pendula) -> None:
    before = {path.name: path.read_bytes() for path in journal.iterdir()}

    output = error(pendula("credit", "run", ring, *RUN, "--journal", journal, "--out", journal.with_name("out")))

    assert output["code"] == "journal_exists"
    assert {path.name: path.read_bytes() for path in journal.iterdir()} == before
    assert not journal.with_name("out").exists()


def test_a_killed_run_resumes_to_the_same_end(ring: Path, journal: Path, pendula: Pendula) -> None:
    whole = read_json(pendula("credit", "run", ring, *RUN, "--out", journal.with_name("whole")))
    cut = read_json(pendula("replay", torn(journal), "--json"))["commands"]

    resumed = read_json(
        pendula("credit", "run", ring, *RUN, "--journal", journal, "--resume", "--out", journal.with_name("o"))
    )

    assert 0 < cut < 12
    assert resumed == whole
    assert normalised(lines(journal.with_name("o"))) == normalised(lines(journal.with_name("whole")))
    assert read_json(pendula("replay", journal, "--json"))["commands"] == 12


def test_a_finished_run_can_be_extended(ring: Path, journal: Path, pendula: Pendula) -> None:
    longer = ("--ticks", "20", *RUN[2:])

    resumed = read_json(pendula("credit", "run", ring, *longer, "--journal", journal, "--resume"))

    assert resumed == read_json(pendula("credit", "run", ring, *longer))


def test_resume_rewrites_its_own_artifacts_and_no_others(ring: Path, journal: Path, pendula: Pendula) -> None:
    out = journal.with_name("out")
    again = ("credit", "run", ring, *RUN, "--journal", journal, "--resume", "--out", out)
    first = read_json(pendula(*again))

    assert read_json(pendula(*again)) == first
    (out / "status.json").write_text('{"run_id": "run_other"}', encoding="utf-8")
    assert error(pendula(*again))["code"] == "artifacts_exist"


def test_resume_refuses_another_run(ring: Path, journal: Path, pendula: Pendula) -> None:
    other = ("credit", "run", ring, "--ticks", "12", "--seed", "4", *OFTEN, "--json", "--journal", journal, "--resume")

    output = error(pendula(*other))

    assert (output["code"], output["details"]["path"]) == ("other_run", "$.run_id")
    fewer = ("credit", "run", ring, "--ticks", "5", *RUN[2:], "--journal", journal, "--resume")
    assert pendula(*fewer).code == 2
    assert pendula("credit", "run", ring, *RUN, "--journal", journal.with_name("none"), "--resume").code == 3


@pytest.mark.req("SIM-STO-1")
@pytest.mark.req("SIM-TEST-18")
def test_out_writes_every_artifact(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    output = read_json(pendula("credit", "run", ring, *RUN, "--out", tmp_path / "out"))

    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    status, summary, last = (
        json.loads((tmp_path / "out" / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("status", "summary", "last_tick")
    )
    documents = ("last_tick.json", "ledger.json", "repeat.json", "scenario.json", "status.json", "summary.json")
    assert names == ["bundle.zip", "events.ndjson", *documents]
    assert (status["seed"], status["state"], status["tick_index"]) == (3, "stopped", 12)
    assert status["settings"]["SIMULATOR_CLEARING_EVERY_N_TICKS"] == "4"
    assert {name: summary[name] for name in ("counters", "digests", "metrics")} == {
        name: output[name] for name in ("counters", "digests", "metrics")
    }
    assert (last["tick_index"], last["sim_time_ms"], last["digests"]) == (11, 11000, output["digests"])


@pytest.mark.req("SIM-TEST-6")
def test_two_equal_runs_write_equal_events(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    for name in ("one", "two"):
        pendula("credit", "run", ring, *RUN, "--out", tmp_path / name)

    assert normalised(lines(tmp_path / "one")) == normalised(lines(tmp_path / "two"))
    assert len(lines(tmp_path / "one")) == 225


def test_out_refuses_a_directory_with_artifacts(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    run = ("credit", "run", ring, *RUN, "--out", tmp_path / "out")
    read_json(pendula(*run))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    output = error(pendula(*run, "--journal", tmp_path / "journal"))

    assert output["code"] == "artifacts_exist"
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert not (tmp_path / "journal").exists()


def test_fork_reports_what_another_policy_changes(journal: Path, pendula: Pendula) -> None:
    fork = ("credit", "fork", journal, "--tick", "6", "--set", "clearing_enabled=off")

    output = read_json(pendula(*fork, "--json"))
    ended = pendula(*fork)

    assert (output["tick"], output["ticks"]) == (6, 6)
    assert output["settings"] == {"CLEARING_ENABLED": ["on", "off"]}
    assert output["first_difference"] == {"ledger": 8, "plan": 9}
    assert [row["tick"] for row in output["original"]["clearing"]] == [8]
    assert output["fork"]["clearing"] == []
    assert output["difference"]["cleared"]["calls"] == -1
    assert output["difference"]["counters"]["committed_total"] < 0
    assert (ended.code, ended.err) == (0, "")
    assert "Forked before tick 6, 6 ticks each: the ledgers differ from tick 8 on." in ended.out


def test_the_original_branch_is_the_run_itself(ring: Path, journal: Path, pendula: Pendula) -> None:
    whole = read_json(pendula("credit", "run", ring, *RUN))

    output = read_json(pendula("credit", "fork", journal, "--tick", "5", "--cap", "1", "--json"))

    assert {name: output["original"][name] for name in ("counters", "digests", "metrics")} == {
        name: whole[name] for name in ("counters", "digests", "metrics")
    }


def test_a_fork_may_continue_beyond_the_journal(journal: Path, pendula: Pendula) -> None:
    fork = ("credit", "fork", journal, "--tick", "12", "--policy", "adaptive")

    assert pendula(*fork).code == 2
    assert read_json(pendula(*fork, "--ticks", "3", "--json"))["ticks"] == 3


def test_a_fork_with_the_same_settings_differs_in_nothing(journal: Path, pendula: Pendula) -> None:
    output = read_json(pendula("credit", "fork", journal, "--tick", "6", "--policy", "static", "--json"))

    assert output["first_difference"] == {"ledger": None, "plan": None}
    assert output["original"] == output["fork"]
    assert "the ledgers are identical" in pendula("credit", "fork", journal, "--tick", "6", "--policy", "static").out


@pytest.mark.parametrize(
    ("arguments", "code", "about"),
    [
        (("--tick", "6"), 2, "Both runs would be identical"),
        (("--policy", "static"), 2, "Missing option '--tick'"),
        (("--tick", "-1", "--cap", "1"), 2, "'--tick'"),
        (("--tick", "6", "--cap", "lots"), 2, "SIMULATOR_REAL_AMOUNT_CAP"),
        (("--tick", "6", "--ticks", "0", "--cap", "1"), 2, "'--ticks'"),
        (("--tick", "13", "--cap", "1"), 1, "(unknown_tick)"),
        (("--tick", "6", "--set", "tick_ms_base=5"), 1, "The length of a tick cannot change"),
    ],
)
def test_an_invalid_fork_is_refused(
    arguments: tuple[str, ...], code: int, about: str, journal: Path, pendula: Pendula
) -> None:
    ended = pendula("credit", "fork", journal, *arguments)

    assert (ended.code, ended.out) == (code, "")
    assert about in ended.err


@pytest.mark.parametrize("command", [("fork", "--tick", "1", "--cap", "1"), ("why",)])
def test_only_journals_of_runs_are_read(command: tuple[str, ...], tmp_path: Path, pendula: Pendula) -> None:
    FileJournal.create(RealDisk(tmp_path / "tally"), scheduler="tally", decisions=1, time_unit="s", config={}).close()

    assert (
        error(pendula("credit", command[0], tmp_path / "tally", *command[1:], "--json"))["code"] == "no_credit_journal"
    )
    assert pendula("credit", command[0], tmp_path / "none", *command[1:]).code == 3
    assert pendula("credit", command[0], write_file(tmp_path / "file"), *command[1:]).code == 3


def test_why_lists_the_routes_of_a_payment(journal: Path, pendula: Pendula) -> None:
    ask = ("credit", "why", journal, "--from", "ann", "--to", "cleo", "--equivalent", "unit", "--amount", "15")

    output = read_json(pendula(*ask, "--tick", "0", "--json"))

    assert output["tick"] == 0
    assert output["reason"]["code"] == "payable"
    assert output["reason"]["facts"]["routes"] == [{"amount": "15.00", "path": ["ann", "ben", "cleo"]}]
    assert "15.00 over ann → ben → cleo" in pendula(*ask, "--tick", "0").out


def test_why_names_the_bottleneck(journal: Path, pendula: Pendula) -> None:
    ask = ("credit", "why", journal, "--from", "ann", "--to", "ben", "--equivalent", "UNIT", "--amount", "21")

    output = read_json(pendula(*ask, "--tick", "0", "--json"))

    assert output["reason"]["code"] == "ROUTING_NO_CAPACITY"
    assert output["reason"]["because"][0]["code"] == "bottleneck"
    assert "before tick 0: " in pendula(*ask, "--tick", "0").out


def test_why_explains_clearing_and_the_run(journal: Path, pendula: Pendula) -> None:
    clearing = read_json(pendula("credit", "why", journal, "--equivalent", "UNIT", "--json"))
    run = read_json(pendula("credit", "why", journal, "--json"))

    assert (clearing["reason"]["code"], clearing["reason"]["facts"]["every_n_ticks"]) == ("static_cadence", 4)
    assert (run["tick"], run["reason"]["code"]) == (12, "run_running")


@pytest.mark.parametrize(
    ("changes", "code", "about"),
    [
        ({"--from": "anne"}, 1, "There is no participant 'anne' (did you mean ann?)"),
        ({"--equivalent": "EUR"}, 1, "There is no equivalent 'EUR'; there are UNIT"),
        ({"--amount": "lots"}, 1, "'lots' is not a decimal number"),
        ({"--to": "ann"}, 1, "between two participants"),
        ({"--amount": None}, 2, "missing: --amount"),
        ({"--tick": "99"}, 1, "(unknown_tick)"),
    ],
)
def test_an_invalid_question_is_refused(
    changes: dict[str, str | None], code: int, about: str, journal: Path, pendula: Pendula
) -> None:
    options = {"--from": "ann", "--to": "ben", "--equivalent": "UNIT", "--amount": "1", **changes}

    ended = pendula(
        "credit", "why", journal, *(part for pair in options.items() if pair[1] is not None for part in pair)
    )

    assert (ended.code, ended.out) == (code, "")
    assert about in ended.err


def test_a_killed_process_loses_no_acknowledged_tick(
    tmp_path: Path, pendula: Pendula, python: Callable[..., Finished]
) -> None:
    path = write_file(tmp_path / "ring.json", RING)
    code = """
import os, signal, sys
from pendula.credit.runs.artifacts import Artifacts
plain = Artifacts.write
def write(self, events):
    plain(self, events)
    if events[-1].tick_index == 7:
        print(events[-1].digests["ledger"], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
Artifacts.write = write
from pendula.cli import main
main()
"""
    places = ("--journal", str(tmp_path / "journal"), "--out", str(tmp_path / "out"))

    killed = python(code, "credit", "run", str(path), *RUN, *places)
    resumed = read_json(pendula("credit", "run", path, *RUN, *places, "--resume"))

    heard = killed.out.strip()
    assert (killed.code, len(heard)) == (-9, 64)
    assert (
        read_json(
            pendula("credit", "fork", tmp_path / "journal", "--tick", "7", "--cap", "1", "--ticks", "1", "--json")
        )["original"]["digests"]["ledger"]
        == heard
    )
    assert resumed == read_json(pendula("credit", "run", path, *RUN))
    assert json.loads((tmp_path / "out" / "status.json").read_text(encoding="utf-8"))["state"] == "stopped"
