"""A journal as JSON Lines: one `TickRecord` of the contract for each tick, members in canonical order.

The journal holds inputs and digests; locks, requests, results and commands are replayed and compared with the record.
Tick durations and distances of envelopes are in no journal, so they are null.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from pendula.fleet.contracts import traffic as contract
from pendula.fleet.contracts.traffic import TaskState
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import AlertRaised, FleetEvent, RouteAccepted, TaskMoved
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.runs.reading import Moment, moments
from pendula.fleet.runs.verifying import require_same
from pendula.fleet.trucks.profiles import hash_of
from pendula.fleet.views.robot_state import robot_state
from pendula.kernel.canonical import Json, digest, encode
from pendula.kernel.journal import Journal


def lines(journal: Journal, tick: int | None = None, upto: int | None = None) -> Iterator[bytes]:
    """The ticks of a range, or all; raises `ReplayDiffers` if a tick differs from its record."""
    for engine, moment in moments(journal, tick):
        if upto is not None and moment.ticked.tick > upto:
            return
        require_same(moment)
        yield encode(tick_record(engine, moment))


def tick_record(engine: FleetEngine, moment: Moment) -> Json:
    """One tick in the form of the contract."""
    outputs, records = engine.last, engine.traffic.records
    assert outputs is not None
    robots = [robot_state(truck, outputs.now_ms, *tasks_of(engine, truck.number)) for truck in records]
    requests = [engine.traffic.request(truck.robot_id) for truck in records]
    routes = {(route.route_id, route.revision): route.form() for route in engine.orders_out.routes}
    record = contract.TickRecord(
        contractVersion=CONTRACT_VERSION,
        tick=outputs.tick,
        nowMs=outputs.now_ms,
        hashes=contract.TickHashes(
            compiledMapHash=engine.site.compiled_hash,
            robotProfileHash=hash_of(engine.config.profiles),
            paramsHash=engine.config.traffic.digest(),
        ),
        inputs=contract.TickInputsForm(
            robotStates=tuple(_plain(robot) for robot in robots if robot is not None),
            routePlans=tuple(routes[key] for key in sorted(routes)),
            taskEvents=tuple(map(_plain, moment.command.task_events)),
            operatorActions=tuple(map(_plain, moment.command.operator_actions)),
        ),
        decisions=contract.TickDecisions(
            assignments=tuple(_plain(event) for event in moment.computed if _is_assignment(event)),
            replans=tuple(_plain(event) for event in moment.computed if isinstance(event, RouteAccepted)),
            requests=tuple(_plain(request) for request in requests if request is not None),
            lockResults=tuple(map(_plain, outputs.results)),
            snapshotDigest="sha256:" + digest(_plain(outputs.snapshot())),
        ),
        outputs=contract.TickOutputsForm(commands=tuple(map(_plain, engine.orders_out.commands))),
        metrics=contract.TickMetrics(tickUs=None, minEnvelopeDistanceM=None),
        alerts=tuple(event.alert for event in moment.computed if isinstance(event, AlertRaised)),
    )
    form: Json = _plain(record)
    return form


def tasks_of(engine: FleetEngine, number: int) -> tuple[str | None, str | None]:
    """The current task of a truck, and the one that it starts at a later node (FLT-TASK-10)."""
    task = engine.dispatch.task_of(number)
    if task is None:
        return None, None
    return (None, task.task_id) if task.state is TaskState.PENDING_PREEMPT else (task.task_id, None)


def _is_assignment(event: FleetEvent) -> bool:
    return isinstance(event, TaskMoved) and event.state in (TaskState.ASSIGNED, TaskState.PENDING_PREEMPT)


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, builtin_types=(Decimal,))
