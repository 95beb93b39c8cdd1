"""Tasks and drivers as plain data and back: everything the next step depends on, nothing that follows from the site."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from msgspec import Struct

from pendula.fleet.contracts.traffic import Phase, TaskState
from pendula.fleet.routing.planner import Anchor, AtNode, OnEdge
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tasks.book import REMEMBERED, Task, TaskBook
from pendula.fleet.tasks.drivers import Driver
from pendula.fleet.tasks.model import TaskOrder, Transition
from pendula.fleet.tick.saving import SavedRoute, plan_of, route_form


class SavedTask(Struct, frozen=True, array_like=True):
    order: TaskOrder
    created_ms: int
    state: TaskState
    since_ms: int
    cause: str
    robot_id: str | None
    assigned_ms: int | None
    eta_ms: int | None
    candidates: tuple[tuple[str, int], ...]
    loaded: bool


class SavedDriver(Struct, frozen=True, array_like=True):
    """`anchor`: whether it is on an edge, the edge or node, and the position or yaw."""

    node: int
    anchor: tuple[bool, int, int | None] | None
    phase: Phase
    task_id: str | None
    route: SavedRoute | None
    kept: SavedRoute | None
    plain: dict[str, Any]


class SavedDispatch(Struct, frozen=True):
    now_ms: int
    drivers: tuple[SavedDriver, ...]
    tasks: tuple[SavedTask, ...]
    over: tuple[SavedTask, ...]
    made: dict[str, int]
    goods: dict[str, int]
    room: dict[str, int]
    picks: dict[str, tuple[str, ...]]
    drops: dict[str, tuple[str, ...]]
    counts: dict[str, int]
    # What happened after the last step and is told with the next: transitions, and routes for trucks that lost a task.
    untold: tuple[Transition, ...]
    unsent: tuple[SavedRoute, ...]


# What a driver has that is a number, a word or a yes.
_PLAIN = (
    *("since_ms", "admitted", "rejected", "called_off", "leaves_um", "again_ms", "routes"),
    *("faulty", "redo", "gone"),
)
_TASK = tuple(one.name for one in fields(Task))


def saved(now_ms: int, book: TaskBook, drivers: list[Driver], unsent: Sequence[RoutePlan]) -> SavedDispatch:
    stock = book.stock
    return SavedDispatch(
        now_ms=now_ms,
        drivers=tuple(_driver_form(one) for one in drivers),
        tasks=tuple(_task_form(one) for one in book.open.values()),
        over=tuple(_task_form(one) for one in book.over),
        made={name: one.made for name, one in book.flows.items()},
        goods=dict(stock.goods),
        room=dict(stock.room),
        picks={node: tuple(claims) for node, claims in stock.picks.items() if claims},
        drops={node: tuple(claims) for node, claims in stock.drops.items() if claims},
        counts={state.value: count for state, count in sorted(book.counts.items())},
        untold=tuple(book.transitions),
        unsent=tuple(map(route_form, unsent)),
    )


def restore(form: SavedDispatch, site: CompiledMap, book: TaskBook, drivers: list[Driver]) -> None:
    """Puts what was saved into a fresh book and fresh drivers of the same fleet. Raises `LookupError` for another."""
    stock = book.stock
    stock.goods, stock.room = dict(form.goods), dict(form.room)
    stock.picks = {node: list(claims) for node, claims in form.picks.items()}
    stock.drops = {node: list(claims) for node, claims in form.drops.items()}
    book.counts = Counter({TaskState(name): count for name, count in form.counts.items()})
    book.over = deque((_task(one) for one in form.over), maxlen=REMEMBERED)
    book.transitions = list(form.untold)
    for name, made in form.made.items():
        book.flows[name].made = made
    for one in form.tasks:
        book.put(_task(one))
    for driver, told in zip(drivers, form.drivers, strict=True):
        _restore_driver(driver, told, site, book)


def _task_form(task: Task) -> SavedTask:
    return SavedTask(*(getattr(task, name) for name in _TASK))


def _task(form: SavedTask) -> Task:
    return Task(**{name: getattr(form, name) for name in _TASK})


def _driver_form(driver: Driver) -> SavedDriver:
    return SavedDriver(
        node=driver.node,
        anchor=_place_form(driver.anchor),
        phase=driver.phase,
        task_id=None if driver.task is None else driver.task.task_id,
        route=None if driver.route is None else route_form(driver.route),
        # Mostly the very same.
        kept=None if driver.kept is None or driver.kept is driver.route else route_form(driver.kept),
        plain={name: getattr(driver, name) for name in _PLAIN} | {"same": driver.kept is driver.route},
    )


def _restore_driver(driver: Driver, form: SavedDriver, site: CompiledMap, book: TaskBook) -> None:
    driver.node, driver.phase = form.node, form.phase
    driver.anchor = None if form.anchor is None else _place(form.anchor)
    driver.task = None if form.task_id is None else book.open[form.task_id]
    driver.route = None if form.route is None else plan_of(form.route, site)
    driver.kept = None if form.kept is None else plan_of(form.kept, site)
    if form.plain["same"]:
        driver.kept = driver.route
    for name in _PLAIN:
        setattr(driver, name, form.plain[name])


def _place_form(anchor: Anchor | None) -> tuple[bool, int, int | None] | None:
    match anchor:
        case None:
            return None
        case OnEdge(edge, s_um):
            return True, edge, s_um
        case AtNode(node, yaw):
            return False, node, yaw


def _place(form: tuple[bool, int, int | None]) -> Anchor:
    on_edge, place, at = form
    return OnEdge(place, at or 0) if on_edge else AtNode(place, at)
