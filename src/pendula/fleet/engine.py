"""The engine of the room: tick after tick, what trucks report and people want goes in, what was decided comes out.

It satisfies `pendula.kernel.engine.Engine`. The commands for the trucks are in `commands_out`, not in what is streamed:
whoever drives the engine sends them once the tick is written down.
"""

from collections.abc import Iterable
from typing import ClassVar, Self

import msgspec
from msgspec import UNSET

from pendula.fleet import explain, saving
from pendula.fleet.commands import Commands, Config, StartPlace, Tick
from pendula.fleet.compiled_sites import site_of
from pendula.fleet.contracts.traffic import RollingTargetCommand
from pendula.fleet.events import FleetEvent, TickLate
from pendula.fleet.routing.planner import Anchor, AtNode, OnEdge
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.telling import told
from pendula.fleet.tick.saving import SavedRoute, plan_of
from pendula.fleet.tick.traffic import TickInputs, TickOutputs, Traffic
from pendula.kernel.bodies import Nobody
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused


class BadConfig(InputRefused):
    """A fleet cannot be made of this configuration."""

    code = "bad_fleet_config"


class FleetEngine:
    """A fleet on its site. `last` is what the last tick decided, `commands_out` what of it may be sent."""

    room: ClassVar[str] = "fleet"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "ms"
    commands: ClassVar[object] = Commands
    events: ClassVar[object] = FleetEvent

    def __init__(self, config: Config, traffic: Traffic) -> None:
        self.config = config
        self.traffic = traffic
        self.outside: Outside = Nobody()
        self.last: TickOutputs | None = None
        self.commands_out: tuple[RollingTargetCommand, ...] = ()

    @classmethod
    def create(cls, config: Json) -> Self:
        """Raises `BadConfig`, `OtherMap`, or `TrafficRefused` for a fleet that may not run on its map."""
        told = read_config(config)
        if told.state is not UNSET:
            return cls._restored(told, encode(told.state))
        site = site_of(told)
        starts = {one.robot_id: _anchor(site, one) for one in told.starts}
        traffic = Traffic.create(site, told.fleet, told.profiles, told.traffic, starts=starts, override=told.override)
        return cls(told, traffic)

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        return cls._restored(read_config(config), state)

    @classmethod
    def _restored(cls, config: Config, state: bytes) -> Self:
        return cls(config, saving.restored(config, site_of(config), state))

    @property
    def site(self) -> CompiledMap:
        return self.traffic.site

    def state(self) -> bytes:
        return saving.encoded(self.traffic)

    def now(self) -> int:
        return self.traffic.now_ms

    def next_due(self) -> int:
        """A tick is due one period after the last."""
        return self.traffic.now_ms + (self.config.traffic.tick_period_ms if self.traffic.tick_number else 0)

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        match command:
            case Tick():
                return self._tick(command)

    def why(self, question: Json) -> Reason:
        """Why a truck stands, as `{"robot": id}`."""
        return explain.why(self.traffic, question)

    def broken(self) -> Iterable[str]:
        return self.traffic.broken()

    def _tick(self, command: Tick) -> Outcome[FleetEvent]:
        before_ms, began = self.traffic.now_ms, self.traffic.tick_number > 0
        if command.now_ms < before_ms:
            message = f"The clock went back from {before_ms} to {command.now_ms}; no truck is told anything"
            return Outcome(refusal=Refusal("time_went_back", message, {"nowMs": command.now_ms, "lastMs": before_ms}))
        plans = [self._plan(one) for one in command.routes]
        wrong = [one for one in plans if isinstance(one, Refusal)]
        if wrong:
            return Outcome(refusal=wrong[0])
        before = self.traffic.records
        routes = tuple(one for one in plans if isinstance(one, RoutePlan))
        outputs = self.traffic.tick(TickInputs(command.now_ms, command.reports, routes))
        gap = command.now_ms - before_ms
        late = began and gap > 2 * self.config.traffic.tick_period_ms
        self.last, self.commands_out = outputs, () if late else outputs.commands
        events = tuple(told(before, outputs, self.commands_out))
        return Outcome((*events, TickLate(outputs.tick, gap)) if late else events)

    def _plan(self, form: SavedRoute) -> RoutePlan | Refusal:
        try:
            return plan_of(form, self.site)
        except LookupError as wrong:
            message = f"Route {form.route_id!r} of {form.robot_id!r} has {wrong.args[0]}"
            return Refusal("route_off_the_map", message, {"routeId": form.route_id, "robotId": form.robot_id})


def read_config(config: Json) -> Config:
    """Raises `BadConfig` with the place of what is wrong."""
    try:
        return msgspec.convert(config, Config)
    except msgspec.ValidationError as trouble:
        raise BadConfig(f"This is not the configuration of a fleet: {trouble}") from None


def config_form(config: Config) -> Json:
    """The configuration as it is written into a journal."""
    form: Json = msgspec.to_builtins(config)
    return form


def _anchor(site: CompiledMap, place: StartPlace) -> Anchor:
    if place.edge_key is not None:
        number = next((n for n, one in enumerate(site.network.edges) if one.key == place.edge_key), None)
        if number is None:
            raise BadConfig(f"{place.robot_id!r} starts on {place.edge_key!r}, which is not on the map")
        return OnEdge(number, place.s_um)
    if place.node_id not in site.node_number:
        raise BadConfig(f"{place.robot_id!r} starts in {place.node_id!r}, which is not on the map")
    return AtNode(site.node_number[place.node_id], place.yaw_urad)
