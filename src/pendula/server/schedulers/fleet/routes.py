"""The scheduler `fleet` over HTTP: fleets are created from scenarios, with simulated trucks or a gateway.

State, journal, reasons and stream are the routes of every engine. Only the loop of a fleet submits ticks; requests wait
for the next tick, which answers them.
"""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from pendula.demo import fleet as demo
from pendula.documents import Document, read_bytes
from pendula.fleet.contracts import LockSnapshot
from pendula.fleet.engine import FleetEngine, config_form, read_config
from pendula.fleet.gateway import LAST_MS
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.runs import record_of_tick
from pendula.fleet.runs.recording import CHECKPOINT_TICKS
from pendula.fleet.scenarios import Run
from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.scenarios.reading import read_scenario
from pendula.kernel import canonical
from pendula.kernel.driver import Driver
from pendula.kernel.limits import SNAPSHOT_EVERY
from pendula.server.api.engines import LARGEST_N, RecordNumber, look_at
from pendula.server.api.openapi import answers
from pendula.server.api.requests import Supervised, Viewer, limits_of
from pendula.server.data_directory import NAME
from pendula.server.errors import HttpRefused, InvalidRequest, json_response
from pendula.server.runtime.engine_host import Question
from pendula.server.runtime.past import event_sentence
from pendula.server.runtime.scheduler_spec import Lifecycle, New, SchedulerSpec, Sentences
from pendula.server.runtime.supervisor import Supervisor
from pendula.server.schedulers.fleet import alerts, commands, views
from pendula.server.schedulers.fleet.compile_process import CompilerStopped
from pendula.server.schedulers.fleet.fleets import (
    FLEET,
    SIMULATION_FILE,
    FleetName,
    Fleets,
    MapCompiler,
    fleets_of,
    loop_of,
    opened,
)
from pendula.server.schedulers.fleet.trucks import Simulation
from pendula.server.settings import Settings
from pendula.server.views import EngineSummary, encode_view

FASTEST = 20
# A map of this many edges, counting both directions, compiles in a few seconds of CPU time.
MOST_EDGES = 5_000
# Larger maps are compiled in a separate process.
MOST_EDGES_HERE = 500
# A tick with this many trucks ends before the next one is due.
MOST_TRUCKS = 200

TOO_MUCH = ("too_long", "too_much_memory")
ELSEWHERE = "Split it into several maps, or run it with `pendula fleet run`"

NewName = Annotated[str, Query(pattern=f"^{NAME.pattern}$", description="Name of the fleet")]
Live = Annotated[bool, Query(description="Whether the trucks are real, behind a gateway")]
BeginMs = Annotated[
    int,
    Query(ge=0, le=LAST_MS, description="Start time of the fleet in ms, by the clocks of its trucks"),
]
TickNumber = Annotated[int, Query(ge=1, le=LARGEST_N, description="The number of a tick")]
Speed = Annotated[int, Query(ge=1, le=FASTEST, description="Speed of simulated trucks, as a multiple of real time")]


class MapTooLarge(HttpRefused):
    """The map would take too long, or too much memory, to compile. Facts: `edges`, `allowed`."""

    code = "map_too_large"
    status = 413


class FleetTooLarge(HttpRefused):
    """The fleet has more trucks than one server can control in time. Facts: `trucks`, `allowed`."""

    code = "fleet_too_large"
    status = 413


class ScriptNotServed(HttpRefused):
    """The scenario has tasks or events at set times; a served fleet gets these as requests. Facts: `members`."""

    code = "script_not_served"
    status = 422


class FleetSummary(EngineSummary, frozen=True):
    """One fleet; `t` is its time in milliseconds."""


class FleetList(Struct, frozen=True):
    fleets: list[FleetSummary]


router = APIRouter(tags=["fleet"])


# Creating fleets


