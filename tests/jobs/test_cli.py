"""`pendula jobs` on a store and on a server: one document on stdout, an exit code, one line per error."""

import io
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct
from typer.testing import CliRunner

from pendula.cli.commands.jobs import look, target
from pendula.cli.program import run
from pendula.jobs import Scheduler
from pendula.jobs.store.file import opening
from pendula.jobs.store.sqlite import SqliteStore, migrations
from pendula.jobs.upkeep.verification import check
from pendula.jobs.worker.heartbeats import Tally
from pendula.kernel.canonical import decode, encode
from pendula.kernel.time import format_utc
from pendula.server import monitoring, serving
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.security.identity import TokenStore
from pendula.server.settings import LogFormat, LogLevel, Settings
from tests.jobs.store.test_sqlite import holding
from tests.jobs.stores import NOON, Clock
from tests.server.living import LiveServer, until
from tests.waiting import line_of

DAY = 86_400


class Finished(Struct, frozen=True):
    """Exit code and output of one run of the program."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one document on stdout; its bytes are canonical."""
        data = self.out.removesuffix("\n").encode()
        document = decode(data)
        assert encode(document) == data
        return document

    @property
    def error(self) -> Any:
        """The one object on stderr."""
        assert self.err.count("\n") == 1
        return json.loads(self.err)["error"]


Program = Callable[..., Finished]


class StoppedClock(Clock):
    """A clock that does not advance on reading, so that store and server see the same times."""

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    still = StoppedClock()
    monkeypatch.setattr(target, "_user", lambda: "ada")
    monkeypatch.setattr(target, "SelfCheckingClock", lambda: SimpleNamespace(now=still))
    monkeypatch.setattr("pendula.jobs.scheduler.hold_clock", lambda *_: None)  # the system clock would not match it
    return still


