"""The fleets of a server: each open engine has a loop, each loop its trucks, simulated or real.

The settings of simulated trucks are a file beside the journal of a fleet; without it the fleet expects real trucks. The
compiled map is another one, so that readers of the journal need not compile it; if it is missing or damaged it is
compiled again.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Annotated, TypeVar

import msgspec
import structlog
from fastapi import Path

from pendula.demo import fleet as demo
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import MapDamaged
from pendula.fleet.runs.incidents import MAP_FILE
from pendula.fleet.runs.recording import find_map, keep_map
from pendula.fleet.scenarios.model import Scenario
from pendula.kernel.disk import RealDisk
from pendula.kernel.engine import NoOutside, Outside
from pendula.kernel.journal import FileJournal
from pendula.kernel.limits import GIB
from pendula.server.data_directory import NAME
from pendula.server.errors import EngineUnavailable, HttpRefused
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.runtime.scheduler_spec import Host
from pendula.server.runtime.supervisor import Supervisor
from pendula.server.schedulers.fleet.compile_process import CompileProcess
from pendula.server.schedulers.fleet.loop import FleetLoop, ServedJournal
from pendula.server.schedulers.fleet.metrics import FleetMetrics
from pendula.server.schedulers.fleet.trucks import Simulation
from pendula.server.views import State

SIMULATION_FILE = "simulation.json"
# Requests that wait while a map is compiled.
MOST_WAITING_MAPS = 4
# Limits of the compile process: several times what the largest allowed map needs.
MAP_CPU_SECONDS = 60
MAP_MEMORY_BYTES = 2 * GIB
BASE = "/api/v1/fleet"
FLEET = BASE + "/{fleet}"
FleetName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class MapsWait(HttpRefused):
    """Other maps are being compiled or wait for it. Try again in a moment."""

    code = "too_many_maps"
    status = 503
    retry_after = 5


class MapCompiler:
    """Compiles one map at a time, with a short queue: many at once would take the threads that fleets tick in. Large
    maps are compiled in a separate process."""

    def __init__(self) -> None:
        self._free = asyncio.Lock()
        self._jobs = 0
        self._process: CompileProcess | None = None
        self._closed = False

    def compile_in_process(self, scenario: Scenario) -> CompiledMap:
        """Compile a large map, inside a `run`. Raises `MapRefused`, `CompilerStopped`."""
        self._process = process = CompileProcess(MAP_CPU_SECONDS, MAP_MEMORY_BYTES)
        if self._closed:
            process.stop()
        return process.run(scenario.source, scenario.profiles, scenario.compile_params)

    def close(self) -> None:
        self._closed = True
        if self._process is not None:
            self._process.stop()

    async def run(self, make: Callable[[], T]) -> T:
        """Run `make` in a thread when it is its turn. Raises `MapsWait` if the queue is full."""
        if self._jobs > MOST_WAITING_MAPS:
            raise MapsWait(f"{self._jobs} maps are being compiled or wait for it; try again in a moment")
        self._jobs += 1
        # If the client goes away the thread continues, and the next one waits for its end.
        return await asyncio.shield(asyncio.get_running_loop().create_task(self._in_turn(make)))

    async def _in_turn(self, make: Callable[[], T]) -> T:
        try:
            async with self._free:
                return await asyncio.to_thread(make)
        finally:
            self._jobs -= 1


class Fleets:
    """The store of the scheduler `fleet`."""

    def __init__(self, host: Host, _: FilePath) -> None:
        self._demo = host.settings.demo
        self._loops: dict[str, FleetLoop] = {}
        self._fault_clearer: demo.FaultClearer | None = None
        self.map_compiler = MapCompiler()
        self.metrics = FleetMetrics(host.metrics.registry, lambda: self._loops)

    @property
    def outside(self) -> Outside:
        return NoOutside()

    def loop(self, name: str) -> FleetLoop:
        """Raises `EngineUnavailable` for a fleet that is starting."""
        loop = self._loops.get(name)
        if loop is None:
            raise EngineUnavailable(f"The fleet {name!r} is starting; try again in a moment", engine=name)
        return loop

    async def engine_opened(self, host: EngineHost) -> None:
        if host.state is not State.READY:
            return
        simulation = await asyncio.to_thread(self._simulation, host)
        if host.closed:
            return
        loop = self._loops[host.name] = FleetLoop(host, simulation, self.metrics)
        await asyncio.to_thread(_keep_map_beside, loop)
        if self._is_demo(host):
            self._fault_clearer = demo.FaultClearer(loop)

    async def engine_closed(self, host: EngineHost) -> None:
        loop = self._loops.pop(host.name, None)
        if loop is not None:
            await loop.close()

    async def close(self) -> None:
        self.map_compiler.close()
        if self._fault_clearer is not None:
            await self._fault_clearer.close()
        await asyncio.gather(*(loop.close() for loop in self._loops.values()))

    def _is_demo(self, host: EngineHost) -> bool:
        return self._demo and host.name == demo.NAME

    def _simulation(self, host: EngineHost) -> Simulation | None:
        """The simulation with which the fleet was created; None for real trucks."""
        directory = getattr(host.journal, "directory", None)
        try:
            if isinstance(directory, FilePath) and (directory / SIMULATION_FILE).exists():
                return msgspec.json.decode((directory / SIMULATION_FILE).read_bytes(), type=Simulation | None)
        except (OSError, ValueError) as error:
            log.warning("simulation_lost", fleet=host.name, problem=str(error))
            return None
        return Simulation(demo.WORLD, demo.SEED, demo.SPEED) if self._is_demo(host) else None


def opened(inner: FileJournal) -> ServedJournal:
    """The journal of a fleet; the map beside it is registered for the engine."""
    try:
        find_map(inner.disk)
    except MapDamaged as error:
        log.warning("map_unusable", problem=error.message)
        inner.disk.remove(MAP_FILE)
    return ServedJournal(inner)


def _keep_map_beside(loop: FleetLoop) -> None:
    """Write the compiled map beside the journal if it is missing."""
    folder, site = loop.folder, loop.engine.site
    if folder is None or (folder / MAP_FILE).exists():
        return
    disk = RealDisk(folder)
    try:
        keep_map(disk, site)
    except OSError as error:
        log.warning("map_not_kept", fleet=loop.host.name, problem=str(error))
    finally:
        disk.close()


def fleets_of(supervisor: Supervisor) -> Fleets:
    fleets = supervisor.store("fleet")
    assert isinstance(fleets, Fleets)
    return fleets


def loop_of(supervisor: Supervisor, name: str) -> FleetLoop:
    # Raises unless the engine is known and open.
    assert supervisor.host("fleet", name).driver
    return fleets_of(supervisor).loop(name)
