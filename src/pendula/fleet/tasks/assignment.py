"""Which truck takes which task, or why none does: of the free trucks the one that reaches the pick first.

Tasks are looked at by priority, age and id, or by how many trucks are on their way to their stations where they may
overtake; trucks by the time they need and by id: no tie is left to chance. A task that no truck can take blocks no
other task.
"""

from collections.abc import Sequence

from msgspec import Struct

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import Closed
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.sentences import task_sentence
from pendula.fleet.tasks.book import Task, TaskBook, UnderWay
from pendula.fleet.tasks.drivers import Driver
from pendula.fleet.tasks.model import DispatchParams
from pendula.fleet.tasks.tours import Tours
from pendula.fleet.tasks.ways import Ways
from pendula.fleet.traffic.demand import Closing
from pendula.kernel.canonical import Json

# A task waits that no truck can do while something is closed.
WAY_CLOSED = "WAY_CLOSED"


class TaskReason(Struct, frozen=True, rename="camel"):
    """Why a task is not done yet: a code with facts, and the truck that has it."""

    task_id: str
    state: TaskState
    code: str
    facts: dict[str, Json]
    since_ms: int
    robot_id: str | None = None

    @property
    def message(self) -> str:
        return task_sentence(self.task_id, self.state.value, self.code, self.robot_id, self.facts)