@pytest.fixture
def pendula(monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program in this process, without the settings of the user who runs the tests."""
    for name in [name for name in os.environ if name.startswith("PENDULA_")]:
        monkeypatch.delenv(name)

    def call(*arguments: object) -> Finished:
        with CliRunner().isolation() as (out, err, _):
            code = run([str(argument) for argument in arguments])
            sys.stdout.flush()
            sys.stderr.flush()
            return Finished(code, out.getvalue().decode(), err.getvalue().decode())

    return call


@pytest.fixture
def jobs(pendula: Program) -> Program:
    return lambda *arguments: pendula("jobs", *arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store without jobs."""
    Scheduler.open(tmp_path / "jobs.db").close()
    return tmp_path / "jobs.db"


@pytest.fixture
def db(file: Path) -> tuple[str, str]:
    return "--db", f"sqlite:///{file}"


@pytest.fixture
def served(
    file: Path, clock: StoppedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: Program
) -> Iterator[Any]:
    """The store behind a server; the caller is admin."""
    handlers = list(logging.getLogger().handlers)
    monitoring.configure(LogFormat.JSON, LogLevel.INFO, io.StringIO())
    _, secret = TokenStore(tmp_path / "data").new("ops", "admin")
    monkeypatch.setenv("PENDULA_TOKEN", secret)
    with LiveServer(
        Settings(port=0, data=str(tmp_path / "data")), (jobs_scheduler(database=file, clock=clock),)
    ) as server:
        yield "--url", server.url
    logging.getLogger().handlers[:] = handlers


def damage(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


# Store and server


def story(jobs: Program, at: tuple[str, str], db: tuple[str, str], clock: StoppedClock, folder: Path) -> list[Any]:
    """The output of every call of the command line."""
    outputs: list[Any] = []

    def call(*arguments: object, on: tuple[str, str] = at) -> Any:
        ended = jobs(*arguments, *on, "--json")
        document = ended.document if ended.out else None
        outputs.append((arguments[0], ended.code, _plain(document), _plain(ended.error) if ended.code else None))
        return document

    (folder / "batch.yaml").write_text(
        "- {object_type: memory, object_id: b_1, action: decay, max_attempts: 1}\n"
        "- {object_type: tree, action: decay}\n"
    )
    first = call("enqueue", "memory", "mem_1", "verify", "--key", "k-1", "--correlation-id", "c")["job"]["job_id"]
    call("enqueue", "memory", "mem_1", "verify", "--key", "k-1")
    call("enqueue", "memory", "mem_2", "verify", "--key", "k-1")
    call("enqueue", "cognition", "cg_1", "revalidate", "--in", 3600, "--priority", "high", "--max-attempts", 5)
    call("enqueue", "tree", "t", "water", "--run-at", "soon")
    call("enqueue", "--batch", folder / "batch.yaml")
    call("enqueue", "--batch", folder / "batch.yaml", "--atomic")
    page = call("list", "--limit", 2)
    call("list", "--limit", 2, "--cursor", page["next_cursor"])
    call("list", "--status", "queued", "--object-type", "memory", "--action", "verify", "--queue", "default")
    call("list", "--limit", 0)
    held = call("pull", "--worker", "w", "--limit", 2, "--lease-sec", 30, "--action", "verify", "--action", "decay")[
        "jobs"
    ]
    token = {job["job_id"]: ("--worker", "w", "--lease-token", job["lease_token"]) for job in held}
    [poison] = [job["job_id"] for job in held if job["job_id"] != first]
    call("renew", first, *token[first], "--lease-sec", 60)
    call("renew", first, "--worker", "other", "--lease-token", "x")
    call("release", first, *token[first])
    call("fail", poison, *token[poison], "--error", "no evidence")
    call("list", "--status", "dead_letter")
    call("requeue", first)
    call("requeue", poison, "--reason", "again", "--run-at", clock.text(60))
    call("cancel", poison, "--reason", "enough")
    [held] = call("pull", "--worker", "w", "--now", clock.text(), "--object-type", "memory", "--queue", "default")[
        "jobs"
    ]
    call("fail", first, "--lease-token", held["lease_token"], "--error", "x", "--retry-delay-sec", "0.5")
    clock.pass_by(10)
    [held] = call("pull", "--worker", "w", "--wait-ms", 0)["jobs"]
    call("ack", first, "--worker", "other")
    done = ("--next-action-at", clock.text(DAY), "--next-action", "decay", "--outcome", "noop")
    call("ack", first, "--lease-token", held["lease_token"], *done, "--audit-event-id", "aud_x")
    call("ack", first, "--lease-token", held["lease_token"])
    call("show", first)
    call("show", "job_nope")
    call("history", first)
    call("history", "a/b")
    call("audit", "--limit", 3)
    call("audit", "--job", first, "--event-type", "scheduler_job", "--after", "aud_000000000002")
    call("audit", "--object-type", "memory", "--object-id", "mem_1")
    call("stats")
    call("stats", "--window-sec", 5)
    call("why", first)
    call("why", "job_nope")
    call("workers")
    call("alerts")
    call("alerts", "--limit", 1)
    call("alerts", "--cursor", "x")
    call("plans", "put", "nightly", "30 2 * * *", "memory", "mem_1", "decay", "--zone", "Europe/Berlin")
    call("plans", "put", "nightly", "30 2", "memory", "mem_1", "decay", "--zone", "Europe/Berln")
    call("plans", "pause", "nightly", "--reason", "moving")
    call("plans", "list")
    call("plans", "resume", "nightly")
    call("plans", "run-now", "nightly")
    call("plans", "run-now", "unknown")
    call("plans", "remove", "nightly")
    governed_story(call)
    call("free-key", "k-1", "--reason", "x")
    call("audit", "verify", on=db)
    clock.pass_by(31 * DAY)
    call("retain", on=db)
    call("enqueue", "memory", "mem_1", "verify", "--key", "k-1")
    call("free-key", "k-1", "--reason", "once more")
    call("free-key", "k-1", "--reason", "once more")
    call("enqueue", "memory", "mem_1", "verify", "--key", "k-1")
    call("check", on=db)
    return outputs


def governed_story(call: Callable[..., Any]) -> None:
    """Every call on governed objects; a server uses the name of the token, which is ops."""
    about = ("memory", "a/b c")
    call("objects", "create", *about, "--evidence", "ev_1", "--source", "doc_1", "--risk", "high", "--budget", 3)
    call("objects", "create", *about)
    call("objects", "create", "memory", "x", "--members", '{"half_life": "soon", "impact_weight": 0.5}')
    call(
        "objects", "create", "memory", "y", "--members", '{"half_life": "P3D"}', "--expires-at", "2027-01-01T00:00:00Z"
    )
    call("objects", "evidence", *about, "ev_2", "ev_3", "--reason", "found")
    call("objects", "evidence", *about, "ev_2", "--at-version", 1)
    for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
        call("gates", "set", gate, "pass", "--reason", "calm")
    call("gates", "set", "risk_gate", "maybe", "--reason", "?")
    call("gates", "set", "risk_gate", "limit", "--reason", "careful", "--scope", "memory:y")
    call("gates", "list", "--scope", "memory:y")
    call("objects", "decide", *about, "verify", "suspicious", "--reason", "odd", "--evidence", "ev_4")
    call("objects", "decide", *about, "verify", "forged", "--reason", "a copy", "--user", "ops")
    call("objects", "decide", *about, "reinstate-check", "new_evidence", "--reason", "no")
    call("rollbacks", "--limit", 5)
    call("objects", "rollback-finished", *about, "--reason", "taken back")
    call("objects", "refill", *about, "--reason", "worth it", "--budget", 4, "--user", "ops")
    call("objects", "amend", *about, "--reason", "known at last", "--half-life", "P2D", "--user", "ops")
    call("objects", "show", *about)
    call("objects", "why", *about)
    call("objects", "why", "memory", "unknown")
    call("objects", "list", "memory", "--place", "candidate", "--limit", 1)
    call("objects", "list", "house")
    call("stats")
    call("past", "aud_000000000003")
    call("past", "aud_000000000000")


WHO_AND_WHERE = ("set_by", "override_by", "actor", "metadata", "file", "paused_by")


def _plain(value: Any) -> Any:
    """The output without what differs between runs: tokens, actors and origins."""
    match value:
        case dict():
            plain = {name: _plain(item) for name, item in value.items() if name not in WHO_AND_WHERE}
            return {**plain, "lease_token": "…"} if plain.get("lease_token") else plain
        case list():
            return [_plain(item) for item in value]
        case str():
            return value.replace("requeued by ops", "requeued by ada")
        case _:
            return value


@pytest.mark.req("JOB-API-14")
@pytest.mark.req("JOB-API-5")
def test_a_store_and_a_server_give_the_same_output(
    jobs: Program, db: tuple[str, str], served: tuple[str, str], clock: StoppedClock, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    near_db = ("--db", f"sqlite:///{other / 'jobs.db'}")
    assert jobs("init", *near_db).code == 0

    remote = story(jobs, served, db, clock, tmp_path)
    clock.now = NOON
    local = story(jobs, near_db, near_db, clock, tmp_path)

    assert local == remote
    codes = [code for _, code, _, _ in local]
    assert (codes.count(1), set(codes)) == (25, {0, 1})
    assert local[-1] == ("check", 0, {"findings": [], "sound": True}, None)


def test_permanent_failures_are_not_retried_and_an_object_can_have_no_next_time(
    jobs: Program, db: tuple[str, str], file: Path
) -> None:
    first, second = (
        jobs("enqueue", "memory", name, "verify", *db, "--json").document["job"]["job_id"] for name in ("a", "b")
    )
    jobs("pull", "--worker", "w", *db)

    failed = jobs("fail", first, "--error", "x", "--permanent", *db)
    with Scheduler.open(file) as scheduler:
        soon = format_utc(scheduler.calls.clock() + 60_000_000)
        scheduler.ack(second, result="succeeded", next_action_at=soon)
    follow = jobs("list", "--object-id", "b", "--status", "queued", *db, "--json").document["jobs"][0]["job_id"]
    jobs("pull", "--worker", "w", "--now", soon, *db)
    acked = jobs("ack", follow, "--no-next-action", *db, "--json").document

    assert failed.out == f"{first} is failed after 1 of 3 attempts.\n"
    assert (acked["object"]["next_action_at"], acked["followup_job_id"]) == (None, None)


def test_the_trail_names_the_user_of_the_terminal(jobs: Program, db: tuple[str, str], clock: StoppedClock) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)

    [event] = jobs("audit", *db, "--json").document["events"]

    assert event["actor"] == {"type": "user", "id": "ada"}


# init, check, backup


@pytest.mark.req("JOB-STO-8")
def test_init_creates_a_store_once(jobs: Program, tmp_path: Path) -> None:
    at = ("--db", f"sqlite:///{tmp_path / 'new.db'}", "--json")

    first, second = jobs("init", *at), jobs("init", *at)

    assert first.document == {
        "created": True,
        "durability": "full",
        "file": str(tmp_path / "new.db"),
        "settings": {"journal_mode": "wal", "synchronous": 2},
        "version": len(migrations()),
    }
    assert second.document == {**first.document, "created": False}
    assert (first.code, second.code) == (0, 0)


def test_an_address_with_three_slashes_is_relative(
    jobs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert jobs("init", "--db", "sqlite:///here.db").out == f"Created here.db (schema version {len(migrations())}).\n"
    assert (tmp_path / "here.db").exists()


@pytest.mark.req("JOB-STO-8")
def test_a_store_of_a_newer_version_is_rejected(jobs: Program, db: tuple[str, str], file: Path) -> None:
    damage(file, "PRAGMA user_version = 99")

    for name in ("init", "list", "check"):
        ended = jobs(name, *db)
        assert (ended.code, ended.out) == (3, "")
        assert ended.err == (
            f"pendula: jobs.db has schema version 99, and this Pendula knows up to {len(migrations())}; "
            "open it with a newer Pendula (newer_store)\n"
        )


@pytest.mark.req("JOB-STO-12")
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE jobs SET attempt = 9", "attempt_out_of_range"),
        ("UPDATE jobs SET worker_id = 'w'", "lease_without_running"),
        ("UPDATE counts SET n = n + 1", "counts_differ"),
        ("UPDATE jobs SET run_at = run_at + 1", "trail_differs"),
        ("DELETE FROM jobs", "job_lost"),
        ("UPDATE audit SET body = replace(body, 'enqueued', 'forged')", "trail_broken"),
        ("DELETE FROM audit", "job_without_trail"),
    ],
)
def test_check_reports_its_findings(jobs: Program, db: tuple[str, str], file: Path, statement: str, code: str) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    damage(file, statement)

    ended, printed = jobs("check", *db, "--json"), jobs("check", *db)

    assert ended.code == printed.code == 1
    assert code in {finding["code"] for finding in ended.document["findings"]}
    assert ended.document["sound"] is False
    assert ended.error["code"] == "store_faulty"
    assert code[:12] in printed.out


@pytest.mark.req("JOB-STO-12")
def test_check_confirms_an_intact_store(jobs: Program, db: tuple[str, str], file: Path) -> None:
    assert jobs("check", *db) == Finished(0, f"{file} is sound.\n", "")


@pytest.mark.req("JOB-STO-12")
def test_a_backup_is_a_complete_store(jobs: Program, db: tuple[str, str], tmp_path: Path) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)

    ended = jobs("backup", tmp_path / "copy.db", *db, "--json")

    copy = ("--db", f"sqlite:///{tmp_path / 'copy.db'}")
    assert (ended.code, ended.err) == (0, "")
    assert ended.document["bytes"] == (tmp_path / "copy.db").stat().st_size
    assert jobs("list", *copy, "--json").out == jobs("list", *db, "--json").out
    assert jobs("check", *copy).code == 0
    assert not (tmp_path / "copy.db.part").exists()