async def begin(
    request: Request,
    supervisor: Supervised,
    name: NewName,
    live: Live = False,
    speed: Speed = 1,
    nowMs: BeginMs = 0,
) -> New:
    """A new fleet from a scenario as JSON."""
    # Checked before its map is compiled.
    supervisor.require_place("fleet", name)
    if live and speed != 1:
        raise InvalidRequest(f"speed={speed} is only for simulated trucks; remove speed or live", speed=speed)
    data = await request.body()
    limits = limits_of(request)
    compiler = fleets_of(supervisor).map_compiler
    run = await compiler.run(lambda: _prepare(read_bytes(data, limits=limits), compiler))
    simulation = None if live else Simulation(run.scenario.world, run.scenario.seed, speed)
    config = config_form(replace(read_config(run.config), begin_ms=nowMs)) if nowMs else run.config
    return New(name, config, files={SIMULATION_FILE: msgspec.json.encode(simulation)})


def _prepare(document: Document, compiler: MapCompiler) -> Run:
    """Read and compile a scenario, without its expectations, which are for runs with an end."""
    scenario = read_scenario(document, None)
    _require_no_script(scenario)
    _require_size(scenario)
    return Run(replace(scenario, expect=()), _compile_if_large(scenario, compiler))


def _compile_if_large(scenario: Scenario, compiler: MapCompiler) -> CompiledMap | None:
    """The compiled map if it is large; None for a small one, which `Run` compiles."""
    edges = len(scenario.source.edges)
    if edges <= MOST_EDGES_HERE:
        return None
    try:
        return compiler.compile_in_process(scenario)
    except CompilerStopped as stopped:
        if stopped.reason not in TOO_MUCH:
            raise
        raise MapTooLarge(f"{stopped.message}. {ELSEWHERE}", edges=edges, allowed=MOST_EDGES) from stopped


def _require_size(scenario: Scenario) -> None:
    edges, trucks = len(scenario.source.edges), len(scenario.robots)
    if edges > MOST_EDGES:
        raise MapTooLarge(
            f"The map has {edges} edges; at most {MOST_EDGES} are allowed over HTTP. {ELSEWHERE}",
            edges=edges,
            allowed=MOST_EDGES,
        )
    if trucks > MOST_TRUCKS:
        raise FleetTooLarge(
            f"The fleet has {trucks} trucks; at most {MOST_TRUCKS} are allowed over HTTP",
            trucks=trucks,
            allowed=MOST_TRUCKS,
        )


def _require_no_script(scenario: Scenario) -> None:
    events = (*scenario.events, *scenario.actions, *scenario.routes)
    script = {"tasks": scenario.tasks, "taskEvents": scenario.task_events, "events": events}
    members = [name for name, entries in script.items() if entries]
    if members:
        raise ScriptNotServed(
            f"A served fleet runs no script: remove {' and '.join(members)}, and post tasks to /tasks, goods and room "
            "to /stock, operator actions to /actions, faults to /faults while it runs",
            members=members,
        )


_SCENARIO: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["contractVersion", "name", "durationMs"],
                    "description": "A scenario file as JSON (FLT-13.13)",
                }
            }
        },
    }
}

LIFECYCLE = Lifecycle(
    noun="fleet",
    plural="fleets",
    begin=begin,
    takes=_SCENARIO,
    summary=FleetSummary,
    listing=FleetList,
    sentences=Sentences(
        make="Create a fleet from a scenario of `pendula fleet run`, as JSON, with its map and without tasks and "
        "events, which are posted later. Its trucks are simulated, or real with `live=true`. It starts to tick at "
        "once.",
        close="Close a fleet: it stops ticking, and real trucks stop by their watchdogs. It stays closed, also "
        "after a restart of the server, until it is opened again.",
        open="Open a closed fleet. No truck moves until every truck has reported.",
        remove="Remove a fleet and all its files.",
    ),
)


# Inspecting fleets


@router.get(FLEET + "/map", responses=answers(views.MapView), operation_id="fleet_map")
async def fleet_map(fleet: FleetName, supervisor: Supervised, _: Viewer) -> Response:
    """The map as polylines in millimetres, with outlines of the trucks; it does not change while a fleet is served."""
    return json_response(await loop_of(supervisor, fleet).map())