class Assignment:
    """Assignment of tasks to trucks."""

    def __init__(
        self,
        site: CompiledMap,
        drivers: Sequence[Driver],
        book: TaskBook,
        ways: Ways,
        tours: Tours,
        params: DispatchParams,
        usual: Sequence[Closed] = (),
    ) -> None:
        """`usual`: what each truck must avoid while nothing else is closed."""
        self._site = site
        self._drivers = drivers
        self._book = book
        self._ways = ways
        self._tours = tours
        self._params = params
        self._usual = usual
        # Places closed by operators.
        self.closings: tuple[Closing, ...] = ()

    def assign(self, now_ms: int) -> None:
        """Assign tasks to free trucks, at most `most_a_step` in one step."""
        free = [other for other in self._drivers if self._may_be_sent(other, now_ms)]
        if not free or not self._book.ready:
            return
        under_way, tried = self._book.under_way(), set[str]()
        for _ in range(self._params.most_a_step):
            taken = self._first_handed_out(under_way, tried, free, now_ms)
            if taken is None:
                return
            task, driver = taken
            # Counts for the limits of two stations.
            under_way.take(task.order)
            free = [other for other in free if other is not driver]

    def _first_handed_out(
        self, under_way: UnderWay, tried: set[str], free: Sequence[Driver], now_ms: int
    ) -> tuple[Task, Driver] | None:
        """The first task that a free truck takes, and the truck; tasks before it are added to `tried`."""
        if not free:
            return None
        for task in self._book.in_turn(under_way, tried, self._params.overtake_ms):
            driver = None
            if self._book.exhausted(task, under_way) is None:
                driver = self._hand_out(task, free, now_ms)
            if driver is not None:
                return task, driver
            tried.add(task.task_id)
        return None

    def _hand_out(self, task: Task, free: Sequence[Driver], now_ms: int) -> Driver | None:
        """Assign a task to the nearest truck that can take it."""
        etas = sorted(
            (eta, driver.robot_id, driver.number)
            for driver in self._named(task, free)
            if (eta := self._ways.eta_ms(driver, task.order)) is not None
        )
        for eta, _, number in etas:
            if self._take(self._drivers[number], task, now_ms):
                task.eta_ms, task.candidates = eta, tuple((name, driver) for driver, name, _ in etas)
                return self._drivers[number]
        return None

    def _named(self, task: Task, drivers: Sequence[Driver]) -> list[Driver]:
        named = task.order.robot_ids
        return [driver for driver in drivers if not named or driver.robot_id in named]

    def _may_be_sent(self, driver: Driver, now_ms: int) -> bool:
        view = self._ways.view(driver)
        if not view.ok or view.paused or view.load or driver.gone or driver.faulty:
            return False
        if driver.is_free:
            return driver.node != driver.rest or now_ms >= driver.again_ms
        return now_ms >= driver.again_ms and self._ways.may_turn_round(driver)

    def _take(self, driver: Driver, task: Task, now_ms: int) -> bool:
        number = self._site.node_number
        stops = number[task.order.pick_node_id], number[task.order.drop_node_id]
        called_off = driver.phase is Phase.TO_PARK
        leaves_um = self._ways.leaves_um(driver) if called_off else 0
        made = self._ways.turn_round if called_off else self._ways.set_out
        route = made(driver, stops, "TASK_ASSIGNED")
        if route is None:
            return False
        self._tours.give(driver, Phase.TO_PICK, route)
        driver.task, driver.called_off, driver.leaves_um = task, called_off, leaves_um
        task.robot_id, task.assigned_ms = driver.robot_id, now_ms
        self._book.move(task, TaskState.PENDING_PREEMPT if called_off else TaskState.ASSIGNED, now_ms, "NEAREST")
        return True

    def why(self, task: Task, now_ms: int) -> TaskReason:
        """Why a task is in its state, as of the last step."""
        code, facts = self._reason(task, now_ms)
        return TaskReason(task.task_id, task.state, code, facts, task.since_ms, task.robot_id)

    def _reason(self, task: Task, now_ms: int) -> tuple[str, dict[str, Json]]:
        stations: dict[str, Json] = {"pickNodeId": task.order.pick_node_id, "dropNodeId": task.order.drop_node_id}
        match task.state:
            case TaskState.WAITING:
                return self._book.lacks(task) or "NEW", stations
            case TaskState.READY:
                return self._not_taken(task, self._book.under_way(), now_ms)
            case TaskState.ASSIGNED | TaskState.PENDING_PREEMPT:
                return self._not_admitted(task)
            case TaskState.HELD:
                return task.cause, self._held(task)
            case TaskState.IN_PROGRESS:
                return self._driver(task).shown_phase.value, stations
            case _:
                return task.cause, {"by": task.by}

    def _held(self, task: Task) -> dict[str, Json]:
        driver = next((driver for driver in self._drivers if driver.task is task), None)
        not_done = None if driver is None else driver.not_done(self._params.operation_timeout_ms)
        robot = None if driver is None else driver.robot_id
        return {"loaded": task.loaded, "cause": task.cause, "by": task.by, "robotId": robot, "notDone": not_done}

    def _not_taken(self, task: Task, under_way: UnderWay, now_ms: int) -> tuple[str, dict[str, Json]]:
        order = task.order
        limit = self._book.exhausted(task, under_way)
        if limit is not None:
            return limit, {}
        may = [driver for driver in self._named(task, self._drivers) if not driver.gone]
        # A failed truck also closes its own place, so do not ask whether it reaches the stations.
        failed = [driver for driver in may if self._ways.view(driver).failed]
        well = [driver for driver in may if driver not in failed]
        reaching = [driver for driver in well if self._ways.reaches(driver, order)]
        if not reaching and self._is_kept_off(task, may):
            return WAY_CLOSED, {"closed": self._closed_for(task)}
        if not reaching and failed:
            return "NO_FREE_TRUCK", {"failed": _names(failed), "others": _names(well)}
        if not reaching:
            return "UNREACHABLE", {}
        free = [driver for driver in reaching if self._may_be_sent(driver, now_ms)]
        if not free:
            return "NO_FREE_TRUCK", {"reaching": _names(reaching)}
        return "NEXT", {"free": _names(free)}

    def _is_kept_off(self, task: Task, drivers: Sequence[Driver]) -> bool:
        """Whether places closed by operators keep every truck from a task."""
        return bool(self.closings) and any(
            self._ways.would_reach(driver, task.order, self._usual[driver.number]) for driver in drivers
        )

    def _closed_for(self, task: Task) -> list[Json]:
        """The closed stations of a task; all closed places if both are open."""
        stations = (f"NODE:{task.order.pick_node_id}", f"NODE:{task.order.drop_node_id}")
        own = [closing for closing in self.closings if closing.resource in stations] or self.closings
        return [[closing.resource, closing.operator, closing.reason] for closing in own]

    def _not_admitted(self, task: Task) -> tuple[str, dict[str, Json]]:
        driver = self._driver(task)
        starving = next((view.robot_id for view in self._ways.views if view.starving), None)
        if driver.admitted:
            return "PENDING_PREEMPT", {}
        if starving is not None and starving != driver.robot_id:
            return "BARRED_BY_STARVATION", {"starving": starving}
        return "ROUTE_NOT_ADMITTED", {}

    def _driver(self, task: Task) -> Driver:
        return next(driver for driver in self._drivers if driver.task is task)


def _names(drivers: Sequence[Driver]) -> list[Json]:
    return [driver.robot_id for driver in drivers]
