"""The output directory of a run: status, last tick, every event, a summary, and an archive of all files.

    status.json     the configuration with seed and effective settings, and the status
    last_tick.json  the last tick: its counts, measured values and digests
    events.ndjson   every event and note, a JSON object a line, in order
    summary.json    the result
    scenario.json   the scenario
    repeat.json     everything else needed to repeat the run, and its digests
    ledger.json     debts and lines at the end
    bundle.zip      all of them; the same files give the same bytes. `pendula credit run bundle.zip` repeats the run

JSON files are replaced atomically. A thread writes lines from a bounded queue; a faster producer blocks, so no line is
lost. `clock` gives wall-clock times in microseconds, which have no influence on the run. A directory with artifacts is
refused, except that a run resumed from its journal replaces its own.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from queue import Empty, Full, SimpleQueue
from shutil import copyfileobj
from threading import Thread
from types import TracebackType
from typing import Any, Self
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import msgspec
from msgspec import Struct

from pendula.credit.commands import Commands, Config, Tick
from pendula.credit.engine import Run
from pendula.credit.events import Event, RunStatus, Ticked, TxFailed
from pendula.credit.money import text
from pendula.credit.runs.headless import Headless, Result, RunPlan, RunRefused, Watch
from pendula.credit.settings import setting_texts
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.disk import Disk, RealDisk, replace
from pendula.kernel.engine import Outside
from pendula.kernel.errors import InputRefused, NotCanonical
from pendula.kernel.time import format_utc

STATUS, LAST_TICK, EVENTS, SUMMARY = "status.json", "last_tick.json", "events.ndjson", "summary.json"
SCENARIO, REPEAT, LEDGER, BUNDLE = "scenario.json", "repeat.json", "ledger.json", "bundle.zip"
BUNDLED = (EVENTS, LAST_TICK, LEDGER, REPEAT, SCENARIO, STATUS, SUMMARY)
NAMES = (*BUNDLED, BUNDLE)
NOTHING: Mapping[str, Any] = {"tick_index": None, "sim_time_ms": 0}  # the last tick before the first one

LAST_TICK_EVERY_US = 500_000
LINES_WAITING = 10_000
LINES_AT_ONCE = 1_000
# The earliest date of an archive: equal files give equal bytes.
DATE = (1980, 1, 1, 0, 0, 0)

Clock = Callable[[], int]


class ArtifactsExist(InputRefused):
    """The directory already has artifacts of a run, which are never overwritten. Facts: `path`, `found`."""

    code = "artifacts_exist"


def require_free(directory: Path, own_run: str | None = None) -> None:
    """Raise `ArtifactsExist` if the directory has artifacts of another run than `own_run`; changes nothing."""
    existing = [name for name in NAMES if (directory / name).exists()]
    if existing and (own_run is None or _run_of(directory) != own_run):
        raise ArtifactsExist(
            f"The directory already has artifacts of a run: {directory / existing[0]}; choose another directory",
            path=str(directory),
            found=existing,
        )


class Artifacts:
    """The artifacts of one run: `write` its events, then `finish`.

    Without `finish`, the status is "interrupted".
    """

    def __init__(self, directory: Path, plan: RunPlan, clock: Clock, *, own_run: str | None = None) -> None:
        require_free(directory, own_run)
        self._plan, self._clock = plan, clock
        self._started = clock()
        self._sequence = 0
        self._last: Ticked | None = None
        self._last_written = 0
        self._finished = False
        self._disk = RealDisk(directory)
        _remove_own(self._disk)
        self._status("running", {})
        self._lines = Lines(self._disk, EVENTS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if not self._finished:
                # A failing disk must not hide the exception that stopped the run.
                with suppress(OSError):
                    self._lines.close()
                    self._tick_file()
                    self._status("stopped", {"stop_reason": "interrupted"})
        finally:
            self._disk.close()

    def write(self, events: Iterable[Event]) -> None:
        """Write events in order; raises the `OSError` that stopped the writing of lines."""
        now = self._clock()
        ts = moment(now)
        for event in events:
            match event:
                case Ticked():
                    self._last = event
                    if self._plan.config.settings.emit_tick_events:
                        self._put(tick_form(event), ts)
                case RunStatus():
                    pass
                case _:
                    self._put(_form(event, ts), ts)
        if self._last is not None and now - self._last_written >= LAST_TICK_EVERY_US:
            self._last_written = now
            self._tick_file()

    def _put(self, form: bytes, ts: str) -> None:
        self._sequence += 1
        self._lines.put(event_json(event_id(self._plan.config.run_id, self._sequence), ts, form))

    def finish(self, run: Run, result: Result) -> None:
        """Sync all lines and write the final files and the archive; an active run counts as stopped."""
        self._lines.close()
        status = run.status()
        facts: dict[str, Any] = msgspec.to_builtins(status, builtin_types=(Decimal,))
        if status.last_error is not None:
            facts["last_error"]["message"] = status.last_error.message
        state = "stopped" if facts["state"] in ("running", "paused") else facts["state"]
        repeat: dict[str, Json] = {"ticks": result.ticks, "digests": {**result.digests}}
        summary = {**msgspec.structs.asdict(result), "state": state}
        final = {STATUS: self._description(state, facts), SUMMARY: summary}
        write_final(self._disk, self._last, repeat_files(run, decode(encode(run.config)), repeat) | final)
        self._finished = True

    def _tick_file(self) -> None:
        write_json(self._disk, LAST_TICK, self._last or NOTHING)

    def _status(self, state: str, facts: dict[str, Any]) -> None:
        write_json(self._disk, STATUS, self._description(state, facts))

    def _description(self, state: str, facts: dict[str, Any]) -> dict[str, Any]:
        config = self._plan.config
        form: dict[str, Any] = {
            "scenario_id": self._plan.scenario.id,
            "run_id": config.run_id,
            "mode": config.mode,
            "engine": config.engine,
            "seed": config.seed,
            "seed_from": self._plan.seed_from,
            "intensity_percent": config.intensity_percent,
            "lenient": config.lenient,
            "settings": setting_texts(config.settings),
            "started_at": moment(self._started),
            "stopped_at": None if state == "running" else moment(self._clock()),
        }
        facts.pop("type", None)
        return {**form, **facts, "state": state}


def event_id(run_id: str, seq: int) -> str:
    return f"evt_{run_id}_{seq:06}"


def event_json(name: str, ts: str, body: bytes) -> bytes:
    """The JSON of an event with its id and its time, which come first; the rest is canonical."""
    return b'{"event_id":"%b","ts":"%b",%b' % (name.encode(), ts.encode(), body[1:])


def write_json(disk: RealDisk, name: str, value: object) -> None:
    """Replace a file; raises `OSError`."""
    replace(disk, name, msgspec.json.format(encode(value), indent=2) + b"\n")


def write_final(disk: RealDisk, last: Ticked | None, files: Mapping[str, Any]) -> None:
    """Write the last tick, these files, and the archive of all; the lines are complete. Raises `OSError`."""
    for name, value in {LAST_TICK: last or NOTHING, **files}.items():
        write_json(disk, name, value)
    bundle(disk)


def repeat_files(run: Run, config: Any, facts: Mapping[str, Json]) -> dict[str, Json]:
    """The files needed to repeat a run, by name."""
    rest = {key: value for key, value in config.items() if key != "scenario"}
    return {
        REPEAT: {**facts, "decisions": run.decisions, "config": rest},
        SCENARIO: config["scenario"],
        LEDGER: ledger_of(run),
    }


def ledger_of(run: Run) -> dict[str, Json]:
    """By equivalent: every debt (debtor, creditor, amount), and every line (creditor, debtor, limit, status)."""
    return {
        code: {
            "debts": [[debtor, creditor, text(owed)] for debtor, creditor, owed in ledger.book.debt_rows()],
            "lines": [
                [line.creditor, line.debtor, text(line.limit), line.status.value] for line in ledger.book.lines()
            ],
        }
        for code, ledger in run.network.ledgers.items()
    }


class Lines:
    """A file of lines, written by a thread; `put` blocks while `most` lines are queued."""

    def __init__(self, disk: Disk, name: str, most: int = LINES_WAITING) -> None:
        self._disk, self._name = disk, name
        # Two plain queues instead of one with a bound: an interrupt in the middle of `Queue.put` leaves it locked.
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(most):
            self._places.put(None)
        self._trouble: OSError | None = None
        disk.create(name)
        self._thread = Thread(target=self._work, name=f"lines of {name}", daemon=True)
        self._thread.start()

    def put(self, line: bytes, *, wait: bool = True) -> None:
        """Queue one line, without its newline; raises the `OSError` that stopped the writing, then and ever after.

        Without `wait`, a full queue raises `queue.Full`.
        """
        if self._trouble is not None:
            raise self._trouble
        try:
            self._places.get(block=wait)
        except Empty:
            raise Full from None
        self._waiting.put(line)

    def close(self) -> None:
        """Wait until every line is durable; raises the `OSError` that prevented it."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()
        if self._trouble is not None:
            raise self._trouble

    def _work(self) -> None:
        going = True
        while going:
            lines = [self._waiting.get()]
            while len(lines) < LINES_AT_ONCE and not self._waiting.empty():
                lines.append(self._waiting.get())
            for _ in lines:
                self._places.put(None)
            going = lines[-1] is not None
            self._append(b"".join(line + b"\n" for line in lines if line is not None), last=not going)

    def _append(self, data: bytes, *, last: bool) -> None:
        """Append lines; after the first error only drain the queue, because a gap would be worse than a short file."""
        if self._trouble is not None:
            return
        try:
            self._disk.append(self._name, data)
            if last:
                self._disk.sync(self._name)
                self._disk.sync_dir()
        except OSError as trouble:
            self._trouble = trouble