@pytest.mark.req("JOB-STO-12")
def test_a_backup_during_many_writes_is_of_one_moment(
    jobs: Program, db: tuple[str, str], file: Path, tmp_path: Path
) -> None:
    scheduler, writer = Scheduler.open(file), Scheduler.open(file)
    many = [{"object_type": "memory", "object_id": f"m_{n}", "action": "verify"} for n in range(1000)]
    scheduler.enqueue_batch(many)
    steps = []

    def write(done: int, pages: int) -> None:
        steps.append(pages)
        assert len(steps) < 100
        writer.enqueue(object_type="memory", object_id=f"late_{len(steps)}", action="verify")

    scheduler.calls.store.backup(tmp_path / "copy.db", write)  # type: ignore[attr-defined]
    for opened_store in (scheduler, writer):
        opened_store.close()
    with Scheduler.open(tmp_path / "copy.db") as copy:
        found = check(copy.calls.store)
        number = copy.metrics().jobs.queued

    assert (found, number) == ([], 1000)


def test_a_backup_replaces_no_other_file(jobs: Program, db: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")

    ended = jobs("backup", tmp_path / "there", *db)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.endswith("already exists; name another file (backup_exists)\n")
    assert (tmp_path / "there").read_text() == "mine"


def test_a_backup_to_a_missing_folder_is_an_environment_error(
    jobs: Program, db: tuple[str, str], tmp_path: Path
) -> None:
    ended = jobs("backup", tmp_path / "no" / "copy.db", *db)

    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1)
    assert f"A copy cannot be written to {tmp_path / 'no' / 'copy.db'}" in ended.err


@pytest.mark.parametrize("end", ["-wal", "-shm", ".turn"])
def test_a_backup_cannot_take_the_name_of_a_file_of_the_store(
    jobs: Program, db: tuple[str, str], file: Path, end: str
) -> None:
    place = file.with_name(file.name + end)
    place.unlink(missing_ok=True)

    ended = jobs("backup", place, *db)

    assert ended.code == 1
    assert ended.err.endswith("belongs to the store itself; name another file (backup_exists)\n")
    assert jobs("check", *db).code == 0


def test_retain_prints_what_it_deleted(jobs: Program, db: tuple[str, str], clock: StoppedClock) -> None:
    job = jobs("enqueue", "memory", "mem_1", "verify", *db, "--json").document["job"]["job_id"]
    jobs("cancel", job, *db)
    clock.pass_by(31 * DAY)

    ended = jobs("retain", *db, "--json")

    assert ended.document == {
        "before": clock.text(-30 * DAY),
        "removed": {"failed": 1, "succeeded": 0},
        "steps": 1,
        "total": 1,
    }
    assert jobs("list", *db).out == "No jobs match.\n"
    assert jobs("check", *db).code == 0


def test_retention_comes_from_the_settings_and_dead_letters_need_an_option(
    jobs: Program, db: tuple[str, str], clock: StoppedClock, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text("retention_days = 1\ndefault_max_attempts = 1\n")
    config = ("--config", tmp_path / "s.toml")
    jobs("enqueue", "memory", "mem_1", "verify", *db, *config)
    job = jobs("pull", "--worker", "w", *db, "--json").document["jobs"][0]["job_id"]
    jobs("fail", job, "--error", "x", *db)
    clock.pass_by(2 * DAY)

    remaining = jobs("retain", *db, *config, "--json").document["total"]
    young = jobs("retain", "--dead-letters", *db, "--json").document["total"]
    removed = jobs("retain", "--dead-letters", *db, *config, "--json").document["total"]

    assert (remaining, young, removed) == (0, 0, 1)


# The trail


def test_an_intact_trail_is_verified(jobs: Program, pendula: Program, db: tuple[str, str]) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    jobs("pull", "--worker", "w", *db)

    verified, replayed = jobs("audit", "verify", *db, "--json"), pendula("replay", *db, "--json")

    assert verified.document == {"events": 2, "findings": [], "jobs": 1, "verified": True}
    assert replayed.document == {"scheduler": "jobs", **verified.document}
    assert (verified.code, replayed.code) == (0, 0)
    assert pendula("replay", *db).out == "Trail intact: 2 events, 1 job; the store matches.\n"


@pytest.mark.req("JOB-AUD-4")
@pytest.mark.req("JOB-AUD-3")
@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("UPDATE jobs SET status = 'succeeded' WHERE seq = 1", "job_000000000001"),
        ("UPDATE audit SET body = replace(body, 'mem_1', 'mem_2') WHERE n = 1", "event 1"),
        ("DELETE FROM audit WHERE n = 1", "event 2"),
    ],
)
def test_a_tampered_store_fails_its_replay(
    jobs: Program, pendula: Program, db: tuple[str, str], file: Path, statement: str, where: str
) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    jobs("enqueue", "memory", "mem_2", "verify", *db)
    damage(file, statement)

    verified, replayed = jobs("audit", "verify", *db, "--json"), pendula("replay", *db, "--json")

    assert verified.code == replayed.code == 1
    assert verified.document["findings"][0]["where"] == where
    assert replayed.document == {"scheduler": "jobs", **verified.document}
    assert (verified.error["code"], replayed.error["code"]) == ("trail_broken", "replay_differs")
    assert "does not match the store" in pendula("replay", *db).err


# Files that are not stores


def wrong_stores(folder: Path) -> dict[str, Path]:
    made = {name: folder / name for name in ("none.db", "directory", "text.db", "empty.db", "other.db", "no/where.db")}
    made["directory"].mkdir()
    made["text.db"].write_text("no database at all, but long enough to be taken for one " * 20)
    made["empty.db"].touch()
    damage(made["other.db"], "CREATE TABLE stamps (n)")
    return made


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none.db", "There is no store {0}; create it with: pendula jobs init --db sqlite:///{0}"),
        ("directory", "{0} is a directory, not a store of jobs"),
        ("text.db", "{0} is not a store of jobs"),
        ("empty.db", "{0} is not a store of jobs"),
        ("other.db", "{0} is not a store of jobs"),
    ],
)
@pytest.mark.parametrize(
    "command", [("list",), ("check",), ("enqueue", "memory", "m", "verify"), ("backup", "x.db"), ("serve",), ("stats",)]
)
def test_a_file_that_is_not_a_store_is_reported_in_one_line(
    command: tuple[str, ...], name: str, expected: str, jobs: Program, tmp_path: Path
) -> None:
    path = wrong_stores(tmp_path)[name]
    before = sorted(tmp_path.iterdir())

    ended = jobs(*command, "--db", f"sqlite:///{path}")

    also = ", or add --init" if command == ("serve",) and name == "none.db" else ""
    assert ended == Finished(3, "", f"pendula: {expected.format(path)}{also} (no_store)\n")
    assert sorted(tmp_path.iterdir()) == before


