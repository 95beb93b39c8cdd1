"""Views of a world for HTTP: state and reasons, events, logs, estimates, and the forms that a page offers.

Pages need not know the engine's rules. Estimates run in a copy that is discarded; it receives no further submissions or
answers.
"""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from heapq import nsmallest
from itertools import count, islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from pendula.actions.engine import World
from pendula.actions.explain import why
from pendula.actions.messages import (
    WORLD_EVENTS,
    ActionRequest,
    Advance,
    CommandForm,
    Event,
    InterruptForm,
    Request,
    Submit,
)
from pendula.actions.minute.world_state import WorldState
from pendula.actions.model import Instance
from pendula.actions.rules.locks import Action, Lock, Stage
from pendula.actions.rules.validation import Verb
from pendula.actions.runs.live import status_of, what_if
from pendula.actions.runs.logs import Logs
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Reason, shown_stored
from pendula.kernel.frames import read_outcome
from pendula.kernel.journal import Journal
from pendula.kernel.replay import first_engine
from pendula.kernel.stream import UnknownEventId
from pendula.server.api.engines import LARGEST_N
from pendula.server.errors import NotFound
from pendula.server.runtime.scheduler_spec import (
    ChoicesView,
    FieldView,
    FormView,
    QuestionView,
    fields_of,
    form,
    form_inside,
)
from pendula.server.views import GapView

MOST_ACTIONS = 500
MOST_EXPLAINED = 50  # each walks through the queues of its locks
MOST_COMING = 50
MOST_LOCKS = 200
MOST_QUEUED = 20

AnyDriver = Driver[Any, Any]
EventId = tuple[int, int]
Amount = Annotated[Any, Meta(extra_json_schema={"type": "number"})]
STAGES = tuple(stage.name.lower() for stage in Stage if stage is not Stage.OVER)
StageName = Annotated[str, Meta(extra_json_schema={"enum": list(STAGES)})]

DEFAULT_ID = "what-if"  # for a submission without an id
MOST_QUESTIONS = 50
HOUR = 60


class EpochView(Struct, frozen=True):
    """The current epoch; `starts` and `ends` are minutes of the run."""

    index: int
    start_at: str
    end_at: str
    starts: int
    ends: int
    slot: int
    slots: int
    slot_minutes: int


class ActionView(Struct, frozen=True):
    """An action that has not ended. Running: from `since` to `until`. Waiting: `since`. Held: `until`."""

    id: str
    actor: str
    verb: str
    stage: StageName
    segment: int
    admission: int
    priority: int
    remaining: int
    locks: list[str]
    pc: bool
    since: int | None
    until: int | None
    why: Reason | None
    params: Any


class ComingView(Struct, frozen=True):
    """A pending submission or request."""

    kind: str
    action_id: str
    actor: str | None
    verb: str | None
    t: int
    at: str


class LockView(Struct, frozen=True):
    """One lock; `queue` has the first of the `waiting` actions. `held_by` is the holder that ends first, at `until`."""

    name: str
    held_by: str | None
    until: int | None
    queue: list[str]
    waiting: int
    capacity: int
    holders: list[str]


class ResourceView(Struct, frozen=True):
    name: str
    available: Amount
    reserved: Amount
    consumed: Amount
    produced: Amount


class WorldNow(Struct, frozen=True):
    """A world after record `n`. Times are minutes of the run; `at` is the time of day of the world."""

    n: int
    t: int
    at: str
    start_at: str
    next_due: int | None
    broken: list[str]
    epoch: EpochView
    pc: str | None
    counts: dict[str, int]
    actions: list[ActionView]
    coming: list[ComingView]
    locks: list[LockView]
    resources: list[ResourceView]
    locks_of: dict[str, list[str]]
    places: dict[str, str]


class EventView(Struct, frozen=True):
    id: str
    event: Raw


class EventsView(Struct, frozen=True):
    """Events in order. Continue after the id `next`; `gap` says what was pruned before them."""

    events: list[EventView]
    next: str | None
    more: bool
    gap: GapView | None


class _Mark(Struct, frozen=True):
    """The members of an event that filters use."""

    type: str
    pc: bool = False
    seq: int = -1


