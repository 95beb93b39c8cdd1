"""Jobs beside other queues on SQLite, both sides with the durability that the connection of the peer reports.

The peers are message queues: no order by due time, no keys, no audit trail. Our side includes all of that.
"""

import sqlite3
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from msgspec import Struct

from bench.jobs_loads import Desk, ack_entries, assert_all
from bench.jobs_peers import PEERS, Known, Peer
from bench.measuring.wall_time import Turns
from pendula.cli.benchmarks import Progress, Row, compared, measured
from pendula.jobs.model import Durability

BATCH, TAKEN = 1000, 100
# Single operations wait for a flush each time.
SINGLE, QUICK_SINGLE = 100, 20
ROUNDS, QUICK_ROUNDS = 7, 3
SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}
OURS, THEIRS = "ours", "theirs"


class Work(Struct, frozen=True):
    """One operation, and the number of jobs for each side."""

    name: str
    ours: int
    theirs: int
    turns: Turns


def rows(place: Path, quick: bool, progress: Progress, unfair: str | None) -> list[Row]:
    found: list[Row] = []
    for known in PEERS:
        if not known.installed:
            found.append(_absent(known, place, quick, progress))
            continue
        progress(f"beside {known.name}")
        found += _beside(known, place, quick, unfair)
    return found


def _beside(known: Known, place: Path, quick: bool, unfair: str | None) -> list[Row]:
    folder = place / known.module
    folder.mkdir()
    with ExitStack() as stack:
        peer = stack.enter_context(closing(known.opened(folder)))
        mode, flushes = _settings(peer.connection)
        durability = Durability.FULL if flushes >= 2 else Durability.NORMAL
        desk = stack.enter_context(closing(Desk(folder / "ours.db", durability)))
        ours = desk.store.settings()
        works = _measured(desk, peer, known.batches, quick)
    fairness = (
        f"{known.name} {known.version}: {mode}, synchronous {SYNCHRONOUS[flushes]}; "
        f"ours: {ours['journal_mode']}, synchronous {SYNCHRONOUS[int(str(ours['synchronous']))]}; {known.lacks}"
    )
    return [
        compared(
            f"{work.name}, beside {known.name}",
            work.ours / work.turns.seconds(OURS),
            work.theirs / work.turns.seconds(THEIRS),
            "jobs/s",
            against=f"{known.name} ({SYNCHRONOUS[flushes]})",
            ratio=work.ours / work.theirs / work.turns.share(OURS, THEIRS),
            unfair=unfair,
            fairness=fairness,
        )
        for work in works
    ]


def _measured(desk: Desk, peer: Peer, batches: bool, quick: bool) -> list[Work]:
    few = QUICK_SINGLE if quick else SINGLE
    works = [
        single := Work("enqueue, one by one", few, few, Turns()),
        batch := Work(f"enqueue of {BATCH}", BATCH, BATCH if batches else few, Turns()),
        one := Work("pull and ack, one by one", few, few, Turns()),
        many := Work(f"pull and ack of {TAKEN}", TAKEN, few, Turns()),
    ]
    rounds = QUICK_ROUNDS if quick else ROUNDS
    for _ in zip(*(work.turns.rounds(rounds) for work in works), strict=True):
        bodies = desk.bodies(few, due_in=0)
        single.turns.take(OURS, partial(desk.enqueues_one_by_one, bodies))
        single.turns.take(THEIRS, partial(peer.put, bodies))
        bodies = desk.bodies(BATCH, due_in=0)
        assert_all(201, batch.turns.take(OURS, partial(desk.enqueues, bodies)))
        batch.turns.take(THEIRS, partial(peer.put_at_once, bodies[: batch.theirs]))
        one.turns.take(OURS, partial(desk.pulls_and_acks_one_by_one, few))
        one.turns.take(THEIRS, partial(peer.take_and_finish, few))
        entries = ack_entries(many.turns.take(OURS, partial(desk.pulls, TAKEN)))
        assert_all(200, many.turns.take(OURS, partial(desk.acks, entries)))
        many.turns.take(THEIRS, partial(peer.take_and_finish, few))
    return works


def _absent(known: Known, place: Path, quick: bool, progress: Progress) -> Row:
    """Our side alone, so that a row names what is missing."""
    progress(f"{known.name} is not installed")
    turns = Turns()
    few = QUICK_SINGLE if quick else SINGLE
    with closing(Desk(place / f"without-{known.module}.db")) as desk:
        for _ in turns.rounds(QUICK_ROUNDS if quick else ROUNDS):
            turns.take(OURS, partial(desk.enqueues_one_by_one, desk.bodies(few)))
    sentence = f"{known.name} is not installed: nothing to compare with"
    return measured(f"enqueue, one by one, beside {known.name}", few / turns.seconds(OURS), "jobs/s", sentence=sentence)


def _settings(connection: sqlite3.Connection) -> tuple[str, int]:
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    return str(mode), int(connection.execute("PRAGMA synchronous").fetchone()[0])