def test_init_completes_an_interrupted_init(jobs: Program, tmp_path: Path) -> None:
    path = tmp_path / "begun.db"
    damage(path, "PRAGMA journal_mode = WAL")
    assert path.stat().st_size

    made = jobs("init", "--db", f"sqlite:///{path}")

    assert (made.code, made.err) == (0, "")
    assert jobs("stats", "--db", f"sqlite:///{path}").code == 0


@pytest.mark.parametrize(
    ("name", "code"), [("directory", 3), ("text.db", 3), ("other.db", 3), ("no/where.db", 3), ("empty.db", 0)]
)
def test_init_leaves_other_files_unchanged(name: str, code: int, jobs: Program, tmp_path: Path) -> None:
    path = wrong_stores(tmp_path)[name]
    before = path.read_bytes() if path.is_file() else None

    ended = jobs("init", "--db", f"sqlite:///{path}")

    assert (ended.code, ended.err.count("\n")) == (code, 1 if code else 0)
    assert code == 0 or before is None or path.read_bytes() == before


@pytest.mark.req("JOB-STO-12")
def test_a_read_only_store_can_be_read_and_rejects_writes(
    jobs: Program, db: tuple[str, str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    # File permissions do not restrict root, who may run the tests.
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: (path != file or mode == os.R_OK) and allowed(path, mode))

    looked = [jobs(command, *db) for command in ("list", "stats", "check")]
    shown = jobs("show", "job_000000000001", *db)
    written = jobs("enqueue", "memory", "mem_2", "verify", *db)

    assert [run.code for run in (*looked, shown)] == [0, 0, 0, 0]
    assert "mem_1" in looked[0].out
    expected = f"pendula: {file} cannot be written; nothing was changed (store_read_only)\n"
    assert written == Finished(3, "", expected)


@pytest.mark.parametrize(
    ("behind", "expected"),
    [(59, ""), (3600, "3600 s ahead of this machine's clock, which was put back"), (3600, "in 7200 s at the latest")],
)
@pytest.mark.parametrize("command", ["stats", "check"])
def test_check_reports_a_store_whose_time_is_ahead_of_the_clock(
    jobs: Program, db: tuple[str, str], clock: StoppedClock, command: str, behind: int, expected: str
) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    clock.pass_by(-behind)

    ended = jobs(command, *db)

    is_faulty = command == "check" and behind > 300
    assert ended.code == int(is_faulty)
    assert ("time_ahead" in ended.out) is is_faulty
    assert expected in ended.err
    assert bool(ended.err) == bool(expected)


@pytest.mark.req("JOB-V2-7", "JOB-API-14")
def test_after_set_time_check_finds_nothing(jobs: Program, db: tuple[str, str], clock: StoppedClock) -> None:
    jobs("enqueue", "memory", "at-once", "verify", *db)
    jobs("enqueue", "memory", "named", "verify", "--run-at", clock.text(7200), *db)
    clock.pass_by(-3600)

    ended = jobs("set-time", "--reason", "host b was an hour ahead", *db)

    assert ended.code == 0
    assert "Counted from now: 1 job, 0 leases, 0 plans." in ended.out
    assert "job_000000000002" in ended.out
    assert jobs("check", *db).code == 0
    assert '"id":"ada"' in jobs("audit", "--json", "--event-type", "policy_override", *db).out
    assert jobs("set-time", *db).code == 2, "a reason is required"


def test_a_damaged_file_is_an_environment_error_not_a_defect(jobs: Program, db: tuple[str, str], file: Path) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    # Every table and index but not the schema: without it the file would not be a store.
    with closing(sqlite3.connect(file)) as connection:
        roots = [row[0] for row in connection.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 1")]
    data = bytearray(file.read_bytes())
    for page in roots:
        data[4096 * (page - 1) : 4096 * page] = b"\xff" * 4096
    file.write_bytes(data)

    for command in (("list",), ("enqueue", "memory", "m", "decay")):
        ended = jobs(*command, *db)
        assert (ended.code, ended.out) == (3, "")
        assert ended.err.endswith(("(store_unusable)\n", "(no_store)\n"))
    checked = jobs("check", "--json", *db)
    assert checked.code == 1
    sentences = [finding["sentence"] for finding in json.loads(checked.out)["findings"]]
    assert all("malformed" in sentence for sentence in sentences)
    assert {"table jobs", "table audit", "table counts"} <= {sentence.partition(":")[0] for sentence in sentences}


def test_a_damaged_table_list_is_one_finding(jobs: Program, db: tuple[str, str], file: Path) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)

    checked = jobs("check", "--json", *db)
    assert checked.code == 1
    [finding] = json.loads(checked.out)["findings"]
    assert "malformed" in finding["sentence"]


LATER = "PostgreSQL is not supported yet; store jobs in a file: --db sqlite:///jobs.db (store_not_supported)"
NO_ADDRESS = "is not the address of a store; write sqlite:///jobs.db, or sqlite:////srv/jobs.db (wrong_usage)"


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--db", "postgresql://u:secret@h/d"], 1, LATER),
        (["--db", "postgres://h/d"], 1, LATER),
        (["--db", "mysql://u:secret@h/d"], 2, f"mysql:… {NO_ADDRESS}"),
        (["--db", "sqlite:///"], 2, f"sqlite:… {NO_ADDRESS}"),
        (["--db", "sqlite:///:memory:"], 2, f"sqlite:… {NO_ADDRESS}"),
        ([], 2, "pass --db sqlite:///jobs.db or --url http://127.0.0.1:8765 (wrong_usage)"),
        (["--db", "a", "--url", "b"], 2, "pass --db for a store or --url for a server, not both (wrong_usage)"),
        (["--url", "x"], 2, "'x' is not the address of a server; write http://127.0.0.1:8765 (wrong_usage)"),
        (["--url", "x", "--config", "x"], 2, "--config is for --db; a server has its own settings (wrong_usage)"),
        (["--db", "x", "--token-file", "x"], 2, "--token-file is for --url; a store needs no token (wrong_usage)"),
        (["--db", "x", "--ca", "x"], 2, "--ca is for a --url with https (wrong_usage)"),
        (["--url", "http://h", "--ca", "x"], 2, "--ca is for a --url with https (wrong_usage)"),
    ],
)
def test_unusable_addresses_are_rejected(arguments: list[str], code: int, expected: str, jobs: Program) -> None:
    assert jobs("list", *arguments) == Finished(code, "", f"pendula: {expected}\n")


@pytest.mark.parametrize(
    "command", [("init",), ("check",), ("backup", "x"), ("retain",), ("audit", "verify"), ("serve",)]
)
def test_commands_that_need_the_store_itself_reject_a_server(command: tuple[str, ...], jobs: Program) -> None:
    ended = jobs(*command, "--url", "http://127.0.0.1:1")

    assert ended.code == 2
    assert ended.err.startswith("pendula: This command needs the store itself: pass --db")