@router.get(FLEET + "/map/report", responses=answers(views.CompileReport), operation_id="fleet_compile_report")
async def fleet_compile_report(fleet: FleetName, supervisor: Supervised, _: Viewer) -> Response:
    """The compile report of the map: its hashes, and every warning and note with its remedy."""
    return json_response(canonical.encode(views.report_of_compiler(loop_of(supervisor, fleet).engine)))


@router.get(FLEET + "/now", responses=answers(views.FleetNow), operation_id="fleet_now")
async def fleet_now(fleet: FleetName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None) -> Response:
    """Trucks, bands, stop lines, reasons, tasks and streams now, or after record `at`."""
    host = supervisor.host("fleet", fleet)
    return await look_at(supervisor, host, at, _now)


@router.get(FLEET + "/robots", responses=answers(views.RobotList), operation_id="fleet_robots")
async def fleet_robots(fleet: FleetName, supervisor: Supervised, _: Viewer, at: TickNumber | None = None) -> Response:
    """Every truck that has reported, as a `RobotState`, now or after tick `at`."""
    return await _contract(supervisor, fleet, _robots, at)


@router.get(FLEET + "/locks", responses=answers(LockSnapshot), operation_id="fleet_locks")
async def fleet_locks(fleet: FleetName, supervisor: Supervised, _: Viewer, at: TickNumber | None = None) -> Response:
    """All locks as a `LockSnapshot`, now or after tick `at`."""
    return await _contract(supervisor, fleet, _locks, at)


@router.get(FLEET + "/lock-results", responses=answers(views.LockResultList), operation_id="fleet_lock_results")
async def fleet_lock_results(
    fleet: FleetName, supervisor: Supervised, _: Viewer, at: TickNumber | None = None
) -> Response:
    """The grant of every truck as a `LockResult`, with the reason for its limit, now or in tick `at`."""
    return await _contract(supervisor, fleet, _lock_results, at)


async def _contract(supervisor: Supervisor, fleet: str, form: Question, tick: int | None) -> Response:
    host = supervisor.host("fleet", fleet)
    if tick is None:
        return await look_at(supervisor, host, None, form)
    last = await host.ask(_last_tick)
    at = await supervisor.recorded(lambda: record_of_tick(host.journal, tick, last))
    return await look_at(supervisor, host, at, form)


def _now(engine: FleetEngine, n: int) -> bytes:
    return encode_view(views.now_of(engine, n))


def _robots(engine: FleetEngine, _: int) -> bytes:
    return canonical.encode(views.robots_form(engine))


def _locks(engine: FleetEngine, _: int) -> bytes:
    return canonical.encode(engine.traffic.snapshot())


def _lock_results(engine: FleetEngine, _: int) -> bytes:
    return canonical.encode(views.results_form(engine))


def _last_tick(driver: Driver[Any, Any]) -> int:
    assert isinstance(driver.engine, FleetEngine)
    return driver.engine.traffic.tick_number


@router.get(FLEET + "/alerts", responses=answers(alerts.AlertList), operation_id="fleet_alerts")
async def fleet_alerts(fleet: FleetName, supervisor: Supervised, _: Viewer) -> Response:
    """Alerts and incidents since the fleet was opened, oldest first, after those whose cause existed before."""
    return json_response(encode_view(alerts.AlertList(list(loop_of(supervisor, fleet).alerts))))


def scheduler_for(settings: Settings) -> SchedulerSpec:
    return SchedulerSpec(
        name="fleet",
        title="Fleet",
        sentence="Traffic and tasks of autonomous forklifts: never a collision, never a jam.",
        engine=FleetEngine,
        engines={demo.NAME: demo.demo_config()} if settings.demo else {},
        routers=(router, commands.router),
        lifecycle=LIFECYCLE,
        store=Fleets,
        commanded=False,
        journal=opened,
        snapshot_every=min(CHECKPOINT_TICKS, settings.allowed(SNAPSHOT_EVERY)),
        incidents={"alert": alerts.trouble_of, "incident": alerts.incident_of, "tick_failed": event_sentence},
    )