_split = msgspec.json.Decoder(list[Raw]).decode
_read_event = msgspec.json.Decoder(Event, float_hook=Decimal).decode
_mark = msgspec.json.Decoder(_Mark).decode
_WORLD_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in WORLD_EVENTS)


def now_of(world: WorldState, n: int) -> WorldNow:
    """The state of a world after record `n`."""
    setting = world.setting
    actions = sorted(world.actions.values(), key=_admission)
    queued = _queued(world)
    counts = dict.fromkeys(STAGES, 0)
    for action in actions:
        counts[action.stage.name.lower()] += 1
    explained = {action.admission for action in islice(filter(_is_not_running, actions), MOST_EXPLAINED)}
    shown = nsmallest(MOST_ACTIONS, actions, key=lambda action: (action.admission not in explained, action.admission))
    return WorldNow(
        n=n,
        t=world.clock.minute,
        at=setting.display(world.clock.minute),
        start_at=setting.display(0),
        next_due=world.next_due(),
        broken=list(world.broken()),
        epoch=_epoch(world),
        pc=setting.audience.pc,
        counts=counts | {"coming": len(queued), "locks": len(world.locks.by_name)},
        actions=[_action(world, action, action.admission in explained) for action in sorted(shown, key=_admission)],
        coming=[
            _coming(world, minute, item)
            for minute, _, _, item in nsmallest(MOST_COMING, queued, key=lambda entry: entry[:3])
        ],
        locks=_locks(world),
        resources=[
            ResourceView(name, stock.available, stock.reserved, stock.consumed, stock.produced)
            for name, stock in sorted(world.resources.stocks.items())
        ],
        locks_of={name: list(verb.locks) for name, verb in setting.verbs.items() if isinstance(verb, Verb)},
        places=dict(sorted(world.places.items())[:MOST_ACTIONS]),
    )


def _admission(action: Action) -> int:
    return action.admission


def _is_not_running(action: Action) -> bool:
    return action.stage is not Stage.RUNNING