# Wrong usage and rejections


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["enqueue"], 2, "pass TYPE ID ACTION, --body FILE or --batch FILE"),
        (["enqueue", "memory", "m", "verify", "--in", "5", "--run-at", "x"], 2, "pass --run-at or --in, not both"),
        (["enqueue", "memory", "m", "verify", "--batch", "x"], 2, "--batch takes all jobs from the file"),
        (["enqueue", "memory", "m", "verify", "--atomic"], 2, "--atomic is for --batch"),
        (["enqueue", "--batch", "no-such.yaml"], 3, "no-such.yaml: $: the file cannot be read"),
        (["enqueue", "memory", "m\udcff", "verify"], 2, "object-id is not UTF-8 text"),
        (["show", "\udcff"], 2, "job is not UTF-8 text"),
        (["pull"], 2, "pass --worker NAME, or --body FILE"),
        (["pull", "--worker", "a b"], 1, "worker_id must be 1 to 128 of letters"),
        (["ack", "job_1", "--no-next-action", "--next-action-at", "x"], 2, "pass --next-action-at or --no-next-action"),
        (["fail", "job_1", "--error", "x", "--retry-delay-sec", "soon"], 2, "retry-delay-sec: 'soon' is not a number"),
        (["fail", "job_1", "--error", "x"], 1, "no job job_1 (job_not_found)"),
        (["stats", "--watch", "--json"], 2, "--watch does not go with --json"),
        (["stats", "--count", "2"], 2, "--count is for --watch"),
        (["retain", "--days", "0"], 2, "Invalid value for '--days'"),
        (["worker"], 2, "pass --handlers package.module, or --govern"),
        (["worker", "--handlers", "no.such.module"], 2, "No module no"),
        (["worker", "--handlers", "json"], 2, "json has no handlers"),
        (["list", "--status", "lost"], 1, "status must be one of queued, running"),
        (["enqueue", "tree", "t", "water"], 1, "2 fields are invalid: object_type must be one of mem"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_with_its_exit_code(
    arguments: list[str], code: int, expected: str, jobs: Program, db: tuple[str, str]
) -> None:
    ended = jobs(*arguments, *db)

    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert expected in ended.err


def test_options_before_verify_are_not_options_of_verify(jobs: Program, db: tuple[str, str]) -> None:
    ended = jobs("audit", *db, "verify")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("pendula: put the options of verify after it")


@pytest.mark.parametrize(
    ("text", "expected"), [("{}", "at least one"), ("[]", "at least one"), ("- [", "yaml"), ("x: 1", "list")]
)
def test_an_invalid_batch_is_rejected_with_its_place(
    text: str, expected: str, jobs: Program, db: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "batch.yaml").write_text(text)

    ended = jobs("enqueue", "--batch", tmp_path / "batch.yaml", *db)

    assert ended.code == 1
    assert expected in ended.err.lower()


def test_a_large_batch_is_sent_in_parts(jobs: Program, db: tuple[str, str], tmp_path: Path) -> None:
    many = [{"object_type": "memory", "object_id": f"m_{n}", "action": "verify"} for n in range(1001)]
    (tmp_path / "batch.json").write_text(json.dumps({"jobs": many}))

    atomic = jobs("enqueue", "--batch", tmp_path / "batch.json", "--atomic", *db)
    ended = jobs("enqueue", "--batch", tmp_path / "batch.json", *db)
    again = jobs("enqueue", "--batch", tmp_path / "batch.json", *db, "--json")

    assert (atomic.code, "at most 1000 jobs" in atomic.err) == (2, True)
    assert ended.out == "1001 stored, 0 already existed, 0 rejected.\n"
    assert len(again.document["results"]) == 1001


def test_faults_of_the_settings_are_printed_line_by_line(jobs: Program, db: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('lease_sec = 0\nobject_types = ["Tree"]\n')

    ended = jobs("list", *db, "--config", file)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines()[0] == f"{file}:1:1: $.lease_sec: 0 is out of range; allowed: from 1 to 43200"
    assert len(ended.err.splitlines()) == 2


def test_vocabulary_of_the_settings_is_accepted_on_the_command_line(
    jobs: Program, db: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text("object_types: [tree]\nactions: [water]\n")

    ended = jobs("enqueue", "tree", "t_1", "water", *db, "--config", tmp_path / "s.yaml", "--json")

    assert (ended.code, ended.document["job"]["action"]) == (0, "water")


# Output for people


def test_output_for_people_has_sentences_and_tables(jobs: Program, db: tuple[str, str], clock: StoppedClock) -> None:
    assert "job_000000000001 is queued: verify memory mem_1" in jobs("enqueue", "memory", "mem_1", "verify", *db).out
    assert "already exists" in jobs("enqueue", "memory", "mem_1", "verify", *db, "--run-at", clock.text()).out
    assert "job_000000000001   queued" in jobs("list", *db).out
    pulled = jobs("pull", "--worker", "w", *db).out
    token = next(line.split()[-1] for line in pulled.splitlines() if line.startswith("lease token"))
    assert jobs("pull", "--worker", "w", *db).out == "Nothing is due.\n"
    assert "The lease of" in jobs("renew", "job_000000000001", "--worker", "w", "--lease-token", token, *db).out
    assert "is retried at" in jobs("fail", "job_000000000001", "--lease-token", token, "--error", "oh", *db).out
    clock.pass_by(120)
    jobs("pull", "--worker", "w", *db)
    assert "is succeeded." in jobs("ack", "job_000000000001", *db).out
    assert "oh" in jobs("history", "job_000000000001", *db).out
    shown = jobs("show", "job_000000000001", *db).out
    assert "last error" in shown
    assert "lease token" not in shown
    assert "aud_000000000001" in jobs("audit", *db).out
    assert "--after aud_000000000002" in jobs("audit", "--limit", 2, *db).out
    stats = jobs("stats", *db).out
    assert "success rate    100 %" in stats
    assert "retry rate      50 %" in stats


class Enough:
    """A sleep that runs callbacks and finally raises KeyboardInterrupt."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)
        self.slept: list[int] = []

    def __call__(self, seconds: int) -> None:
        self.slept.append(seconds)
        if not self._steps:
            raise KeyboardInterrupt
        self._steps.pop(0)()


def test_watch_repeats_until_it_is_interrupted(
    jobs: Program, db: tuple[str, str], file: Path, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def enqueue() -> None:
        with Scheduler.open(file) as scheduler:
            scheduler.defer("memory", "mem_1", "verify", run_at="2999-01-01T00:00:00Z")

    sleep = Enough(enqueue)
    monkeypatch.setattr(look, "sleep", sleep)

    ended = jobs("stats", "--watch", "--interval", 7, *db)

    assert (ended.code, sleep.slept) == (0, [7, 7])
    lines = ended.err.splitlines()
    assert [line.split("; ")[1].split(",")[0] for line in lines] == ["0 queued", "1 queued"]
    assert "+1" in ended.out


def test_watch_ends_after_the_given_number_of_rounds(
    jobs: Program, db: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "sleep", Enough(lambda: None, lambda: None))

    ended = jobs("stats", "--watch", "--count", 3, *db)

    assert (ended.code, len(ended.err.splitlines())) == (0, 3)


# Workers and servers

HANDLERS = """
from pendula.jobs.worker.handlers import Done, handler

@handler("memory", "verify")
def verify(context):
    return Done(outcome="noop")

@handler("memory", "decay")
def decay(context):
    raise RuntimeError("withered")
"""


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of handlers in the current directory, with a unique name."""
    name = f"upkeep_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(HANDLERS)
    monkeypatch.chdir(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.mark.req("JOB-WRK-10")
@pytest.mark.parametrize("remote", [False, True], ids=["store", "server"])
def test_a_worker_does_one_round_and_prints_its_counts(
    remote: bool, jobs: Program, db: tuple[str, str], handlers: str, request: pytest.FixtureRequest
) -> None:
    at = request.getfixturevalue("served") if remote else db
    for number, action in enumerate(["verify", "decay", "archive"]):
        jobs("enqueue", "memory", f"mem_{number}", action, *at)

    ended = jobs("worker", "--handlers", handlers, "--once", "--concurrency", 3, "--worker", "w-1", *at, "--json")

    assert ended.code == 0
    assert ended.document == {"dropped": 0, "failed": 1, "released": 0, "succeeded": 1, "taken": 2, "worker_id": "w-1"}
    statuses = {job["action"]: job["status"] for job in jobs("list", *at, "--json").document["jobs"]}
    assert statuses == {"verify": "succeeded", "decay": "queued", "archive": "queued"}
    assert jobs("check", *db).code == 0


@pytest.mark.req("JOB-WRK-10")
def test_a_worker_ends_after_the_given_number_of_jobs(jobs: Program, db: tuple[str, str], handlers: str) -> None:
    for number in range(3):
        jobs("enqueue", "memory", f"mem_{number}", "verify", *db)

    ended = jobs("worker", "--handlers", handlers, "--max-jobs", 2, "--interval", 0.05, *db)

    assert ended.code == 0
    assert "taken      2" in ended.out


def test_a_worker_on_a_store_sends_alerts_and_enqueues_recurring_jobs(
    jobs: Program, db: tuple[str, str], handlers: str, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(
        '[[recurring]]\nname = "yearly"\ncron = "@yearly"\nobject_type = "memory"\n'
        'object_id = "all"\naction = "verify"\n'
    )
    jobs("enqueue", "memory", "mem_1", "decay", "--max-attempts", 1, *db)

    ended = jobs("worker", "--handlers", handlers, "--once", "--config", tmp_path / "s.toml", *db)

    listed = jobs("list", "--object-id", "all", *db, "--json").document["jobs"]
    assert ended.code == 0
    assert [job["status"] for job in listed] == ["queued"]
    assert '"alert":"job.dead_letter"' in ended.err


@pytest.fixture
def freed_after_warning(file: Path) -> Iterator[list[str]]:
    """Another program holds the store until the first warning is logged."""
    outputs: list[str] = []

    class Hearing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            outputs.append(record.getMessage())
            letting_go.close()

    hearing = Hearing(logging.WARNING)
    logging.getLogger("pendula.jobs").addHandler(hearing)
    with ExitStack() as letting_go:
        letting_go.enter_context(holding(file))
        yield outputs
    logging.getLogger("pendula.jobs").removeHandler(hearing)


@pytest.mark.req("JOB-WRK-12")
def test_a_worker_started_on_a_locked_store_works_once_it_is_free(
    jobs: Program,
    db: tuple[str, str],
    handlers: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    (tmp_path / "s.toml").write_text(
        '[[recurring]]\nname = "yearly"\ncron = "@yearly"\nobject_type = "memory"\n'
        'object_id = "all"\naction = "verify"\n'
    )
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    monkeypatch.setitem(SqliteStore.__init__.__kwdefaults__ or {}, "busy_seconds", 0.05)
    outputs = request.getfixturevalue("freed_after_warning")

    ended = jobs("worker", "--handlers", handlers, "--max-jobs", 1, "--config", tmp_path / "s.toml", *db)

    assert ended.code == 0
    assert outputs[0].startswith("recurring jobs cannot be enqueued now: jobs.db is locked by another writer")
    assert jobs("list", "--status", "succeeded", *db, "--json").document["jobs"][0]["object_id"] == "mem_1"


@pytest.mark.req("JOB-WRK-12")
def test_a_worker_waits_with_its_migration_for_a_locked_store(
    jobs: Program,
    db: tuple[str, str],
    handlers: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    known = migrations()
    monkeypatch.setattr(opening, "migrations", lambda: [*known, "CREATE TABLE later (n INTEGER) STRICT;\n"])
    monkeypatch.setattr(opening, "REPORT_SECONDS", 0.02)
    monkeypatch.setitem(SqliteStore.__init__.__kwdefaults__ or {}, "patience_seconds", 0.0)
    outputs = request.getfixturevalue("freed_after_warning")

    ended = jobs("worker", "--handlers", handlers, "--max-jobs", 1, *db)

    assert ended.code == 0
    assert outputs[0].startswith("waiting for the writer of")
    assert "taken      1" in ended.out


@pytest.mark.req("JOB-WRK-12", "JOB-STO-12")
@pytest.mark.parametrize("change", ["payload = '{'", "priority = 9", "run_at = -9223372036854775807"])
def test_an_unreadable_job_is_a_broken_store_not_a_usage_error(
    jobs: Program, db: tuple[str, str], file: Path, handlers: str, change: str
) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    damage(file, f"UPDATE jobs SET {change}")

    ended = [
        jobs("list", *db),
        jobs("pull", "--worker", "w", *db),
        jobs("worker", "--handlers", handlers, "--once", *db),
    ]

    assert [run.code for run in ended] == [3, 3, 3]
    assert all("job_000000000001 cannot be read" in run.err and "(store_unusable)" in run.err for run in ended)
    assert "job_00000000" in jobs("check", *db).out


def test_one_round_of_a_worker_fails_without_its_server(jobs: Program, handlers: str) -> None:
    ended = jobs("worker", "--handlers", handlers, "--once", "--url", "http://127.0.0.1:1")

    assert ended.code == 3
    assert ended.err.endswith("(server_unreachable)\n")


def test_serve_passes_the_store_and_the_settings_to_the_server(
    jobs: Program, db: tuple[str, str], file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []

    def serve(settings: Settings, schedulers: tuple[SchedulerSpec, ...], on_ready: Callable[[str], None]) -> None:
        started.append((settings, schedulers))
        on_ready("http://127.0.0.1:1")

    monkeypatch.setattr(serving, "serve", serve)
    monkeypatch.setenv("PENDULA_TOKEN", "for-calls")
    (tmp_path / "s.toml").write_text("lease_sec = 7\n")
    ended = jobs("serve", "--port", 0, "--data", tmp_path / "data", "--config", tmp_path / "s.toml", *db, "--json")

    [(settings, [spec])] = started
    assert ended.document == {"address": "http://127.0.0.1:1", "data": str(tmp_path / "data"), "file": str(file)}
    assert (settings.port, spec.name) == (0, "jobs")
    assert (settings.jobs.database, settings.jobs.settings) == (str(file), str(tmp_path / "s.toml"))
    assert (spec.service.keywords["database"], spec.service.keywords["policy"].lease_sec) == (file, 7)


@pytest.mark.req("JOB-API-14")
def test_a_real_server_answers_and_stops_with_0(jobs: Program, db: tuple[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pendula", "jobs", "serve", "--port", "0", "--data", str(tmp_path / "data"), *db]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PENDULA_")}
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as process:
        try:
            at = ("--url", json.loads(line_of(process.stdout))["address"])
            until(lambda: jobs("stats", *at).code == 0)
            remote = jobs("enqueue", "memory", "mem_1", "verify", *at, "--json")
            refused = jobs("free-key", "k", "--reason", "x", *at, "--json")
            local = jobs("list", *db, "--json")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=300)
        finally:
            process.kill()

    assert (remote.code, process.returncode) == (0, 0)
    assert local.document["jobs"] == [remote.document["job"]]
    assert (refused.code, refused.error["code"]) == (1, "forbidden")


# Payloads and bulk changes


@pytest.mark.req("JOB-USE-1", "JOB-USE-6")
def test_a_payload_and_uniqueness_come_from_the_command_line(jobs: Program, db: tuple[str, str]) -> None:
    work = ("enqueue", "memory", "mem_1", "verify")
    first = jobs(*work, "--payload", '{"by": 0.5}', "--unique", "waiting", *db, "--json").document
    again = jobs(*work, "--unique", "waiting", *db, "--json").document
    wrong = jobs(*work, "--payload", "{by", *db)

    assert (first["job"]["payload"], again["deduplicated"]) == ({"by": Decimal("0.5")}, True)
    assert (wrong.code, wrong.err.startswith("pendula: --payload is not JSON")) == (2, True)
    assert '{"by":0.5}' in jobs("show", first["job"]["job_id"], *db).out


@pytest.mark.req("JOB-USE-5", "JOB-OBJ-6")
@pytest.mark.parametrize("remote", [False, True], ids=["store", "server"])
def test_bulk_changes_only_count_without_confirmation(
    remote: bool, jobs: Program, db: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    at = request.getfixturevalue("served") if remote else db
    for number in range(3):
        jobs("enqueue", "memory", f"mem_{number}", "verify", "--correlation-id", "import-7", *at)
    jobs("enqueue", "memory", "other", "verify", *at)

    counted = jobs("cancel", "--correlation-id", "import-7", *at)
    untouched = jobs("list", "--status", "queued", *at, "--json").document["jobs"]
    done = jobs("cancel", "--correlation-id", "import-7", "--reason", "wrong file", "--yes", *at, "--json")
    back = jobs("requeue", "--status", "failed", "--error-code", "cancelled", "--yes", *at)

    assert counted.out == "3 jobs match; nothing was changed. Add --yes to cancel them.\n"
    assert len(untouched) == 4
    assert done.document == {"count": 3, "done": True, "matched": 3, "changed": 3, "steps": 1}
    assert back.out == "3 of 3 requeued.\n"


SLIPS = [("cancel",), ("requeue", "job_000000000001", "--queue", "x"), ("cancel", "--yes")]


@pytest.mark.req("JOB-USE-5")
@pytest.mark.parametrize("arguments", SLIPS)
def test_a_mistaken_bulk_command_is_a_usage_error(
    arguments: tuple[str, ...], jobs: Program, db: tuple[str, str]
) -> None:
    assert jobs(*arguments, *db).code == 2


@pytest.mark.req("JOB-USE-3", "JOB-USE-4")
def test_a_running_job_gets_a_cancel_request_and_shows_its_progress(jobs: Program, db: tuple[str, str]) -> None:
    jobs("enqueue", "memory", "mem_1", "verify", *db)
    [job] = jobs("pull", "--worker", "w", *db, "--json").document["jobs"]
    proof = ("--worker", "w", "--lease-token", job["lease_token"])
    asked = jobs("cancel", job["job_id"], *db)
    renewed = jobs("renew", job["job_id"], *proof, "--progress", "0.4", "--progress-note", "page 4", *db)

    assert "is running; its worker gets the cancel request" in asked.out
    assert "Cancellation was requested." in renewed.out
    assert "40 %, page 4" in jobs("show", job["job_id"], *db).out
    assert jobs("fail", job["job_id"], "--error", "stopped", "--cancelled", *proof, *db, "--json").document["job"][
        "outcome"
    ] == ("cancelled")


def test_a_worker_creates_its_store_with_an_option(jobs: Program, handlers: str, tmp_path: Path) -> None:
    at = ("--db", f"sqlite:///{tmp_path / 'fresh.db'}")
    refused = jobs("worker", "--handlers", handlers, "--once", *at)
    made = jobs("worker", "--handlers", handlers, "--once", "--init", *at)

    assert (refused.code, refused.err.endswith(", or add --init (no_store)\n")) == (3, True)
    assert (made.code, (tmp_path / "fresh.db").exists()) == (0, True)


# Shortcuts


def test_a_store_can_be_given_as_a_path(jobs: Program, file: Path) -> None:
    assert jobs("list", "--db", file).out == "No jobs match.\n"


def test_environment_variables_name_the_store_and_its_settings(
    jobs: Program, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.toml").write_text('object_types = ["cart"]\nactions = ["expire"]\n')
    monkeypatch.setenv("PENDULA_JOBS_DATABASE", str(file))
    monkeypatch.setenv("PENDULA_JOBS_SETTINGS", str(tmp_path / "shop.toml"))

    stored = jobs("enqueue", "cart", "c1", "expire")
    elsewhere = jobs("list", "--db", tmp_path / "other.db")

    assert (stored.code, stored.err) == (0, "")
    assert (elsewhere.code, "other.db" in elsewhere.err) == (3, True)


def test_a_server_is_called_without_the_settings_of_the_environment(
    jobs: Program, served: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENDULA_JOBS_DATABASE", "elsewhere.db")
    monkeypatch.setenv("PENDULA_JOBS_SETTINGS", "elsewhere.toml")

    assert jobs("list", *served).out == "No jobs match.\n"


@pytest.mark.parametrize(("span", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604_800)])
def test_spans_of_time_have_units(
    span: str, seconds: int, jobs: Program, db: tuple[str, str], clock: StoppedClock
) -> None:
    stored = jobs("enqueue", "memory", "m", "verify", "--in", span, *db, "--json").document["job"]

    assert stored["run_at"] == clock.text(seconds)


def test_an_invalid_span_of_time_is_rejected_with_an_example(jobs: Program, db: tuple[str, str]) -> None:
    wrong = jobs("requeue", "--older-than", "a while", *db)

    assert wrong.code == 2
    assert "'a while' is not a duration; write 90, 15m, 2h or 7d" in wrong.err


def test_one_matching_job_is_printed_in_the_singular(jobs: Program, db: tuple[str, str]) -> None:
    jobs("enqueue", "memory", "m", "verify", "--queue", "slow", *db)

    counted = jobs("cancel", "--queue", "slow", *db)
    done = jobs("cancel", "--queue", "slow", "--yes", *db)

    assert counted.out == "1 job matches; nothing was changed. Add --yes to cancel it.\n"
    assert done.out == "1 of 1 cancelled or requested to stop.\n"


def test_a_call_without_a_token_explains_how_to_give_one(
    jobs: Program, served: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PENDULA_TOKEN")

    expected = "The server needs an access token: pass --token-file or set PENDULA_TOKEN (unauthenticated)"
    assert jobs("list", *served) == Finished(1, "", f"pendula: {expected}\n")


@pytest.mark.parametrize("command", ["init", "check", "backup", "retain", "serve"])
def test_commands_on_the_store_itself_have_no_server_options(command: str, jobs: Program) -> None:
    shown = jobs(command, "--help").out

    assert "--db" in shown
    assert "--url" not in shown.replace("for --url", "")


def test_a_file_given_as_a_module_is_rejected_with_the_module_name(jobs: Program, db: tuple[str, str]) -> None:
    ended = jobs("worker", "--handlers", "shop/upkeep_of_carts.py", "--once", *db)

    assert ended.err.endswith("; write shop.upkeep_of_carts (handlers_unusable)\n")


@pytest.mark.parametrize("remote", [False, True], ids=["store", "server"])
def test_a_plan_can_be_stored_with_a_payload(
    remote: bool, jobs: Program, db: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    at = request.getfixturevalue("served") if remote else db
    put = ("plans", "put", "nightly", "0 3 * * *", "memory", "m", "decay")

    made = jobs(*put, "--payload", '{"by": 2}', *at, "--json")
    wrong = jobs(*put, "--payload", "{by", *at)

    assert made.document["plan"]["payload"] == {"by": 2}
    assert (wrong.code, wrong.err.startswith("pendula: --payload is not JSON")) == (2, True)


# Governed objects


def test_output_for_people_shows_the_state_of_an_object_and_why(
    jobs: Program, db: tuple[str, str], clock: StoppedClock
) -> None:
    made = jobs("objects", "create", "memory", "m", "--evidence", "ev_1", "--user", "mia", "--reason", "met today", *db)
    first = "memory m is candidate; next comes verify at 2026-02-21T12:00:00Z (job_000000000001).\n"
    assert made == Finished(0, first, "")
    decided = jobs("objects", "decide", "memory", "m", "verify", "passed", "--reason", "read it", *db).out
    assert decided.startswith("transitioned: read it. memory m is verified; next comes decay at ")
    assert "memory m has been verified since" in jobs("objects", "why", "memory", "m", *db).out
    listed = jobs("objects", "list", "memory", *db).out
    assert "verified" in listed
    shown = jobs("objects", "show", "memory", "m", *db).out
    assert "evidence refs" in shown
    assert jobs("objects", "list", "cognition", *db).out == "No objects match.\n"
    assert "verified" in jobs("stats", *db).out


def test_output_for_people_shows_the_state_after_an_event(jobs: Program, db: tuple[str, str]) -> None:
    assert jobs("past", *db).out == "Nothing has happened yet.\n"
    jobs("objects", "create", "memory", "m", "--reason", "met today", *db)
    jobs("objects", "decide", "memory", "m", "verify", "suspicious", "--reason", "odd", *db)

    then = jobs("past", "aud_000000000001", *db).out

    assert "met today" in then
    assert "candidate" in then
    assert "quarantine" not in then


def test_a_worker_logs_its_start_on_stderr(jobs: Program, db: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pendula.jobs.worker.worker.Worker.run", lambda _, signals: Tally())

    until_stopped = jobs("worker", "--govern", "--worker", "night-1", *db)
    for_a_round = jobs("worker", "--govern", "--worker", "night-1", "--once", *db)

    assert until_stopped.err == "night-1 is running (Ctrl+C stops it)\n"
    assert for_a_round.err == ""


def test_a_group_without_a_command_reports_the_missing_command(jobs: Program) -> None:
    asked = jobs("objects")

    assert asked.code == 2
    assert asked.err == "pendula: Missing command; see pendula jobs objects --help (wrong_usage)\n"


def test_an_unrequested_rollback_is_not_reported_as_finished(jobs: Program, db: tuple[str, str]) -> None:
    jobs("objects", "create", "memory", "m", "--half-life", "P1D", *db)

    assert jobs("objects", "rollback-finished", "memory", "m", *db).out.startswith("No rollback was requested. ")


def test_output_for_people_shows_gates_decisions_and_rollbacks(jobs: Program, db: tuple[str, str]) -> None:
    assert jobs("gates", "list", *db).out.startswith("No gates are set;")
    assert jobs("rollbacks", *db).out == "No open rollbacks.\n"
    for gate in ("persona_conflict_gate", "risk_gate", "cognition_gate"):
        jobs("gates", "set", gate, "pass", "--reason", "calm", *db)
    expected = jobs("gates", "set", "risk_gate", "block", "--reason", "x", "--scope", "memory:n", "--user", "mia", *db)
    assert expected.out == "risk_gate is block for memory:n, set by mia.\n"
    jobs("objects", "create", "memory", "m", "--risk", "high", "--status", "quarantine", *db)
    jobs("objects", "decide", "memory", "m", "verify", "forged", "--reason", "a copy", *db)
    shown = jobs("objects", "show", "memory", "m", *db).out
    for word in ("rb_000000000001", "trace_000000000001", "executed"):
        assert word in shown
    assert "rb_000000000001" in jobs("rollbacks", *db).out


def test_the_trail_names_the_user_of_the_command_line(jobs: Program, db: tuple[str, str]) -> None:
    jobs("objects", "create", "memory", "m", *db)
    jobs("objects", "refill", "memory", "m", "--reason", "worth it", "--user", "zoë", *db)

    [*_, event] = jobs("audit", "--object-id", "m", *db, "--json").document["events"]
    assert event["actor"] == {"type": "user", "id": "zoë"}
    assert jobs("objects", "refill", "memory", "m", "--reason", "x", "--user", " ", *db).code == 2


def test_a_user_other_than_that_of_the_token_is_rejected(jobs: Program, served: tuple[str, str]) -> None:
    expected = jobs("objects", "create", "memory", "m", "--user", "mia", *served)

    assert expected.code == 1
    assert "The token belongs to ops" in expected.err


def test_members_that_are_not_an_object_are_wrong_usage(jobs: Program, db: tuple[str, str]) -> None:
    for text in ("[1]", "{"):
        assert jobs("objects", "create", "memory", "m", "--members", text, *db).code == 2


def test_a_worker_settles_governed_objects_without_a_handler(
    jobs: Program, db: tuple[str, str], file: Path, clock: StoppedClock
) -> None:
    jobs("objects", "create", "memory", "m", "--status", "active", "--members", '{"half_life": "P1D"}', *db)
    clock.pass_by(30 * DAY)

    ended = jobs("worker", "--govern", "--once", *db, "--json")

    assert ended.document["succeeded"] == 1
    assert jobs("objects", "show", "memory", "m", *db, "--json").document["object"]["status"] == "stale"
    assert jobs("worker", "--once", *db).code == 2


def test_stats_show_how_many_objects_wait_for_a_person(jobs: Program, db: tuple[str, str]) -> None:
    members = '{"falsify_if": "a counter-example", "review_interval": "P7D", "unknown_type": "multipath"}'
    common = ("--members", members, "--evidence", "ev_1", "--expires-at", "2036-01-01T00:00:00Z", "--user", "mia")
    jobs("objects", "create", "cognition", "a", "--risk", "low", *common, *db)
    before = jobs("stats", *db).out
    jobs("objects", "create", "cognition", "b", "--risk", "high", *common, *db)
    stats = jobs("stats", *db).out
    jobs("objects", "create", "cognition", "c", "--risk", "high", *common, *db)

    assert "for a person" not in before
    assert "1 object needs a decision by a person." in stats
    assert "2 objects need a decision by a person." in jobs("stats", *db).out


# Bodies from files


@pytest.mark.req("JOB-API-14")
@pytest.mark.parametrize(
    ("arguments", "text", "expected"),
    [
        (("enqueue", "memory", "m", "verify"), "{}", "--body takes the whole call from the file"),
        (("enqueue", "--in", "60"), "{}", "--in does not go with --body"),
        (("enqueue", "--batch", "jobs.json"), "{}", "--batch takes all jobs from the file"),
        (("pull", "--worker", "w"), "{}", "--body takes the whole call from the file"),
        (("pull",), "[]", "a body must be an object: the members of the call"),
        (("ack", "job_000000000001"), '{"job_id": "x"}', "job_id is not a member of the body"),
        (("fail", "job_000000000001"), '{"self": 1}', "self is not a member of the body"),
        (("enqueue",), '{"object_type": "memory"}', "object_id"),
    ],
)
def test_an_invalid_body_is_rejected(
    jobs: Program, db: tuple[str, str], tmp_path: Path, arguments: tuple[str, ...], text: str, expected: str
) -> None:
    (tmp_path / "body.json").write_text(text)

    ended = jobs(*arguments, "--body", tmp_path / "body.json", *db)

    assert ended.code in (1, 2)
    assert expected in ended.err
    assert ended.err.count("\n") == 1 or ended.code == 1
