"""`pendula credit sweep` and `compare`: output, files, interrupts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pendula import spreading
from pendula.credit.settings import BY_VARIABLE, Settings, change_settings
from pendula.credit.studies.sweeps import sweep
from pendula.documents import read_file
from tests.cli.commands.credit.villages import OFTEN, error, read_json, write_file
from tests.cli.conftest import Pendula, quiet_environment

CADENCES = ("--vary", "clearing_every_n_ticks=2,4", "--ticks", "8", "--seeds", "2")


@pytest.fixture(autouse=True)
def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BY_VARIABLE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    return write_file(tmp_path / "ring.json")


def test_a_sweep_prints_the_columns_of_the_library(ring: Path, pendula: Pendula) -> None:
    output = read_json(pendula("credit", "sweep", ring, *CADENCES, "--cap", "7", "--workers", "1", "--json"))

    cap = change_settings(Settings(), {"amount_cap": "7"})
    expected = sweep(read_file(ring), {"clearing_every_n_ticks": ["2", "4"]}, (1, 2), 8, settings=cap)
    assert output["runs"] == 4
    assert output["columns"]["values"] == expected.values
    assert output["columns"]["order"] == list(expected.values)
    assert output["columns"]["kinds"] == expected.kinds
    assert output["digest"] == expected.digest


def test_a_sweep_writes_its_rows_exactly(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    table = tmp_path / "runs.csv"

    ended = pendula("credit", "sweep", ring, *CADENCES, "--workers", "1", "--csv", table)

    assert ended.code == 0
    expected = sweep(read_file(ring), {"clearing_every_n_ticks": ["2", "4"]}, (1, 2), 8)
    assert table.read_bytes() == expected.csv().encode()
    assert b"\r" not in table.read_bytes()


def test_a_sweep_shows_medians_in_one_table(ring: Path, pendula: Pendula) -> None:
    ended = pendula("credit", "sweep", ring, *CADENCES, "--workers", "1")

    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines()]
    assert "Medians over seeds" in ended.out
    assert [row[:2] for row in lines if row and row[0].isdigit()] == [["2", "2"], ["4", "2"], ["4", "runs,"]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--vary", "polcy=static"), "did you mean policy?"),
        (("--vary", "policy"), "--vary 'policy' is not of the form NAME=VALUE"),
        (("--vary", "cap=1,2", "--vary", "amount_cap=3"), "gives the setting amount_cap twice"),
        (("--vary", "cap=1,1.00"), "are the same settings"),
        (("--vary", "cap=1,x"), "With amount_cap=x"),
        (("--csv", "no-such-folder/runs.csv"), "The folder no-such-folder for runs.csv does not exist"),
        (("--skip", "1"), "at least one must be counted"),
    ],
)
def test_an_invalid_sweep_is_wrong_usage(arguments: tuple[str, ...], says: str, ring: Path, pendula: Pendula) -> None:
    ended = pendula("credit", "sweep", ring, "--ticks", "1", *arguments, "--json")

    assert ended.code == 2
    assert says in error(ended)["message"]


def test_a_missing_extra_is_one_sentence(ring: Path, pendula: Pendula, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "find_spec", lambda _: None)

    ended = pendula("credit", "sweep", ring, "--ticks", "1", "--dask", "tcp://127.0.0.1:1")

    assert ended.code == 3
    assert ended.err == (
        'pendula: A Dask cluster needs distributed; install with: pip install "pendula[dask]" (missing_extra)\n'
    )


def test_the_default_comparison_is_static_against_adaptive(ring: Path, pendula: Pendula) -> None:
    output = read_json(
        pendula("credit", "compare", ring, "--seeds", "2", "--ticks", "9", "--skip", "2", "--workers", "1", "--json")
    )

    assert output["settings"] == {"SIMULATOR_CLEARING_POLICY": ["static", "adaptive"]}
    assert output["names"] == ["policy=static", "policy=adaptive"]
    assert output["seeds"] == [1, 2]
    assert output["columns"]["values"]["side"] == ["policy=static"] * 2 + ["policy=adaptive"] * 2
    assert output["verdict"]["passed"] is False
    assert "panels" not in output


def test_a_comparison_changes_the_scenario_of_both_sides(ring: Path, pendula: Pendula) -> None:
    words = ("--ticks", "6", "--seeds", "1", "--workers", "1", "--json")
    sides = ("--a", "cap=30", "--b", "cap=20", "--skip", "0")
    change = ("--set", "trustlines[*].limit*0.1", "--set", "actions_per_tick_max=7")

    compared = read_json(pendula("credit", "compare", ring, *sides, *change, *words))
    swept = read_json(pendula("credit", "sweep", ring, "--vary", "cap=30,20", *change, *words))
    refused = pendula("credit", "compare", ring, *sides, "--set", "trustlines[from=zoe].limit=5", *words)

    assert compared["columns"]["values"]["ledger_digest"] == swept["columns"]["values"]["ledger_digest"]
    assert error(refused)["code"] == "invalid_variation"


def test_a_comparison_takes_two_files_and_draws(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    often = write_file(tmp_path / "often.json", {"clearing_every_n_ticks": 2})
    rarely = write_file(tmp_path / "rarely.yaml", "SIMULATOR_CLEARING_EVERY_N_TICKS: 6\n")
    picture, table = tmp_path / "both.svg", tmp_path / "both.csv"

    ended = pendula(
        *("credit", "compare", ring, often, rarely, "--b", "routing_max_hops=3", "--cap", "5", "--seeds", "2"),
        *("--ticks", "8", "--skip", "0", "--workers", "1", "--svg", picture, "--csv", table),
    )

    assert (ended.code, ended.err) == (0, "")
    assert "A: often" in ended.out
    assert "B: rarely, routing_max_hops=3" in ended.out
    assert "ROUTING_MAX_HOPS" in ended.out
    assert "B is not shown to be as good as A" in ended.out
    assert ElementTree.fromstring(picture.read_text(encoding="utf-8")).get("viewBox") is not None
    assert table.read_text(encoding="utf-8").count("\n") == 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--a", "policy=static", "--b", "policy=static"), "nothing to compare"),
        (("--a", "cap=x"), "SIMULATOR_REAL_AMOUNT_CAP is 'x'"),
        (("only-one.json",), "Side B has no file"),
    ],
)
def test_an_invalid_comparison_is_wrong_usage(
    arguments: tuple[str, ...], says: str, ring: Path, pendula: Pendula
) -> None:
    ended = pendula("credit", "compare", ring, *arguments, "--json")

    assert ended.code == 2
    assert says in error(ended)["message"]


def test_a_settings_file_with_faults_is_refused_with_their_places(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    faulty = write_file(tmp_path / "faulty.json", '{\n "clearing_polcy": "static"}')

    ended = pendula("credit", "compare", ring, faulty, faulty)

    assert ended.code == 1
    assert f"{faulty}:2:" in ended.err


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are looked up in /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
@pytest.mark.usefixtures("interruptible")
def test_ending_a_sweep_ends_its_workers(ending: signal.Signals, ring: Path) -> None:
    command = [sys.executable, "-m", "pendula", "credit", "sweep", str(ring), "--ticks", "1000000", "--workers", "2"]
    with subprocess.Popen(
        [*command, *OFTEN], env=quiet_environment(), stderr=subprocess.PIPE, start_new_session=True
    ) as program:
        try:
            workers = _until(lambda: _children(program.pid), lambda output: len(output) >= 2)
            if ending == signal.SIGINT:
                os.killpg(program.pid, ending)  # like a terminal: to the whole process group
            else:
                program.send_signal(ending)
            _, output = program.communicate(timeout=300)
        finally:
            program.kill()

    assert program.returncode == (130 if ending == signal.SIGINT else -ending)
    if ending == signal.SIGINT:
        assert output == b"pendula: Interrupted: nothing was written (interrupted)\n"
    assert _until(lambda: [pid for pid in workers if _lives(pid)], lambda left: not left) == []


def _children(pid: int) -> list[int]:
    """Its worker processes, without the resource tracker."""
    output = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                output.append(int(child))
    return output


def _lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def _until(look: Callable[[], list[int]], enough: Callable[[list[int]], bool]) -> list[int]:
    """Poll `look` until `enough` holds, for at most a minute; returns the last result."""
    last = time.monotonic() + 300
    while not enough(output := look()) and time.monotonic() < last:
        time.sleep(0.01)
    return output


def test_a_sweep_varies_the_scenario_and_draws_its_result(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    chart = tmp_path / "limits.svg"
    words = ("--ticks", "6", "--seeds", "1", "--workers", "1", "--chart", chart, "--json")
    limits = ("--vary", "trustlines[*].limit*=0.5,1", "--set", "participants.*.limit*2")

    output = read_json(pendula("credit", "sweep", ring, *limits, *words))

    assert output["columns"]["values"]["trustlines[*].limit*"] == ["0.5", "1"]
    assert len(set(output["columns"]["values"]["ledger_digest"])) == 2
    assert ElementTree.fromstring(chart.read_text(encoding="utf-8")).tag.endswith("svg")
    assert pendula("credit", "sweep", ring, "--vary", "trustlines[*]=1", *words).code == 2


def test_a_comparison_reports_an_adaptive_side_that_was_never_active(ring: Path, pendula: Pendula) -> None:
    ended = pendula("credit", "compare", ring, "--seeds", "2", "--ticks", "9", "--skip", "2", "--workers", "1")

    line = "B was never active: adaptive equals the static cadence below adaptive_no_capacity_high (0.60)."
    assert line in ended.out.splitlines()