def moment(micros: int) -> str:
    """ISO-8601 in UTC with milliseconds and `Z`."""
    whole, rest = divmod(micros, 1_000_000)
    return f"{format_utc(whole * 1_000_000)[:-1]}.{rest // 1000:03}Z"


def bundle(disk: RealDisk) -> None:
    """Write all artifacts into one archive, replaced atomically, without user names and file times."""
    draft = disk.directory / f"{BUNDLE}.tmp"
    disk.create(draft.name)
    with draft.open("r+b") as file:
        with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=6) as archive:
            for name in BUNDLED:
                # A served run with an unreadable journal has fewer files.
                if (disk.directory / name).exists():
                    _add(archive, disk.directory / name)
        file.flush()
        os.fsync(file.fileno())
    disk.rename(draft.name, BUNDLE)
    disk.sync_dir()


def _add(archive: ZipFile, path: Path) -> None:
    entry = ZipInfo(path.name, DATE)
    entry.compress_type = ZIP_DEFLATED
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    # Set before writing: required for files above 2 GiB.
    entry.file_size = path.stat().st_size
    with archive.open(entry, "w") as into, path.open("rb") as source:
        copyfileobj(source, into)


def tick_form(event: Ticked) -> bytes:
    """The debug event of a tick."""
    return encode({"type": "tick", "tick_index": event.tick_index, "sim_time_ms": event.sim_time_ms})


