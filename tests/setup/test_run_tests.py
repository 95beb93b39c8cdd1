"""What `./test` says and how it ends, seen on small checkouts whose tests are written here."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts import run_tests
from tests.setup.conftest import ROOT

PASSING = "def test_it() -> None:\n    assert True is not False\n"
FAILING = "def test_it() -> None:\n    assert 1 == 2\n"
EXIT = "faulthandler_exit_on_timeout"
NO_DATABASE = "import pytest\n\ndef test_it() -> None:\n    pytest.skip('NOT RUN: postgres (no such server)')\n"
HANGING = "import threading\n\ndef test_hang() -> None:\n    threading.Event().wait()\n\n" + PASSING
# Its own child waits, too, and ignores what would end it politely.
TWO_THAT_WAIT = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pipe = os.open(sys.argv[1], os.O_WRONLY)
if os.fork():
    os.write(pipe, b"started")
time.sleep(3600)
"""
MARKED = "\nimport pytest\n\n@pytest.mark.{0}\ndef test_{0}() -> None:\n    assert 1 == 2\n"
NORMAL, CAMPAIGN, LONG = run_tests.Mode.NORMAL, run_tests.Mode.CAMPAIGN, run_tests.Mode.LONG


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / ".pendula").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "scripts/run_tests.py", tmp_path / "scripts")
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['campaign', 'long']\n")
    find(tmp_path)
    return tmp_path


def find(checkout: Path, **not_run: str) -> None:
    """Leaves what set-up leaves for the tests."""
    found = {"node": None, "chromium": "/opt/chrome", "environ": {"HOME": "/somewhere"}, "not_run": not_run}
    (checkout / ".pendula/found.json").write_text(json.dumps(found))


def machines(*nodes: str | None) -> list[run_tests.Machine]:
    return [run_tests.Machine({}, node, {}) for node in nodes]


def write(checkout: Path, folder: str, text: str) -> None:
    (checkout / "tests" / folder).mkdir()
    (checkout / "tests" / folder / f"test_{folder}.py").write_text(text)


