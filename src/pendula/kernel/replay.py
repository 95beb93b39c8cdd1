"""Apply a journal to a fresh engine and compare: the same inputs must give the same outcomes, byte for byte.

Outside code is never called; its stored answers are used. A difference names the first record and the first field that
differs.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from pendula.kernel.canonical import Json, decode, first_difference
from pendula.kernel.engine import CommandReader, Engine, Recorded
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.frames import (
    Header,
    OutcomeBytes,
    Record,
    outcome_bytes,
    read_input,
    read_outcome,
    read_snapshot,
    recorded_outcome,
)
from pendula.kernel.journal import Journal

C = TypeVar("C")
E = TypeVar("E")

# Engine classes are factories: they create engines, restore them from a state, and decode commands.
Factory: TypeAlias = Callable[[Header], type[Engine[C, E]]]


class OtherDecisions(InputRefused):
    """The journal was written under other decision rules. Facts: `recorded`, `present`."""

    code = "other_decisions"


class WrongJournal(WorldBroken):
    """The journal belongs to another scheduler. Facts: `scheduler`, `wanted`."""

    code = "wrong_journal"


class NotReplayable(WorldBroken):
    """The journal's beginning was pruned and no snapshot remains to start from."""

    code = "not_replayable"


class Difference(Struct, frozen=True):
    """The first place where the journal and the computation differ."""

    n: int
    command: Json
    recorded: Json
    computed: Json
    path: str


class ReplayReport(Struct, frozen=True):
    commands: int
    snapshots: int
    first_difference: Difference | None
    cut_tail_bytes: int


class Step(Struct, frozen=True):
    """A replayed command: its outcome, or the defect that stopped it."""

    n: int
    command: Json
    outcome: OutcomeBytes | None
    defect: Json = None


