"""Runs the tests of a checkout, part by part, and prints the seconds of each beside its budget.

    ./test              the default tests
    ./test --quick      lint and the tests of the changed folders
    ./test --campaign   random histories, fault runs and kills that `./test` leaves out
    ./test --long       all of these and the cases that take hours
    ./test --coverage   the default tests, and the share of lines that they execute

Runs after `scripts/setup test`, in the environment it made. A part that cannot run here is listed in the last lines;
with PENDULA_STRICT=1 it is a failure.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".pendula"
NOTED = STATE / "not-run"
# Tests write and sync thousands of small files. In memory this takes no time, and a killed process loses as little.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 8 << 30
COVERAGE = STATE / "coverage"
# A part is ended after ten times its budget, so that a hanging test is reported.
LIMIT_FACTOR = 10
SHORTEST_LIMIT = 900
LONG_TEST_SECONDS = 4 * 3600
STACKS_SECONDS = 5
INTERRUPT_SECONDS = 20


class Mode(StrEnum):
    """Selects the tests to run; the value is the option of `./test` and of pytest."""

    NORMAL = ""
    QUICK = "--quick"
    CAMPAIGN = "--campaign"
    LONG = "--long"


@dataclass(frozen=True)
class Part:
    """Folders of tests, and the seconds they may take on two cores."""

    name: str
    budget: int
    folders: tuple[str, ...] = ()
    workers: int = 2
    # The commands of a scheduler are tested with the scheduler.
    more: tuple[str, ...] = ()
    campaign: int = 0  # seconds that its campaign may take; 0: it has none

    def seconds(self, mode: Mode) -> int:
        return self.campaign if mode is Mode.CAMPAIGN else self.budget

    def limit(self, mode: Mode) -> int | None:
        """Seconds after which the part is ended; None for the long cases, which have limits of their own."""
        return None if mode is Mode.LONG else max(SHORTEST_LIMIT, LIMIT_FACTOR * self.seconds(mode))

    def present(self) -> list[str]:
        """The folders and files with tests in this checkout."""
        folders = [f"tests/{folder}" for folder in self.folders if any((ROOT / "tests" / folder).rglob("test_*.py"))]
        return [*folders, *(name for name in self.more if folders and (ROOT / name).exists())]

    def elsewhere(self) -> list[str]:
        """Tests in these folders that other parts run."""
        mine = [f"tests/{folder}/" for folder in self.folders]
        others = [name for part in PARTS if part is not self for name in part.more]
        return [f"--ignore={name}" for name in others if name.startswith(tuple(mine))]


PARTS = (
    Part("lint", 25),
    Part("kernel", 18, ("kernel", "documents", "testing", "architecture"), campaign=10),
    Part("actions", 12, ("actions",), campaign=10),
    Part("playback", 16, ("playback",), campaign=15),
    Part("jobs", 40, ("jobs", "governance"), campaign=80),
    Part("credit", 28, ("credit",), more=("tests/cli/commands/credit",), campaign=140),
    Part("fleet", 60, ("fleet",), more=("tests/cli/commands/fleet",), campaign=330),
    Part("server", 45, ("server", "cli", "docs", "wheel", "setup"), campaign=60),
    Part("specifications", 16, ("specifications",), campaign=40),
    # One browser at a time: two would wait for each other's frames on a small machine.
    Part("browser", 40, ("browser",), workers=0, campaign=60),
)
MUTATIONS = ROOT / "tests/mutations/run.py"


@dataclass(frozen=True)
class Machine:
    """Findings of the set-up: the environment for the tests, node, and parts that cannot run here with the reason."""

    environ: dict[str, str]
    node: str | None
    not_run: dict[str, str]

    @classmethod
    def found(cls) -> "Machine":
        findings = json.loads((STATE / "found.json").read_text())
        environ = {**os.environ, **findings["environ"]}
        # Otherwise each program that tests start compiles all its imports, which takes seconds.
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        if findings["chromium"]:
            environ["CHROMIUM"] = findings["chromium"]
        return cls(environ, findings["node"], findings["not_run"])

    def run(self, *words: str, limit: int | None = None) -> bool:
        """Whether the command succeeds within `limit` seconds; otherwise its process group is ended."""
        process = subprocess.Popen(words, cwd=ROOT, env=self.environ, process_group=0)
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            print(f"TIMEOUT: ended after {limit} s; the stacks of its threads follow", flush=True)
            return False
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(INTERRUPT_SECONDS)
            raise
        finally:
            end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group; pytest and its workers print the stacks of their threads first (SIGABRT)."""
    if process.returncode is None:
        for number in (signal.SIGABRT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STACKS_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Result:
    part: Part
    seconds: float
    passed: bool


def run_part(part: Part, machine: Machine, mode: Mode, workers: int | None) -> bool:
    if part.name == "lint":
        return lint(machine)
    if part.name == "mutations":
        return machine.run(sys.executable, str(MUTATIONS))
    at_a_time = part.workers if workers is None else min(workers, part.workers)
    # Neighbours share fixtures and caches: they stay on one worker as long as the other one has tests of its own.
    options = ["-n", str(at_a_time), "--not-run", str(NOTED), "--dist", "worksteal"]
    if "COVERAGE_FILE" in machine.environ:
        options += ["--cov=pendula", "--cov-append", "--cov-report="]
    if mode in (Mode.CAMPAIGN, Mode.LONG):
        options.append(mode.value)
    if mode is Mode.LONG:
        options += ["-o", f"faulthandler_timeout={LONG_TEST_SECONDS}"]
    command = [sys.executable, "-m", "pytest", *options, *part.elsewhere(), *part.present()]
    with nullcontext(machine) if mode is Mode.LONG else writing_to_memory(machine) as writing:
        return writing.run(*command, limit=part.limit(mode))


@contextmanager
def writing_to_memory(machine: Machine) -> Iterator[Machine]:
    """The machine with its temporary files in memory, where there is enough of it and programs may run from there."""
    try:
        status = os.statvfs(MEMORY)
    except OSError:
        status = None
    if (
        status is None
        or "TMPDIR" in machine.environ
        or not os.access(MEMORY, os.W_OK)
        or status.f_flag & os.ST_NOEXEC
        or status.f_bavail * status.f_frsize < MEMORY_BYTES
    ):
        yield machine
        return
    with TemporaryDirectory(prefix="pendula-tests-", dir=MEMORY, ignore_cleanup_errors=True) as folder:
        yield replace(machine, environ={**machine.environ, "TMPDIR": folder})


# ---- lint ------------------------------------------------------------------------------------------------------------


def lint_tools(machine: Machine) -> list[tuple[str, list[str], Path]]:
    """Name, command and folder of each tool; the slow ones first, since two run at a time."""
    bin_folder = Path(sys.executable).parent
    own = [("mypy",), ("lint-imports",), ("deptry", "src"), ("ruff", "check"), ("ruff", "format", "--check")]
    tools = [(" ".join(words), [str(bin_folder / words[0]), *words[1:]], ROOT) for words in own]
    if (ROOT / "scripts/traceability.py").is_file():
        tools.append(("traceability", [sys.executable, "scripts/traceability.py", "--check"], ROOT))
        tools.append(("specifications", [sys.executable, "scripts/specifications.py", "--check"], ROOT))
    if (ROOT / "mkdocs.yml").is_file():
        tools.append(("mkdocs", [str(ROOT / "scripts/docs")], ROOT))
    if machine.node:
        web = ROOT / "web"
        tools[1:1] = [
            ("vitest", [machine.node, "node_modules/.bin/vitest", "run"], web),
            ("tsc", [machine.node, "node_modules/.bin/tsc", "--noEmit"], web),
        ]
        tools.append(("biome", [machine.node, "node_modules/.bin/biome", "check", "--error-on-warnings"], web))
    return tools


def lint(machine: Machine) -> bool:
    """Run all tools, even after a failure; the output of each stays together."""

    def run(tool: tuple[str, list[str], Path]) -> bool:
        name, words, folder = tool
        started = time.monotonic()
        done = subprocess.run(
            words, cwd=folder, env=machine.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        verdict = "failed" if done.returncode else "passed"
        output = done.stdout.decode(errors="replace").rstrip() + "\n" if done.returncode else ""
        print(f"{output}{name}: {verdict} in {time.monotonic() - started:.1f} s", flush=True)
        return done.returncode == 0

    with ThreadPoolExecutor(2) as pool:
        return all(list(pool.map(run, lint_tools(machine))))


# ---- parts -----------------------------------------------------------------------------------------------------------


def changed_files() -> list[str]:
    """Files that differ from the upstream branch, committed or not; without one, from the commit before."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else []

    base = git("merge-base", "HEAD", "@{upstream}") or git("rev-parse", "HEAD~1") or ["HEAD"]
    return sorted({*git("diff", "--name-only", base[0]), *git("ls-files", "--others", "--exclude-standard")})


def changed_parts(parts: Sequence[Part], changed: Sequence[str]) -> list[Part]:
    """Lint, and of each part the folders whose source or tests changed."""
    touched = set()
    for name in changed:
        match Path(name).parts:
            case ("src", "pendula", "demo", *_):
                # A demo is tested as the server shows it.
                touched.add("server")
            case ("src", "pendula", folder, *_) | ("tests", folder, _, *_):
                touched.add(folder)
            case ("docs" | "examples" | "README.md", *_):
                touched.add("docs")
            case ("scripts" | "test" | "run" | ".ci", *_):
                touched.add("setup")
    quick = [replace(part, folders=tuple(name for name in part.folders if name in touched)) for part in parts]
    return [part for part in quick if part.name == "lint" or part.folders]


def chosen_parts(names: Sequence[str], mode: Mode) -> list[Part]:
    """The named parts, or all that have tests in this mode."""
    parts = [part for part in PARTS if part.name == "lint" or part.present()]
    if mode is Mode.CAMPAIGN:
        parts = [part for part in parts if part.campaign]
    if mode is Mode.QUICK:
        parts = changed_parts([part for part in parts if part.name != "browser"], changed_files())
    if mode is Mode.LONG and MUTATIONS.is_file():
        parts.append(Part("mutations", 0))
    unknown = [name for name in names if name not in {part.name for part in parts}]
    if unknown:
        known = ", ".join(part.name for part in parts)
        print(f"./test: no part {', '.join(unknown)} here; the parts are {known}", file=sys.stderr)
        sys.exit(2)
    return [part for part in parts if not names or part.name in names]


def why_not(part: Part, machine: Machine) -> str | None:
    """The reason why the whole part cannot run on this machine."""
    if part.name != "browser":
        return None
    return machine.not_run.get("browser") or ("the page is not built" if "page" in machine.not_run else None)


def report(results: Sequence[Result], not_run: Sequence[str], mode: Mode) -> None:
    print(f"\n{'part':<15}{'seconds':>9}{'budget':>8}")
    for result in results:
        verdict = "passed" if result.passed else "FAILED"
        print(f"{result.part.name:<15}{result.seconds:>9.1f}{result.part.seconds(mode) or '-':>8}  {verdict}")
    total, budget = sum(result.seconds for result in results), sum(result.part.seconds(mode) for result in results)
    print(f"{'total':<15}{total:>9.1f}{budget:>8}")
    for result in results:
        seconds = result.part.seconds(mode)
        if result.seconds > seconds and mode is not Mode.LONG:
            slower = "--long" if mode is Mode.CAMPAIGN else "--campaign"
            print(
                f"OVER BUDGET: {result.part.name} took {result.seconds:.0f} s of {seconds} s "
                f"(on a quiet machine with two cores); move cases to ./test {slower}"
            )
    for line in not_run:
        print(line)
    sys.stdout.flush()


def report_coverage() -> None:
    """Print executed lines by package, of this process and its workers, without programs that tests start."""
    output = COVERAGE.with_suffix(".json")
    command = [sys.executable, "-m", "coverage", "json", f"--data-file={COVERAGE}", "-q", "-o", str(output)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        return
    lines: dict[str, list[int]] = {}
    for name, file in json.loads(output.read_text())["files"].items():
        covered = lines.setdefault(Path(name).parts[2].removesuffix(".py"), [0, 0])
        covered[0] += file["summary"]["covered_lines"]
        covered[1] += file["summary"]["num_statements"]
    lines["total"] = [sum(covered[index] for covered in lines.values()) for index in (0, 1)]
    print(f"\n{'coverage':<15}{'lines':>9}{'share':>8}")
    for package, (executed, statements) in lines.items():
        print(f"{package:<15}{statements:>9}{100 * executed / max(1, statements):>7.1f}%")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./test", description="Sets the checkout up, then runs its tests.")
    parser.add_argument("part", nargs="*", help=", ".join(part.name for part in PARTS))
    modes = parser.add_mutually_exclusive_group()
    for mode, what in (
        (Mode.QUICK, "lint and the tests of the changed folders"),
        (Mode.CAMPAIGN, "only the campaigns, which the normal run leaves out"),
        (Mode.LONG, "all tests, the long cases and the mutations"),
    ):
        modes.add_argument(mode.value, dest="mode", action="store_const", const=mode, help=what)
    parser.set_defaults(mode=Mode.LONG if os.environ.get("PENDULA_LONG") == "1" else Mode.NORMAL)
    parser.add_argument(
        "--workers", type=int, metavar="N", help="number of processes, at most two; 0 runs all tests in one"
    )
    parser.add_argument("--coverage", action="store_true", help="print the share of lines that the tests execute")
    options = parser.parse_args()
    mode = options.mode
    machine = Machine.found()
    if options.coverage:
        COVERAGE.unlink(missing_ok=True)
        machine.environ["COVERAGE_FILE"] = str(COVERAGE)
    NOTED.unlink(missing_ok=True)
    not_run = {name: reason for name, reason in machine.not_run.items() if name != "browser"}
    results = []
    for part in chosen_parts(options.part, mode):
        reason = why_not(part, machine)
        if reason:
            not_run[part.name] = reason
            continue
        print(f"\n==> {part.name}", flush=True)
        started = time.monotonic()
        passed = run_part(part, machine, mode, options.workers)
        results.append(Result(part, time.monotonic() - started, passed))
    lines = [f"NOT RUN: {name} ({reason})" for name, reason in not_run.items()]
    # Tests that noticed while running that something is missing, such as a database, have written it there.
    lines += sorted(set(NOTED.read_text().splitlines())) if NOTED.is_file() else []
    report(results, lines, mode)
    if options.coverage:
        report_coverage()
    strict = os.environ.get("PENDULA_STRICT") == "1"
    return 0 if all(result.passed for result in results) and not (strict and lines) else 1


if __name__ == "__main__":
    # A part runs in a process group of its own, which ends with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
