"""The data that the phases of a tick change; it takes effect only when all phases are done."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import structs

from pendula.fleet.contracts import Alert
from pendula.fleet.map.planner import Closed
from pendula.fleet.map.routes import RoutePlan
from pendula.fleet.tick import reasons
from pendula.fleet.tick.aiming import Aim, TickPorts
from pendula.fleet.tick.new_routes import Wayfinder
from pendula.fleet.tick.observing import DroppedReport, TruckReport
from pendula.fleet.tick.orders import AppliedOrder, Order
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.reasons import resource_id
from pendula.fleet.tick.records import Doubt, Record, Stop
from pendula.fleet.tick.track import Ground
from pendula.fleet.tick.turns import Directions, Queue
from pendula.fleet.traffic.grants import Effort, Rule, cut_off
from pendula.fleet.traffic.lock_state import Closing, LockState
from pendula.fleet.traffic.search import LOOKS
from pendula.kernel.canonical import Json

# Most branches that looks at trucks may cost in a single search; with 100 trucks a futile one would need several times
# as many.
_LOOKS_OF_A_SEARCH = 20
# Up to this many trucks eight looks count as a branch; in a larger fleet fewer, since the rest of its tick costs more.
_SMALL_FLEET = 40
_LEAST_LOOKS = 2


@dataclass(frozen=True, slots=True)
class RefusedRoute:
    """A rejected route. `cycle`: trucks of which each would be blocked by the next."""

    robot_id: str
    route_id: str
    revision: int
    code: str
    cycle: tuple[str, ...] = ()


@dataclass(slots=True)
class Draft:
    """A tick in the making."""

    tick: int
    now_ms: int
    reports: tuple[TruckReport, ...]
    routes: tuple[RoutePlan, ...]
    orders: tuple[Order, ...]
    ground: Ground
    params: TrafficParams
    rule: Rule
    records: list[Record]
    numbers: dict[str, int]
    # Edges and turns that each truck must avoid.
    closed: Mapping[str, Closed]
    locks: LockState
    # Search budgets for units and for routes: refused routes leave the budget of units as it is.
    effort: Effort
    admissions: Effort
    directions: Directions
    two_way: frozenset[int]
    # Detours for trucks under way.
    ways: Wayfinder
    # Since when cycles of waiting trucks exist, and the number of alerts so far.
    cycles: dict[tuple[int, ...], int]
    alert_count: int
    ports: TickPorts
    # Places closed by operators, by name.
    closings: Mapping[str, Closing]
    starving: Record | None = None
    order: list[Record] = field(default_factory=list)
    queue: Queue = field(default_factory=Queue)
    # Trucks that were already too fast to stop before their stop lines in the last tick.
    too_fast: set[int] = field(default_factory=set)
    # Trucks whose held resources changed.
    touched: set[int] = field(default_factory=set)
    accepted: list[RoutePlan] = field(default_factory=list)
    refused: list[RefusedRoute] = field(default_factory=list)
    dropped: list[DroppedReport] = field(default_factory=list)
    applied: list[AppliedOrder] = field(default_factory=list)
    aims: list[Aim] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    notices: list[Alert] = field(default_factory=list)

    def alert(self, code: str, severity: str, since_ms: int, robot_id: str | None = None, /, **details: Json) -> None:
        self.alert_count += 1
        self.alerts.append(reasons.alert(self.alert_count, code, severity, since_ms, robot_id, **details))

    def notice(self, code: str, since_ms: int, robot_id: str, /, **details: Json) -> None:
        """An alert of severity INFO that needs no action."""
        self.alert_count += 1
        self.notices.append(reasons.alert(self.alert_count, code, "INFO", since_ms, robot_id, **details))

    def failed(self, record: Record, cut: list[int]) -> None:
        """Alert that a truck has failed, with the trucks that it cuts off."""
        kept = len(self.locks.truck(record.number).held)
        cause = record.stop_code if record.doubt is None else record.doubt.code
        code = reasons.FAILURE[cause or Stop.OPERATOR]
        details: dict[str, Json] = {"keptResources": kept, "cutOff": self.names(cut)}
        if cause == Stop.STUCK:
            details |= self._diagnosis(record)
        self.alert(code, "WARN", self.now_ms, record.robot_id, **details)

    def silent(self, record: Record, doubt: Doubt) -> None:
        """Alert that a truck is silent, once per doubt (FLT-FAIL-9), also after an alert for another failure."""
        truck = self.locks.truck(record.number)
        if truck.frozen:
            cut = self.names(cut_off(self.locks))
            self.alert(
                reasons.ROBOT_OFFLINE, "WARN", self.now_ms, record.robot_id, keptResources=len(truck.held), cutOff=cut
            )
        if truck.frozen or doubt.code == Stop.OFFLINE:
            record.doubt = structs.replace(doubt, silent=True)

    def never_heard(self, record: Record, since_ms: int) -> None:
        """Alert that a truck has never reported; it keeps the place where it should stand."""
        kept = len(self.locks.truck(record.number).held)
        self.alert(reasons.ROBOT_OFFLINE, "WARN", since_ms, record.robot_id, keptResources=kept, neverHeard=True)

    def _diagnosis(self, record: Record) -> dict[str, Json]:
        """Details of a stuck truck for its alert (FLT-FAIL-13)."""
        waiting = record.waiting
        by = None if waiting is None or waiting.by is None else self.records[waiting.by].robot_id
        resource = None if waiting is None else waiting.resource
        return {
            "command": record.stuck_at,
            "blocker": by,
            "resource": None if resource is None else resource_id(record.site, resource),
            "holdPointUm": record.hold_um,
            "lastAckSeq": record.ack_seq,
        }

    def foreign(self, record: Record, stranger: Record) -> None:
        """Alert that a lost truck may be where another one may drive; if both stand too close at the start, both get an
        alert."""
        close = record.too_close
        code = reasons.OCCUPANCY_CONFLICT if close else reasons.FOREIGN_OCCUPANCY
        by: dict[str, Json] = {"by": stranger.robot_id, "requirement": "FLT-FAIL-15" if close else "FLT-FAIL-6"}
        self.alert(code, "ERROR", self.now_ms, record.robot_id, **by)

    @property
    def missing(self) -> Record | None:
        """The first truck that has not reported since the start and was not declared absent."""
        return next(
            (record for record in self.records if record.unheard and not (record.absent or record.is_out)), None
        )

    def names(self, numbers: Iterable[int]) -> list[Json]:
        return [self.records[number].robot_id for number in numbers]


def efforts(params: TrafficParams, trucks: int) -> tuple[Effort, Effort]:
    """Search budgets of a tick for units and for routes."""
    for_routes = params.search_nodes_per_tick // 2
    looks = max(_LEAST_LOOKS, LOOKS * _SMALL_FLEET // max(_SMALL_FLEET, trucks))
    for_units = params.search_nodes_per_tick - for_routes
    return (
        Effort(params.search_nodes, for_units, _LOOKS_OF_A_SEARCH, looks),
        Effort(params.search_nodes, for_routes, _LOOKS_OF_A_SEARCH, looks),
    )