def _form(event: Event, ts: str) -> bytes:
    """A line without its number and time."""
    form: Any = event
    if isinstance(event, TxFailed):
        form = msgspec.to_builtins(event, builtin_types=(Decimal,))
        form["error"] |= {"message": event.message, "at": ts}
    return encode(form)


def _run_of(directory: Path) -> str | None:
    """The run of the artifacts in a directory; None if unknown."""
    try:
        status: Any = decode((directory / STATUS).read_bytes())
    except (OSError, NotCanonical):
        return None
    return status.get("run_id") if isinstance(status, dict) else None


def _remove_own(disk: RealDisk) -> None:
    """Remove artifacts, the status last: until then it names their run."""
    present = disk.list()
    drafts = [f"{name}.tmp" for name in NAMES]
    for name in (*drafts, BUNDLE, *(name for name in BUNDLED if name != STATUS), STATUS):
        if name in present:
            disk.remove(name)
    disk.sync_dir()


# Bounds the size of unpacked archives.
BYTES_MOST = 256 * 1024 * 1024


class InvalidBundle(InputRefused):
    """The file is not the bundle of a repeatable run. Facts: `path`."""

    code = "invalid_bundle"


class BundleDiffers(InputRefused):
    """The repeated run has other digests. Facts: `recorded`, `repeated`."""

    code = "bundle_differs"


