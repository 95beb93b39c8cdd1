"""Traffic of a fleet on a site: one atomic, deterministic tick after the other.

The order of inputs does not matter, no clock is read, nothing is random. On any internal error the old state stays and
every truck is told to stop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pendula.fleet.contracts.traffic import Alert, LockResult, RollingTargetCommand
from pendula.fleet.liveness.certificate import Certificate, certify
from pendula.fleet.model import Finding, Fleet
from pendula.fleet.routing.planner import Closed
from pendula.fleet.routing.route_plan import RoutePlan
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tick import phases, reasons
from pendula.fleet.tick.aiming import aim, result
from pendula.fleet.tick.observing import TruckReport
from pendula.fleet.tick.phases import Draft, RefusedRoute
from pendula.fleet.traffic.demand import Demand
from pendula.fleet.traffic.grants import Effort, Rule, accept_route
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.traffic.params import TrafficParams, faults, short_um
from pendula.fleet.traffic.records import Record
from pendula.fleet.traffic.resources import Exclusion
from pendula.fleet.traffic.track import NEVER_UM, Ground
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.kernel.errors import InputRefused


class TrafficRefused(InputRefused):
    """A fleet that cannot run automatically on a map. Facts: `findings`, sentences that say what is wrong."""

    code = "traffic_refused"


@dataclass(frozen=True, slots=True)
class TickInputs:
    """What a tick decides on. `routes` are new or changed ones only, complete to rest."""

    now_ms: int
    reports: tuple[TruckReport, ...] = ()
    routes: tuple[RoutePlan, ...] = ()


@dataclass(frozen=True, slots=True)
class TickOutputs:
    """What a tick decided, each sorted by robot id."""

    tick: int
    now_ms: int
    results: tuple[LockResult, ...]
    commands: tuple[RollingTargetCommand, ...]
    accepted_routes: tuple[RoutePlan, ...] = ()
    refused_routes: tuple[RefusedRoute, ...] = ()
    alerts: tuple[Alert, ...] = ()
    error: str | None = None


class Traffic:
    """Locks, routes and targets of one fleet. `closed` is what every truck keeps off: plan routes with it."""

    PHASES = (
        phases.observe,
        phases.release_the_passed,
        phases.rank,
        phases.admit_routes,
        phases.grant,
    )

    def __init__(
        self,
        site: CompiledMap,
        fleet: Fleet,
        profiles: Mapping[str, RobotProfile],
        params: TrafficParams,
        certificate: Certificate,
        override: bool,
    ) -> None:
        self.site = site
        self.params = params
        self.certificate = certificate
        self.override = override
        self.tick_number = 0
        self.now_ms = 0
        self._ground = Ground(site, params.node_lock_policy)
        trucks = sorted(fleet.trucks, key=lambda one: one.robot_id)
        self._records = [
            Record(
                site=site,
                number=number,
                robot_id=truck.robot_id,
                profile=profiles[truck.profile_id],
                rest=site.node_number[truck.park_node_id],
                short_um=short_um(profiles[truck.profile_id], params),
                node=site.node_number[truck.park_node_id],
            )
            for number, truck in enumerate(trucks)
        ]
        self._numbers = {record.robot_id: record.number for record in self._records}
        self._exclusion = Exclusion.of_site(site)
        self._locks = LockState(self._exclusion, len(trucks))
        for record in self._records:
            _rest(record, self._locks)

    @classmethod
    def create(
        cls,
        site: CompiledMap,
        fleet: Fleet,
        profiles: Sequence[RobotProfile],
        params: TrafficParams | None = None,
        *,
        override: bool = False,
    ) -> Self:
        """Traffic of a fleet whose trucks stand in their rest nodes. Raises `TrafficRefused` where parameters
        contradict each other, and for a map that is not LIVE for the fleet, unless the operator overrides that."""
        params = params or TrafficParams()
        wrong = list(faults(params, profiles, site.params))
        certificate, findings = certify(site, fleet, profiles)
        if certificate is None or wrong:
            wrong += _sentences(findings)
            raise TrafficRefused("traffic cannot start: " + "; ".join(wrong), findings=wrong)
        if not certificate.live and not override:
            wrong = _sentences(findings)
            raise TrafficRefused("the map is not LIVE for this fleet: " + "; ".join(wrong), findings=wrong)
        by_id = {profile.profile_id: profile for profile in profiles}
        return cls(site, fleet, by_id, params, certificate, override=not certificate.live)

    @property
    def closed(self) -> dict[str, Closed]:
        return self.certificate.closed

    def tick(self, inputs: TickInputs) -> TickOutputs:
        """One atomic step."""
        draft = Draft(
            now_ms=inputs.now_ms,
            reports=inputs.reports,
            routes=inputs.routes,
            ground=self._ground,
            params=self.params,
            rule=Rule.WITNESS if self.params.refuge else Rule.OFF,
            records=[record.copied() for record in self._records],
            numbers=self._numbers,
            locks=self._locks,
            effort=Effort(),
        )
        for phase in self.PHASES:
            phase(draft)
        commands = tuple(aim(record, inputs.now_ms, self.params) for record in draft.records)
        self._records = draft.records
        self.tick_number += 1
        self.now_ms = inputs.now_ms
        return TickOutputs(
            tick=self.tick_number,
            now_ms=inputs.now_ms,
            results=tuple(result(record, draft.records, inputs.now_ms, None) for record in draft.records),
            commands=commands,
            accepted_routes=tuple(draft.accepted),
            refused_routes=tuple(draft.refused),
        )

    def why(self, robot_id: str) -> reasons.Reason:
        """Why a truck stands, with the chain of blockers to its root."""
        return reasons.why(self._records[self._numbers[robot_id]], self._records, self.now_ms, None)


def _sentences(findings: Sequence[Finding]) -> list[str]:
    return [f"{one.code.value}: {one.message}" for one in findings]


def _rest(record: Record, locks: LockState) -> None:
    """A truck stands in its rest node and holds what that takes."""
    site = record.site
    held = set(site.standing_set(record.rest, record.short_um))
    sections = {number for cell in held for number in site.sections_of_cell.get(cell, ())}
    held |= {site.token(number) for number in sections}
    record.held = {resource: 0 if resource < len(site.cells) else NEVER_UM for resource in sorted(held)}
    row = sorted(held)
    answer = accept_route(locks, record.number, Demand.of_rows([row], [row]), 0)
    assert answer is not None
