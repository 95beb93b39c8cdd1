"""The spans and marks of a picture, in minutes of the run, derived from its events."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from pendula.actions.messages import (
    Diagnostic,
    End,
    EpochBegan,
    Interrupted,
    Rejection,
    Start,
    VisibilityChange,
    WorldEvent,
)
from pendula.actions.rules.locks import Stage
from pendula.actions.rules.validation import Verb, read_verb
from pendula.actions.saving import SavedWorld
from pendula.kernel.time import Instant, minutes_between_ceil, parse_iso

Owner: TypeAlias = tuple[str, str, str]  # action, actor, verb


class Kind(StrEnum):
    RUN = "run"
    WAIT = "wait"  # in the queues of its locks
    ASIDE = "aside"  # interrupted: held, or until it is resumed


class Span(Struct, frozen=True):
    """A time span of one action. `begun` and `over` say whether its start and end are inside the run."""

    kind: Kind
    action_id: str
    actor: str
    verb: str
    since: int
    until: int
    begun: bool = True
    over: bool = True
    note: str = ""


class Mark(Struct, frozen=True):
    """A moment: an interrupt, a reveal, a rejection or a diagnostic."""

    kind: str
    action_id: str
    actor: str
    minute: int
    label: str
    note: str
    bright: bool = True


class History(Struct, frozen=True):
    """The drawn part of a run."""

    start: Instant
    minutes: int  # of an epoch
    first_epoch: int
    epochs: int
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]
    locks: Mapping[str, tuple[str, ...]]  # of each verb
    counts: Mapping[str, int]


class _Open(Struct):
    """An action that has not ended."""

    since: int | None  # of the segment that runs
    begun: bool
    interrupted: int | None = None
    note: str = ""


class Day(Protocol):
    """The part of an epoch that a picture needs: an `EpochResult`, or the recent events of a live world."""

    @property
    def header(self) -> EpochBegan: ...
    @property
    def end_at(self) -> str: ...
    @property
    def events(self) -> tuple[WorldEvent, ...]: ...
    @property
    def rejections(self) -> tuple[Rejection, ...]: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...


def history_of(
    days: Sequence[Day], saved: SavedWorld, action_defs: Mapping[str, Any], upto: int | None = None
) -> History:
    """Spans and marks of days. `action_defs` has the locks of each verb; `saved` is the state at minute `upto`, by
    default the end of the last day, with minutes counted from there."""
    start, end = parse_iso(days[0].header.start_at), parse_iso(days[0].end_at)
    minutes = minutes_between_ceil(start, end)
    reader = _Reader(days, minutes, minutes * len(days) if upto is None else upto, saved)
    verbs = {name: read_verb(name, raw) for name, raw in action_defs.items()}
    locks = {name: verb.locks for name, verb in verbs.items() if isinstance(verb, Verb)}
    return History(
        start=start,
        minutes=minutes,
        first_epoch=days[0].header.epoch,
        epochs=len(days),
        spans=tuple(sorted(reader.spans, key=_order)),
        marks=tuple(reader.marks),
        locks=locks,
        counts=reader.counts,
    )


class _Reader:
    """Reads the events once; actions that are open at the end are completed from the saved state."""

    def __init__(self, days: Sequence[Day], minutes: int, end: int, saved: SavedWorld) -> None:
        self.spans: list[Span] = []
        self.marks: list[Mark] = []
        self.counts = dict.fromkeys(("started", "ended", "interrupted", "revealed", "rejected", "carried"), 0)
        self._open: dict[str, _Open] = {}
        self._end = end
        for one in days[0].header.carried_in:
            self._open[one["action_id"]] = _Open(0, begun=False)
        for number, epoch in enumerate(days):
            for event in epoch.events:
                self._take(event, number * minutes + event.t)
            for rejection in epoch.rejections:
                self.counts["rejected"] += 1
                at = number * minutes + rejection.t
                self._refused(rejection.action_id, at, rejection.code, rejection.message)
            for diagnostic in epoch.diagnostics:
                self._refused(
                    diagnostic.action_id, number * minutes + diagnostic.t, diagnostic.code, diagnostic.message
                )
        self._close(saved)

    def _take(self, event: WorldEvent, minute: int) -> None:
        match event:
            case Start():
                self._start(event, minute)
            case End():
                self.counts["ended"] += 1
                self._run_is_over(event, minute, "done")
                del self._open[event.action_id]
            case Interrupted():
                self._interrupt(event, minute)
            case VisibilityChange(meta=meta):
                self.counts["revealed"] += 1
                note = f"{meta['knowledge']} revealed: {meta['from_scope']} → {meta['to_scope']}"
                note += "" if event.pc else " (not for the player character)"
                mark = Mark("light", event.action_id, event.actor, minute, meta["knowledge"], note, bright=event.pc)
                self.marks.append(mark)

    def _start(self, event: Start, minute: int) -> None:
        meta = event.meta
        if meta["segment"] == 0:
            self.counts["started"] += 1
        before = self._open.get(event.action_id)
        joined = minute - meta["waited"]
        self._aside(before, _owner(event), joined)
        self._wait(_owner(event), joined, minute)
        part = f", part {meta['segment'] + 1}" if meta["segment"] else ""
        self._open[event.action_id] = _Open(minute, True, note=f"{meta['d']} min{part}")

    def _interrupt(self, event: Interrupted, minute: int) -> None:
        self.counts["interrupted"] += 1
        meta = event.meta
        self._run_is_over(event, minute, f"interrupted by {meta['by']}, {meta['d_rem']} min left")
        resume = {"auto": "resumes by itself", "manual": "until it is resumed", "drop": "dropped"}
        note = f"interrupted by {meta['by']}: {meta['d_rem']} min left, {resume[str(meta['resume'])]}"
        self.marks.append(Mark("bolt", event.action_id, event.actor, minute, str(meta["by"]), note))
        if meta["resume"] == "drop":
            del self._open[event.action_id]
        else:
            self._open[event.action_id].interrupted = minute

    def _run_is_over(self, event: End | Interrupted, minute: int, how: str) -> None:
        # An action that began before the first kept event has no start.
        running = self._open.setdefault(event.action_id, _Open(0, begun=False))
        note = ", ".join(filter(None, (running.note, how)))
        self._add(Kind.RUN, _owner(event), running.since or 0, minute, begun=running.begun, note=note)
        running.since = None

    def _refused(self, action_id: str | None, minute: int, code: str, message: str) -> None:
        self.marks.append(Mark("cross", action_id or "?", "", minute, f"{action_id or '?'}: {code}", message))

    def _close(self, saved: SavedWorld) -> None:
        """Complete the open spans from the saved state."""
        for one in saved.actions:
            owner = (one.instance.id, one.instance.actor, one.instance.verb)
            known = self._open.get(one.instance.id)
            match Stage(one.stage):
                case Stage.RUNNING:
                    since, begun = (known.since or 0, known.begun) if known else (0, False)
                    note = f"{one.t_end} min left for the next epoch"
                    self._add(Kind.RUN, owner, since, self._end, begun=begun, over=False, note=note)
                    self.counts["carried"] += 1
                case Stage.WAITING:
                    joined = self._end + one.joined
                    self._aside(known, owner, joined)
                    self._wait(owner, joined, self._end, over=False)
                case _:
                    self._aside(known, owner, self._end, over=False)

    def _aside(self, known: _Open | None, owner: Owner, until: int, *, over: bool = True) -> None:
        if known is not None and known.interrupted is not None:
            self._add(Kind.ASIDE, owner, known.interrupted, until, over=over, note="on hold")

    def _wait(self, owner: Owner, joined: int, until: int, *, over: bool = True) -> None:
        note = f"{until - joined} min"
        self._add(Kind.WAIT, owner, max(joined, 0), until, begun=joined >= 0, over=over, note=note)

    def _add(
        self, kind: Kind, owner: Owner, since: int, until: int, *, begun: bool = True, over: bool = True, note: str
    ) -> None:
        if since < until:
            self.spans.append(Span(kind, *owner, since, until, begun=begun, over=over, note=note))


def _owner(event: WorldEvent) -> Owner:
    return event.action_id, event.actor, event.verb


def _order(span: Span) -> tuple[int, int, str, str]:
    return span.since, span.until, span.action_id, span.kind


def holders(spans: Iterable[Span], locks: Mapping[str, tuple[str, ...]]) -> dict[str, list[Span]]:
    """The spans of holders and waiting actions of each lock."""
    lanes: dict[str, list[Span]] = {}
    for span in spans:
        if span.kind is not Kind.ASIDE:
            for lock in locks.get(span.verb, ()):
                lanes.setdefault(lock, []).append(span)
    return lanes