def _epoch(world: WorldState) -> EpochView:
    setting, options = world.setting, world.setting.options
    return EpochView(
        index=setting.first_epoch + world.clock.epoch,
        start_at=setting.display(world.clock.epoch_start),
        end_at=setting.display(world.clock.boundary),
        starts=world.clock.epoch_start,
        ends=world.clock.boundary,
        slot=min((world.clock.minute - world.clock.epoch_start) // options.slot_minutes, setting.last_slot),
        slots=options.slots,
        slot_minutes=options.slot_minutes,
    )


def _action(world: WorldState, action: Action, explained: bool) -> ActionView:
    status = status_of(world, action)
    return ActionView(
        id=status.action_id,
        actor=status.actor,
        verb=status.verb,
        stage=status.stage,
        segment=action.segment,
        admission=action.admission,
        priority=action.priority,
        remaining=status.remaining,
        locks=list(status.locks),
        pc=action.seen,
        since=status.since,
        until=status.until,
        why=why(world, {"action": status.action_id}) if explained else None,
        params=status.params,
    )


def _queued(world: WorldState) -> list[tuple[int, int, int, Instance | ActionRequest]]:
    return [entry for entry in world.queue if isinstance(entry[3], Instance | ActionRequest)]


def _coming(world: WorldState, minute: int, item: Instance | ActionRequest) -> ComingView:
    at = world.setting.display(minute)
    if isinstance(item, Instance):
        return ComingView("submit", item.id, item.actor, item.verb, minute, at)
    return ComingView(item.kind, item.target, None, None, minute, at)


def _locks(world: WorldState) -> list[LockView]:
    """Locks in use before free ones, then by name."""
    locks = nsmallest(MOST_LOCKS, world.locks.by_name.values(), key=lambda lock: (_is_free(lock), lock.name))
    return [_lock(lock) for lock in sorted(locks, key=lambda lock: lock.name)]


def _is_free(lock: Lock) -> bool:
    return not lock.holders() and lock.first() is None


def _lock(lock: Lock) -> LockView:
    waiting, holders = lock.waiting(), lock.holders()
    soonest = min(holders, key=lambda holder: (holder.t_end, holder.admission), default=None)
    return LockView(
        lock.name,
        held_by=soonest.instance.id if soonest else None,
        until=soonest.t_end if soonest else None,
        queue=[action.instance.id for action in waiting[:MOST_QUEUED]],
        waiting=len(waiting),
        capacity=lock.capacity,
        holders=[action.instance.id for action in holders[:MOST_QUEUED]],
    )


def events_of(
    driver: AnyDriver, after: EventId | None, upto: int | None, types: Collection[str], pc: bool, limit: int
) -> EventsView:
    """Up to `limit` events after an id and of records up to `upto`; raises `UnknownEventId` for a future id."""
    journal = driver.journal
    if after is not None and after[0] > journal.durable_n:
        raise UnknownEventId(f"Event {_id(after)} is unknown: the newest record is {journal.durable_n}", id=_id(after))
    begin = after or (-1, 0)
    first = journal.first_n
    gap = None if begin[0] >= first or first == 0 else GapView(None, after and _id(after), f"{first}.0")
    events: list[EventView] = []
    last = after
    more = False
    for place, raw in _events(journal, max(begin[0], first)):
        if upto is not None and place[0] > upto:
            break
        if place <= begin:
            continue
        mark = _mark(raw)
        if (types and mark.type not in types) or (pc and not mark.pc):
            continue
        if len(events) == limit:
            more = True
            break
        events.append(EventView(_id(place), raw if mark.type in _WORLD_TYPES else _with_sentence(raw)))
        last = place
    return EventsView(events, last and _id(last), more, gap)


def _with_sentence(raw: Raw) -> Raw:
    """An event of the journal with its sentence, where it has one."""
    data = bytes(raw)
    return Raw(shown_stored(_read_event, data))


def world_log(driver: AnyDriver, after: int, limit: int) -> bytes:
    """JSON lines of the world log after the event with number `after`, as far back as the journal goes."""
    lines = (
        bytes(raw)
        for _, raw in _events(driver.journal, driver.journal.first_n)
        if (mark := _mark(raw)).type in _WORLD_TYPES and mark.seq > after
    )
    return b"".join(line + b"\n" for line in islice(lines, limit))


def pc_log(driver: AnyDriver, epoch: int | None) -> bytes:
    """One chunk of the player's log, by default the newest: its header, then one line an event.

    Raises `NotFound` for an epoch that has not begun, or whose beginning was pruned from the journal.
    """
    world, start = first_engine(driver.journal, type(driver.engine))
    assert isinstance(world, World)
    logs = Logs(world.header())
    logs.feed(_read_event(raw) for _, raw in _events(driver.journal, start))
    # A pruned journal begins within a chunk, which is incomplete.
    first = logs.first_epoch + (start > 0)
    last = logs.first_epoch + len(logs.chunks) - 1
    number = last if epoch is None else epoch
    if not first <= number <= last:
        raise NotFound(f"There is no chunk of epoch {number}; there are {first} to {last}", first=first, last=last)
    return b"".join(line + b"\n" for line in logs.chunks[number - logs.first_epoch])


def _events(journal: Journal, start: int) -> Iterator[tuple[EventId, Raw]]:
    """The events of the outcomes from record `start` on, each with its id."""
    for record in journal.read(start):
        if record.kind == "outcome":
            body = read_outcome(record.body)
            for k, raw in enumerate(_split(body.events)):
                yield (body.of, k), raw


def event_id(text: str) -> EventId:
    """The record and index of an id `n.k`."""
    n, k = text.split(".")
    return int(n), int(k)


def _id(place: EventId) -> str:
    return f"{place[0]}.{place[1]}"


class Supposition(Struct, frozen=True, forbid_unknown_fields=True):
    """An instance to estimate; its time defaults to now. `until` is the last minute to look at."""

    action: Any
    until: Annotated[int, Meta(ge=0, le=LARGEST_N)] | None = None


class EstimateView(Struct, frozen=True):
    """When it would start and end, in minutes of the run and as times; else why it does not start or is rejected.

    `end` ignores interrupts that are not requested yet.
    """

    action_id: str
    start: int | None
    end: int | None
    start_at: str | None
    end_at: str | None
    code: str | None
    message: str | None
    why: Reason | None


class SavedWorldState(Struct, frozen=True):
    """The class, configuration and state of a world, to restore it in another thread."""

    kind: type[World]
    config: Json
    state: bytes


def saved_state(driver: Driver[Any, Any]) -> SavedWorldState:
    """Save the world, which is quick enough for its thread; the estimate runs in another."""
    assert isinstance(driver.engine, World)
    return SavedWorldState(type(driver.engine), driver.journal.header.config, driver.engine.state())


def estimate(saved: SavedWorldState, supposition: Supposition) -> EstimateView:
    """Advance a copy until the submission starts, is rejected, or nothing is pending."""
    copy = saved.kind.from_state(saved.config, saved.state)
    action = supposition.action
    if isinstance(action, Mapping):
        when = {} if "t" in action or "submitted_at" in action else {"t": copy.now()}
        action = {"id": DEFAULT_ID} | dict(action) | when
    action_id = action["id"] if isinstance(action, dict) and isinstance(action["id"], str) else DEFAULT_ID
    estimated = what_if(copy, action, action_id, supposition.until)
    rejected, shown = estimated.rejected, copy.current.setting.display
    return EstimateView(
        estimated.action_id,
        estimated.start,
        estimated.end,
        start_at=None if estimated.start is None else shown(estimated.start),
        end_at=None if estimated.end is None else shown(estimated.end),
        code=None if rejected is None else str(rejected.code),
        message=None if rejected is None else rejected.message,
        why=estimated.why,
    )


DOES = {Stage.WAITING: "waits", Stage.HELD: "is held", Stage.SUSPENDED: "is suspended", Stage.RUNNING: "runs"}


def choices(world: World) -> ChoicesView:
    """The choices for the current state."""
    state = world.current
    actions = sorted(state.actions.values(), key=lambda one: (one.stage is Stage.RUNNING, one.admission))
    questions = [_question(action) for action in actions[:MOST_QUESTIONS]]
    return ChoicesView(questions or [QuestionView("Why nothing happens", {"action": "A1"})], _forms(state, actions))


def _question(action: Action) -> QuestionView:
    id = action.instance.id
    return QuestionView(f"Why {id} {DOES[action.stage]}", {"action": id})


def _forms(state: WorldState, actions: list[Action]) -> list[FormView]:
    """Advance and submit always; commands about actions if there are any."""
    now = state.clock.minute
    return [
        form("Advance time", Advance, {"to": now + HOUR}),
        form_inside("Submit an action", Submit, "actions", _instance(state, actions)),
        *_interrupt([one.instance.id for one in actions if one.stage is Stage.RUNNING], now),
        *_about("cancel", [one.instance.id for one in actions], now),
        *_about("resume", [one.instance.id for one in actions if one.stage is Stage.SUSPENDED], now),
    ]


def _interrupt(running: list[str], now: int) -> Iterator[FormView]:
    if running:
        examples: dict[str, Json] = {"target": running[0], "priority": 1000, "hold_min": 0, "t": now}
        fields = fields_of(InterruptForm, examples, {"target": running})
        yield form_inside("Interrupt an action", Request, "interrupts", fields)


def _about(word: str, ids: list[str], now: int) -> Iterator[FormView]:
    if ids:
        fields = fields_of(CommandForm, {word: ids[0], "t": now}, {word: ids})
        yield form_inside(f"{word.capitalize()} an action", Request, "commands", fields)


def _instance(state: WorldState, actions: list[Action]) -> list[FieldView]:
    verbs = sorted(name for name, verb in state.setting.verbs.items() if isinstance(verb, Verb))
    actors = sorted({one.instance.actor for one in actions} | set(state.places))
    free = next(f"by-hand-{number}" for number in count(1) if f"by-hand-{number}" not in state.used_ids)
    examples: dict[str, Json] = {
        "id": free,
        "actor": _first(actors),
        "verb": _first(verbs),
        "t": state.clock.minute,
        "priority": None,
        "params": None,
    }
    return fields_of(Instance, examples, {"verb": verbs, "actor": actors})


def _first(names: list[str]) -> str:
    return names[0] if names else "ann"
