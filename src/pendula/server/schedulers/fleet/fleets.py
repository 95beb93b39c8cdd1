"""The fleets of a server: each engine that is open has a loop, each loop its trucks, simulated or real.

How simulated trucks are lies beside the journal of a fleet, and is made and removed with it; where it is gone, real
trucks are waited for. So does its compiled map, so that neither the server nor anybody else who reads the journal need
compile it again; where it is gone or damaged it is made anew.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec
import structlog
from fastapi import Path

from pendula.fleet.engine import FleetEngine
from pendula.fleet.model import MapDamaged
from pendula.fleet.runs.incidents import MAP_FILE
from pendula.fleet.runs.recording import find_map, keep_map
from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.kernel import canonical
from pendula.kernel.bodies import NoOutside
from pendula.kernel.disk import RealDisk
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Outside
from pendula.kernel.journal import FileJournal
from pendula.kernel.limits import GIB
from pendula.server.data_directory import NAME
from pendula.server.errors import EngineUnavailable, HttpRefused, NotFound
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.hosting.scheduler_spec import Host
from pendula.server.hosting.supervisor import Supervisor
from pendula.server.schedulers.fleet.compiler_apart import CompilerApart
from pendula.server.schedulers.fleet.demo import DEMO_NAME, DEMO_SIMULATION, Caretaker
from pendula.server.schedulers.fleet.figures import Figures
from pendula.server.schedulers.fleet.life.loop import FleetLoop, ServedJournal
from pendula.server.schedulers.fleet.life.trucks import Simulation
from pendula.server.schedulers.fleet.views import now_of, results_form, robots_form
from pendula.server.views import State, encode_view

SIMULATION_FILE = "simulation.json"
# Maps that wait while one is compiled.
MOST_WAITING_MAPS = 4
# Of a process that compiles a large map: several times what the largest map allowed needs.
MAP_CPU_SECONDS = 60
MAP_MEMORY_BYTES = 2 * GIB
BASE = "/api/v1/fleet"
FLEET = BASE + "/{fleet}"
FleetName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class MapsWait(HttpRefused):
    """Other maps are being compiled, and some wait for that already. Try again in a moment."""

    code = "too_many_maps"
    status = 503
    retry_after = 5


class DrawingBoard:
    """Where maps are compiled: one after the other, and a short line of others. Every fleet needs threads for its own
    ticks; many maps at once would leave none. Large maps are compiled in a process of their own."""

    def __init__(self) -> None:
        self._free = asyncio.Lock()
        self._asked = 0
        self._apart: CompilerApart | None = None
        self._closed = False

    def compiled_apart(self, scenario: Scenario) -> CompiledMap:
        """A large map, compiled while fleets tick on; for what is made here. Raises `MapRefused`, `CompilerStopped`."""
        self._apart = apart = CompilerApart(MAP_CPU_SECONDS, MAP_MEMORY_BYTES)
        if self._closed:
            apart.stop()
        return apart.run(scenario.source, scenario.profiles, scenario.compile_params)

    def close(self) -> None:
        """Nobody waits for a map any more."""
        self._closed = True
        if self._apart is not None:
            self._apart.stop()

    async def work(self, make: Callable[[], T]) -> T:
        """What is made, in a thread, when it is its turn. Raises `MapsWait` where the line is long."""
        if self._asked > MOST_WAITING_MAPS:
            raise MapsWait(f"{self._asked} maps are being compiled or wait for it; try again in a moment")
        self._asked += 1
        # Whoever asked may go away: the thread goes on, and nobody begins before it is over.
        return await asyncio.shield(asyncio.get_running_loop().create_task(self._in_turn(make)))

    async def _in_turn(self, make: Callable[[], T]) -> T:
        try:
            async with self._free:
                return await asyncio.to_thread(make)
        finally:
            self._asked -= 1


class LastMoments:
    """The moment of each fleet that was asked for last, and its locks, as they are sent. All who ask between two ticks
    share one: many pages cost no more than one, and nobody looking costs nothing."""

    def __init__(self) -> None:
        self._moments = _Kept(lambda engine, n: encode_view(now_of(engine, n)))
        self._contracts = {name: _Kept(_without_record(form)) for name, form in CONTRACTS.items()}

    def now(self, driver: Driver[Any, Any]) -> bytes:
        return self._moments.of(driver)

    def contract(self, name: str) -> Callable[[Driver[Any, Any]], bytes]:
        """How one of `CONTRACTS` is read; the same each time, so that all who ask at once share the answer."""
        return self._contracts[name].of


# What a fleet is after a tick in the forms of the contract, as it is sent.
CONTRACTS: Mapping[str, Callable[[FleetEngine], bytes]] = {
    "robots": lambda engine: canonical.encode(robots_form(engine)),
    "locks": lambda engine: canonical.encode(engine.traffic.snapshot()),
    "lock-results": lambda engine: canonical.encode(results_form(engine)),
}


def _without_record(form: Callable[[FleetEngine], bytes]) -> Callable[[FleetEngine, int], bytes]:
    return lambda engine, _: form(engine)


class _Kept:
    """What was last made of each fleet, until its next record."""

    def __init__(self, make: Callable[[FleetEngine, int], bytes]) -> None:
        self._make = make
        self._kept: WeakKeyDictionary[Driver[Any, Any], tuple[int, bytes]] = WeakKeyDictionary()

    def of(self, driver: Driver[Any, Any]) -> bytes:
        """On the thread of the engine: its state is that after its last record."""
        n = driver.journal.next_n - 1
        kept = self._kept.get(driver)
        if kept is None or kept[0] != n:
            assert isinstance(driver.engine, FleetEngine)
            kept = self._kept[driver] = n, self._make(driver.engine, n)
        return kept[1]


class Fleets:
    """The store of the scheduler `fleet`."""

    def __init__(self, host: Host, folder: FilePath) -> None:
        self._folder = folder
        self._demo = host.settings.demo
        self._loops: dict[str, FleetLoop] = {}
        self._caretaker: Caretaker | None = None
        self.drawing_board = DrawingBoard()
        self.moments = LastMoments()
        self.figures = Figures(host.metrics.registry, self._served)

    @property
    def outside(self) -> Outside:
        return NoOutside()

    def loop(self, name: str) -> FleetLoop:
        """Raises `NotFound`, or `EngineUnavailable` for a fleet that is about to begin."""
        found = self._loops.get(name)
        if found is None:
            raise EngineUnavailable(f"The fleet {name!r} is starting; try again in a moment", engine=name)
        if found.host.closed:
            raise NotFound(
                f"The fleet {name!r} is not served", scheduler="fleet", engine=name, known=sorted(self._loops)
            )
        return found

    def _served(self) -> dict[str, FleetLoop]:
        return {name: one for name, one in self._loops.items() if not one.host.closed}

    async def engine_opened(self, host: EngineHost) -> None:
        if host.closed or host.state is not State.READY:
            return
        # Here, not when they close: nobody tells of that, and fleets come and go under ever new names.
        over = [name for name, one in self._loops.items() if name == host.name or one.host.closed]
        for loop in [self._loops.pop(name) for name in over]:
            await loop.close()
        simulation = await asyncio.to_thread(self._simulation, host)
        loop = self._loops[host.name] = FleetLoop(host, simulation, self.figures)
        await asyncio.to_thread(_keep_map_beside, loop)
        if self._demo and host.name == DEMO_NAME:
            self._caretaker = Caretaker(loop)

    async def close(self) -> None:
        self.drawing_board.close()
        if self._caretaker is not None:
            await self._caretaker.close()
        await asyncio.gather(*(one.close() for one in self._loops.values()))

    def _simulation(self, host: EngineHost) -> Simulation | None:
        """As it was asked for when the fleet was made; of fleets that were made before it lay beside their journals, it
        is in the folder of the scheduler."""
        beside = getattr(host.journal, "directory", None)
        places = [self._folder / f"{host.name}.json"]
        if isinstance(beside, FilePath):
            places.insert(0, beside / SIMULATION_FILE)
        try:
            for place in places:
                if place.exists():
                    return msgspec.json.decode(place.read_bytes(), type=Simulation | None)
        except (OSError, ValueError) as error:
            log.warning("simulation_lost", fleet=host.name, problem=str(error))
            return None
        return DEMO_SIMULATION if self._demo and host.name == DEMO_NAME else None


def opened(inner: FileJournal) -> ServedJournal:
    """The journal of a fleet, with the map beside it made known to the engine that is about to begin."""
    try:
        find_map(inner.disk)
    except MapDamaged as error:
        log.warning("map_unusable", problem=error.message)
        inner.disk.remove(MAP_FILE)
    return ServedJournal(inner)


def _keep_map_beside(loop: FleetLoop) -> None:
    """Put the compiled map beside the journal of a fleet, where it is not; without it readers compile it again."""
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
    found = supervisor.store("fleet")
    assert isinstance(found, Fleets)
    return found


def loop_of(supervisor: Supervisor, name: str) -> FleetLoop:
    # Known, and not one that could not be opened.
    assert supervisor.host("fleet", name).driver
    return fleets_of(supervisor).loop(name)
