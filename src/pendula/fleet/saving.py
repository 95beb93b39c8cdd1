"""The state of a fleet as canonical JSON and back. An invalid state, or one of another configuration, is rejected."""

from collections import Counter
from dataclasses import fields
from typing import Any

from msgspec import DecodeError, Raw, Struct, ValidationError, convert, to_builtins

from pendula.fleet.commands import Config
from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import Anchor, AtNode, OnEdge
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tasks.book import Claims, Driver, Lines, Task, TaskBook
from pendula.fleet.tasks.dispatch import Dispatch
from pendula.fleet.tasks.model import TaskStream
from pendula.fleet.tasks.operators import ActionInbox, SavedInbox
from pendula.fleet.tick import saving as traffic_saving
from pendula.fleet.tick.saving import SavedRoute, plan_of, route_form
from pendula.fleet.tick.traffic import Traffic
from pendula.kernel.canonical import Json, Reader, decode, encode
from pendula.kernel.errors import InputRefused

# The state of tasks as plain values and back: everything the next step depends on beside site, fleet and streams.

# Members of a driver with their own form, and those that follow from the fleet.
_OWN = frozenset({"task", "route", "kept", "anchor", "phase"})
_GIVEN = frozenset({"number", "robot_id", "planner", "closed", "rest"})
_PLAIN = tuple(field.name for field in fields(Driver) if field.name not in _OWN | _GIVEN)


class SavedDriver(Struct, frozen=True, forbid_unknown_fields=True):
    plain: dict[str, Any]
    phase: Phase
    task: str | None
    route: SavedRoute | None
    kept: SavedRoute | None
    # (on an edge?, number of the edge or node, position or yaw)
    anchor: tuple[bool, int, int | None] | None


class SavedDispatch(Struct, frozen=True, forbid_unknown_fields=True):
    now_ms: int
    drivers: tuple[SavedDriver, ...]
    # By stream: tasks created, and tasks open.
    flows: dict[str, tuple[int, int]]
    goods: dict[str, int]
    room: dict[str, int]
    picks: dict[str, list[str]]
    drops: dict[str, list[str]]
    open: tuple[Task, ...]
    watched: tuple[str, ...]
    ready: tuple[str, ...]
    over: tuple[Task, ...]
    counts: dict[TaskState, int]
    # Streams that were set, changed or ended at run time.
    streams: dict[str, TaskStream]


def saved_dispatch(dispatch: Dispatch) -> Any:
    """Plain values with string keys."""
    book = dispatch.book
    stock = book.stock
    form = SavedDispatch(
        now_ms=dispatch.now_ms,
        drivers=tuple(_driver(driver) for driver in dispatch.drivers),
        flows={name: (flow.made, flow.open) for name, flow in book.flows.items()},
        goods=stock.goods,
        room=stock.room,
        picks={node: [*claims] for node, claims in stock.picks.items() if claims},
        drops={node: [*claims] for node, claims in stock.drops.items() if claims},
        open=tuple(book.open.values()),
        watched=tuple(book.watched),
        ready=tuple(book.ready),
        over=tuple(book.over),
        counts={state: count for state, count in sorted(book.counts.items()) if count},
        streams=book.changed,
    )
    return to_builtins(form, str_keys=True)


def restore_tasks(dispatch: Dispatch, form: Any) -> None:
    """Restore a fresh dispatch of the same fleet. Raises `msgspec.ValidationError` or `LookupError` for another
    fleet."""
    saved = convert(form, SavedDispatch)
    dispatch.goes_on_at(saved.now_ms)
    _restore_book(dispatch.book, saved, len(dispatch.drivers))
    if len(saved.drivers) != len(dispatch.drivers):
        raise LookupError("the tasks are of another fleet")
    for driver, saved_driver in zip(dispatch.drivers, saved.drivers, strict=True):
        _restore_driver(driver, saved_driver, dispatch)


def _driver(driver: Driver) -> SavedDriver:
    return SavedDriver(
        plain={name: getattr(driver, name) for name in _PLAIN},
        phase=driver.phase,
        task=None if driver.task is None else driver.task.task_id,
        route=None if driver.route is None else route_form(driver.route),
        kept=None if driver.kept is None else route_form(driver.kept),
        anchor=None if driver.anchor is None else _anchor(driver.anchor),
    )