class Bundle(Struct, frozen=True):
    """The configuration of a run, its `decisions`, its number of ticks and its digests.

    `commands` are those of a served run, which clients may have controlled; None means ticks only.
    """

    config: Config
    decisions: int
    ticks: int
    digests: dict[str, str]
    commands: tuple[Commands, ...] | None = None


def read_bundle(path: Path) -> Bundle:
    """Raises `InvalidBundle`, and `OSError` where the file cannot be read."""
    try:
        with ZipFile(path) as archive:
            stored, scenario = (decode(_file(archive, name)) for name in (REPEAT, SCENARIO))
        match stored:
            case {"config": dict(config), **rest}:
                return msgspec.convert({**rest, "config": {**config, "scenario": scenario}}, Bundle)
        raise KeyError("config")
    except (BadZipFile, KeyError, NotCanonical, msgspec.ValidationError) as trouble:
        message = f"{path} is not the bundle of a repeatable run: {trouble.args[0]}"
        raise InvalidBundle(message, path=str(path)) from None


def _file(archive: ZipFile, name: str) -> bytes:
    entry = archive.getinfo(name)
    if entry.file_size > BYTES_MOST:
        raise BadZipFile(f"{name} has {entry.file_size} bytes")
    with archive.open(entry) as file:
        data = file.read(BYTES_MOST + 1)
    if len(data) > BYTES_MOST:
        raise BadZipFile(f"{name} has more than {BYTES_MOST} bytes")
    return data


def headless_of(bundle: Bundle, outside: Outside | None = None) -> Headless:
    """The run of a bundle before its first tick; raises `InvalidBundle` for other `decisions`."""
    if bundle.decisions != Run.decisions:
        raise InvalidBundle(
            f"The bundle was written with decisions {bundle.decisions}, this version has decisions {Run.decisions};"
            " repeat the run with the version that wrote the bundle"
        )
    run = Run.create(decode(encode(bundle.config)))
    headless = Headless(RunPlan(run.config, run.scenario, (), "bundle"), run)
    if outside is not None:
        headless.ask(outside)
    return headless


def repeat_bundle(bundle: Bundle, outside: Outside | None = None, watch: Watch | None = None) -> Result:
    """Repeat the whole run; raises `BundleDiffers` if its digests differ."""
    headless = headless_of(bundle, outside)
    if bundle.commands is None:
        headless.step(bundle.ticks, watch)
    for command in bundle.commands or ():
        # Commands refused in the original run are refused again.
        with suppress(RunRefused):
            outcome = headless.do(command)
            if watch is not None and isinstance(command, Tick):
                watch(outcome.events)
    result = headless.result()
    if result.digests != bundle.digests:
        message = "The repeated run has other digests: it had manual commands or other external answers"
        raise BundleDiffers(message, recorded=bundle.digests, repeated=result.digests)
    return result