def replay(
    journal: Journal,
    factory: Factory[Any, Any],
    upto: int | None = None,
    *,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> ReplayReport:
    """Compare every outcome and snapshot up to record `upto`. `force` replays a journal of other decisions."""
    kind = kind_for(journal.header, factory)
    check_decisions(journal.header, kind, force=force)
    engine, start = first_engine(journal, kind)
    commands = snapshots = 0
    pending: dict[int, Step] = {}
    difference: Difference | None = None
    for record, step in follow(engine, journal, start):
        if difference is not None or (upto is not None and record.n > upto):
            break
        if progress is not None:
            progress(record.n)
        match record.kind:
            case "input":
                assert step is not None
                commands += 1
                pending[record.n] = step
                if step.outcome is None:
                    difference = Difference(record.n, step.command, None, step.defect, "$")
            case "outcome":
                difference = _compare_outcome(record, pending)
            case "snapshot":
                snapshots += 1
                difference = _compare_snapshot(record, engine)
            case "note":
                pass
    return ReplayReport(commands, snapshots, difference, getattr(journal, "cut_tail_bytes", 0))


def kind_for(header: Header, factory: Factory[C, E]) -> type[Engine[C, E]]:
    """The engine class of a journal; raises `WrongJournal` for a journal of another scheduler."""
    kind = factory(header)
    require_scheduler(header, kind)
    return kind


def require_scheduler(header: Header, kind: type[Engine[Any, Any]]) -> None:
    """Raise `WrongJournal` for a journal of another scheduler."""
    if header.scheduler != kind.scheduler:
        raise WrongJournal(
            f"This is a journal of scheduler {header.scheduler!r}, not of {kind.scheduler!r}; "
            f"name the folder of a journal that {kind.scheduler!r} wrote",
            scheduler=header.scheduler,
            wanted=kind.scheduler,
        )


def check_decisions(header: Header, kind: type[Engine[Any, Any]], *, force: bool = False) -> None:
    if header.decisions != kind.decisions and not force:
        raise OtherDecisions(
            f"The journal of scheduler {header.scheduler!r} was written with decisions {header.decisions}; "
            f"this version has decisions {kind.decisions} and cannot continue it. Replay it with --force to see the "
            f"first difference, or move its folder away to start a new journal",
            recorded=header.decisions,
            present=kind.decisions,
        )


def first_engine(journal: Journal, kind: type[Engine[C, E]]) -> tuple[Engine[C, E], int]:
    """The earliest engine that the journal can restore, and the number of the first record to apply to it."""
    if journal.first_n == 0:
        return kind.create(journal.header.config), 0
    return engine_from_snapshot(journal, kind, journal.snapshots()[0][0] if journal.snapshots() else None)


def engine_from_snapshot(journal: Journal, kind: type[Engine[C, E]], n: int | None) -> tuple[Engine[C, E], int]:
    """The engine of snapshot record `n`, and the next number; None starts from the beginning."""
    if n is None:
        if journal.first_n > 0:
            raise NotReplayable(f"Records before {journal.first_n} were pruned and no snapshot remains to start from")
        return kind.create(journal.header.config), 0
    body = read_snapshot(next(journal.read(n)).body)
    if body.decisions != kind.decisions:
        raise OtherDecisions(
            f"Snapshot {n} was written with decisions {body.decisions}; this version has decisions {kind.decisions}",
            recorded=body.decisions,
            present=kind.decisions,
        )
    return kind.from_state(journal.header.config, bytes(body.state)), n + 1


def newest_engine(journal: Journal, kind: type[Engine[C, E]]) -> tuple[Engine[C, E], int]:
    """The engine of the newest snapshot, and the number of the first record to apply to it."""
    snapshots = journal.snapshots()
    return engine_from_snapshot(journal, kind, snapshots[-1][0] if snapshots else None)


def follow(engine: Engine[C, E], journal: Journal, start: int) -> Iterator[tuple[Record, Step | None]]:
    """All records from `start` on; each input is applied to `engine` before it is yielded."""
    read_command = CommandReader(type(engine))
    for record in journal.read(start):
        yield record, _apply_again(engine, record, read_command) if record.kind == "input" else None


def _apply_again(engine: Engine[C, E], record: Record, read_command: CommandReader[C]) -> Step:
    body = read_input(record.body)
    command = decode(bytes(body.command))
    answers = Recorded(body.stored_answers())
    engine.outside = answers
    try:
        outcome = outcome_bytes(engine.apply(read_command(body.command)))
    except Exception as defect:
        # Any exception is a finding of the replay.
        return Step(record.n, command, None, {"defect": f"{type(defect).__name__}: {defect}"})
    if (unused := answers.unused()) is not None:
        return Step(record.n, command, None, {"defect": f"the stored answer to {unused.name!r} was not used"})
    return Step(record.n, command, outcome)


def _compare_outcome(record: Record, pending: dict[int, Step]) -> Difference | None:
    recorded = read_outcome(record.body)
    step = pending.pop(recorded.of, None)
    if step is None or step.outcome is None or step.outcome.digest() == recorded.digest:
        # An outcome whose command is before the snapshot that the replay started from.
        return None
    before, after = recorded_outcome(recorded), decode(step.outcome.whole())
    if not bytes(recorded.events):
        after = {"count": len(step.outcome.events), "digest": step.outcome.digest()}
    return Difference(recorded.of, step.command, before, after, first_difference(before, after) or "$.digest")


def _compare_snapshot(record: Record, engine: Engine[C, E]) -> Difference | None:
    recorded = decode(bytes(read_snapshot(record.body).state))
    computed = decode(engine.state())
    path = first_difference(recorded, computed)
    return None if path is None else Difference(record.n, {"snapshot": record.n}, recorded, computed, path)


__all__ = [
    "Difference",
    "Factory",
    "NotReplayable",
    "OtherDecisions",
    "ReplayReport",
    "Step",
    "WrongJournal",
    "check_decisions",
    "engine_from_snapshot",
    "first_engine",
    "follow",
    "kind_for",
    "newest_engine",
    "replay",
    "require_scheduler",
]