def run(checkout: Path, *words: str, workers: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PENDULA_", "PYTEST_"))}
    # These tests need no plugin but one, and loading them all takes longer than the tests.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    # And one process, unless a test asks for more: two more Pythons for each part take longer still.
    command = [sys.executable, str(checkout / "scripts/run_tests.py"), "--workers", str(workers), *words]
    return subprocess.run(command, env={**kept, **plugins, **environ}, capture_output=True, text=True, check=False)


def test_programs_that_tests_start_find_compiled_modules(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "STATE", checkout / ".pendula")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    assert "PYTHONDONTWRITEBYTECODE" not in run_tests.Machine.found().environ


def test_each_part_has_its_seconds_beside_its_budget_and_pytest_stays_visible(checkout: Path) -> None:
    write(checkout, "kernel", PASSING)
    write(checkout, "fleet", FAILING)

    ended = run(checkout, "kernel", "fleet")

    assert ended.returncode == 1
    assert ended.stdout.count("== 1 passed in ") == 1
    assert ended.stdout.count("== 1 failed in ") == 1
    table = [line.split() for line in ended.stdout.splitlines()[-4:]]
    assert [(row[0], row[2:]) for row in table] == [
        ("part", ["budget"]),
        ("kernel", ["18", "passed"]),
        ("fleet", ["60", "FAILED"]),
        ("total", ["78"]),
    ]


def test_contributing_names_every_part_with_its_budget() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (\d+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)

    assert [(name, int(seconds)) for name, seconds in rows] == [(one.name, one.budget) for one in run_tests.PARTS]


def test_parts_that_cannot_run_are_listed_and_fail_only_when_strict(checkout: Path) -> None:
    write(checkout, "browser", FAILING)
    write(checkout, "jobs", NO_DATABASE)
    find(checkout, browser="no Chromium")

    lenient, strict = (run(checkout, "browser", "jobs", PENDULA_STRICT=value) for value in "01")

    said = ["NOT RUN: browser (no Chromium)", "NOT RUN: postgres (no such server)"]
    assert (lenient.returncode, lenient.stdout.splitlines()[-2:]) == (0, said)
    assert (strict.returncode, strict.stdout.splitlines()[-2:]) == (1, said)


def test_without_the_page_neither_it_nor_the_browser_runs(checkout: Path) -> None:
    write(checkout, "browser", FAILING)
    find(checkout, page="no Node")

    ended = run(checkout, "browser")

    assert ended.stdout.splitlines()[-2:] == ["NOT RUN: page (no Node)", "NOT RUN: browser (the page is not built)"]


def test_campaigns_and_long_cases_run_only_when_asked_for(checkout: Path) -> None:
    write(checkout, "jobs", PASSING + "".join(MARKED.format(mark) for mark in ("campaign", "long")))

    normal, campaign, long = (run(checkout, "jobs", *words) for words in ((), ("--campaign",), ("--long",)))

    assert (normal.returncode, "1 passed, 2 deselected" in normal.stdout) == (0, True)
    assert (campaign.returncode, "1 failed, 2 deselected" in campaign.stdout) == (1, True)
    assert (long.returncode, "2 failed, 1 passed" in long.stdout) == (1, True)


def test_every_part_with_campaigns_has_seconds_for_them() -> None:
    for part in run_tests.PARTS:
        files = [path for folder in part.folders for path in (ROOT / "tests" / folder).rglob("test_*.py")]
        files += [path for name in part.more for path in (ROOT / name).rglob("test_*.py")]
        marked = [path.name for path in files if re.search(r"mark\.campaign\b|campaign_after\(", path.read_text())]

        assert bool(marked) == bool(part.campaign), f"{part.name}: {marked}"


def test_a_quick_run_takes_lint_and_the_folders_that_changed() -> None:
    changed = ["src/pendula/kernel/rng.py", "tests/cli/test_output.py", "docs/how-to/x.md", "tests/conftest.py"]

    chosen = run_tests.changed_parts(run_tests.PARTS, changed)

    assert [(part.name, part.folders) for part in chosen] == [
        ("lint", ()),
        ("kernel", ("kernel",)),
        ("server", ("cli", "docs")),
    ]


@pytest.mark.parametrize(("asked", "given"), [(None, "2"), (0, "0"), (1, "1"), (9, "2")])
def test_a_part_runs_in_as_many_processes_as_asked_for_and_never_more_than_its_own(
    asked: int | None, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[str, ...]] = []

    def run(_: run_tests.Machine, *words: str, limit: int | None) -> bool:
        called.append(words)
        return True

    monkeypatch.setattr(run_tests.Machine, "run", run)

    run_tests.run_part(run_tests.Part("kernel", 60), machines(None)[0], NORMAL, asked)

    ((*_, flag, count),) = [words[: words.index("--not-run")] for words in called]
    assert (flag, count) == ("-n", given)


def test_tests_get_the_findings_of_set_up(checkout: Path) -> None:
    told = "import os\n\ndef test_it() -> None:\n    assert [os.environ[x] for x in ('CHROMIUM', 'HOME')] == {}\n"
    write(checkout, "kernel", told.format(["/opt/chrome", "/somewhere"]))

    assert run(checkout, "kernel").returncode == 0


def test_an_unknown_part_is_named_with_the_known_ones(checkout: Path) -> None:
    write(checkout, "kernel", PASSING)

    ended = run(checkout, "fleet")

    assert (ended.returncode, ended.stderr) == (2, "./test: no part fleet here; the parts are lint, kernel\n")


def test_a_part_over_its_budget_is_warned_about(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [run_tests.Part("kernel", 60), run_tests.Part("jobs", 120)]

    run_tests.report([run_tests.Result(part, 61.0, True) for part in parts], ["NOT RUN: browser (…)"], NORMAL)

    assert capsys.readouterr().out.splitlines()[-2:] == [
        "OVER BUDGET: kernel took 61 s of 60 s (on a quiet machine with two cores); move cases to ./test --campaign",
        "NOT RUN: browser (…)",
    ]


def test_the_page_is_linted_where_there_is_a_node() -> None:
    with_node, without = ([name for name, _, _ in run_tests.lint_tools(machine)] for machine in machines("/node", None))

    assert [name for name in with_node if name not in without] == ["vitest", "tsc", "biome"]


def test_the_budgets_add_up_to_at_most_five_minutes() -> None:
    assert sum(part.budget for part in run_tests.PARTS) <= 300


def test_the_budgets_of_a_campaign_add_up_to_at_most_fifteen_minutes() -> None:
    assert sum(part.campaign for part in run_tests.PARTS) <= 900


def test_a_hanging_test_ends_with_its_name_and_stack(checkout: Path) -> None:
    ini = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert ini["faulthandler_timeout"] > 0
    with (checkout / "pyproject.toml").open("a") as file:
        file.write(f"faulthandler_timeout = 2\nfaulthandler_exit_on_timeout = {json.dumps(ini[EXIT])}\n")
    write(checkout, "kernel", HANGING)

    ended = run(checkout, "kernel", workers=2)

    assert ended.returncode == 1
    assert "test_kernel.py::test_hang" in ended.stdout
    assert "1 failed, 1 passed" in ended.stdout
    assert "in test_hang" in ended.stderr


@pytest.mark.campaign
def test_a_part_that_takes_too_long_ends_with_all_its_processes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    program = [sys.executable, "-X", "faulthandler", "-c", TWO_THAT_WAIT, str(pipe)]

    passed = machines(None)[0].run(*program, limit=10)

    captured = capfd.readouterr()
    assert not passed
    assert captured.out == "TIMEOUT: ended after 10 s; the stacks of its threads follow\n"
    assert "most recent call first" in captured.err
    os.set_blocking(reading, True)
    assert os.read(reading, 100) == b"started"
    assert os.read(reading, 100) == b"", "a process that holds the other end of the pipe is left"
    os.close(reading)


def test_an_interrupt_reaches_the_tests_of_a_part(checkout: Path, interruptible: None) -> None:
    signals = "import os, signal\n\ndef test_it() -> None:\n    os.kill(int(os.environ['RUN_TESTS']), signal.SIGINT)\n"
    waiting = "    import threading\n    threading.Event().wait()\n"
    program = "import os\n" + (ROOT / "scripts/run_tests.py").read_text()
    (checkout / "scripts/run_tests.py").write_text(
        program.replace("ROOT = ", "os.environ['RUN_TESTS'] = str(os.getpid())\nROOT = ", 1)
    )
    write(checkout, "kernel", signals + waiting)

    ended = run(checkout, "kernel")

    assert ended.returncode == 130
    assert "KeyboardInterrupt" in ended.stdout


@pytest.mark.parametrize(("budget", "mode", "limit"), [(31, NORMAL, 900), (290, NORMAL, 2900), (290, LONG, None)])
def test_the_limit_of_a_part_is_ten_times_its_budget(budget: int, mode: run_tests.Mode, limit: int | None) -> None:
    assert run_tests.Part("fleet", budget).limit(mode) == limit
    assert run_tests.Part("fleet", 1, campaign=300).limit(CAMPAIGN) == 3000


@pytest.mark.parametrize(
    ("flags", "free", "moved"),
    [
        (0, run_tests.MEMORY_BYTES, True),
        (os.ST_NOEXEC, run_tests.MEMORY_BYTES, False),
        (0, run_tests.MEMORY_BYTES - 1, False),
    ],
)
def test_temporary_files_are_written_to_memory_where_there_is_enough(
    flags: int, free: int, moved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = SimpleNamespace(f_flag=flags, f_bavail=free, f_frsize=1)
    monkeypatch.setattr(run_tests, "MEMORY", tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda _: status)

    with run_tests.writing_to_memory(machines(None)[0]) as machine:
        folder = machine.environ.get("TMPDIR")

        assert (folder is not None) is moved
        assert [str(path) for path in tmp_path.iterdir()] == ([folder] if moved else [])

    assert list(tmp_path.iterdir()) == []


def test_the_folder_that_the_caller_chose_for_temporary_files_stays() -> None:
    chosen = run_tests.Machine({"TMPDIR": "/var/tmp"}, None, {})

    with run_tests.writing_to_memory(chosen) as machine:
        assert machine == chosen