def _anchor(anchor: Anchor) -> tuple[bool, int, int | None]:
    match anchor:
        case OnEdge(edge, s_um):
            return True, edge, s_um
        case AtNode(node, yaw):
            return False, node, yaw


def _restore_driver(driver: Driver, saved: SavedDriver, dispatch: Dispatch) -> None:
    for name in _PLAIN:
        setattr(driver, name, saved.plain[name])
    driver.phase = saved.phase
    driver.task = None if saved.task is None else dispatch.book.open[saved.task]
    driver.kept = _route(saved.kept, dispatch.site)
    # Equal routes are one object, as before: both came from traffic.
    driver.route = driver.kept if saved.route == saved.kept else _route(saved.route, dispatch.site)
    driver.anchor = None
    if saved.anchor is not None:
        on_edge, place, at = saved.anchor
        driver.anchor = OnEdge(place, at or 0) if on_edge else AtNode(place, at)


def _route(form: SavedRoute | None, site: CompiledMap) -> Any:
    return None if form is None else plan_of(form, site)


def _restore_book(book: TaskBook, saved: SavedDispatch, trucks: int) -> None:
    for stream in saved.streams.values():
        book.set_stream(stream, trucks)
    if saved.flows.keys() != book.flows.keys():
        raise LookupError("the tasks are of other streams")
    for name, (made, open_) in saved.flows.items():
        book.flows[name].made, book.flows[name].open = made, open_
    stock = book.stock
    stock.goods, stock.room = saved.goods, saved.room
    stock.picks = {node: Claims(claims) for node, claims in saved.picks.items()}
    stock.drops = {node: Claims(claims) for node, claims in saved.drops.items()}
    book.open = {task.task_id: task for task in saved.open}
    book.watched = {name: book.open[name] for name in saved.watched}
    book.ready = {name: book.open[name] for name in saved.ready}
    book.lines = Lines()
    for task in book.ready.values():
        book.lines.join(task.order, task.created_ms)
    book.over.clear()
    book.over.extend(saved.over)
    book.counts = Counter(saved.counts)


FORM = 1


class Saved(Struct, frozen=True, forbid_unknown_fields=True):
    """`trouble`: why the journal is not written; None while it is."""

    desk: Any
    dispatch: Any
    form: int
    traffic: Raw
    trouble: str | None


_read: Reader[Saved] = Reader(Saved)


class BadState(InputRefused):
    """Not the state of a fleet, or of another fleet."""

    code = "bad_fleet_state"


def encoded(traffic: Traffic, dispatch: Dispatch, inbox: ActionInbox, trouble: str | None) -> bytes:
    # Assembled from parts: traffic encodes its own part, which is most of it.
    parts = (encode(inbox.saved()), encode(saved_dispatch(dispatch)), FORM, traffic.state(), encode(trouble))
    return b'{"desk":%b,"dispatch":%b,"form":%d,"traffic":%b,"trouble":%b}' % parts


def read(state: bytes) -> Saved:
    """Raises `BadState`."""
    try:
        saved = _read(state)
    except DecodeError as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None
    if saved.form != FORM:
        raise BadState(f"The state has form {saved.form}, this version reads form {FORM}")
    return saved


def with_params(state: Json, params_hash: str) -> Json:
    """The state for a fleet with other traffic parameters. Raises `BadState`."""
    saved = read(encode(state))
    traffic = decode(traffic_saving.with_params(bytes(saved.traffic), params_hash))
    members = {"desk": saved.desk, "dispatch": saved.dispatch, "form": saved.form}
    return {**members, "traffic": traffic, "trouble": saved.trouble}


def traffic_of(saved: Saved, config: Config, site: CompiledMap) -> Traffic:
    """Raises `BadState` or `TrafficRefused`."""
    try:
        return Traffic.from_state(site, config.fleet, config.profiles, config.traffic, bytes(saved.traffic))
    except (LookupError, TypeError, ValueError) as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None


def restore_dispatch(saved: Saved, dispatch: Dispatch) -> None:
    """Raises `BadState`."""
    try:
        restore_tasks(dispatch, saved.dispatch)
    except (LookupError, TypeError, ValueError) as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None


def restore_inbox(saved: Saved, inbox: ActionInbox) -> None:
    """Raises `BadState`."""
    try:
        inbox.restore(convert(saved.desk, SavedInbox))
    except ValidationError as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None
