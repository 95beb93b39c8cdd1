"""Five journeys through the source, traced: the modules that a request or a tick passes, and its calls.

python -m tests.architecture.journeys             # a table
python -m tests.architecture.journeys next        # the modules of one journey, in the order they are reached
"""

import asyncio
import io
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count, pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx
import msgspec

from pendula.credit import Headless, plan_run
from pendula.documents import from_value
from pendula.fleet.engine import FleetEngine
from pendula.server import monitoring
from pendula.server.schedulers import schedulers_for
from pendula.server.settings import LogFormat, LogLevel, Settings
from tests.architecture.source import ROOT, SOURCE
from tests.credit.conftest import network
from tests.docs.markdown import blocks
from tests.server.living import client_of, running

# What a compiler inlines in one version of Python and calls in another.
INLINED = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
REPEATED = 5
# A triangle of trust: a tick plans payments and clears debts.
LINES = (("a", "b", 100), ("b", "c", 100), ("c", "a", 100))
# Every enqueued job has its own object: a repeated one would be a duplicate.
NUMBERS = count()
PAGE = Path("ARCHITECTURE.md")
TITLE = re.compile(r"journey: (?P<name>[a-z ]+), (?P<modules>[0-9]+) modules")
HOP = re.compile(r"(?P<name>[a-z_]+(?:/[a-z_]+)+)\s+(?P<says>\S.*)")
FLEET = {
    "contractVersion": "1.0.0",
    "name": "hall",
    "durationMs": 3_600_000,
    "sample": {"name": "reference-hall", "trucks": 3},
    "streams": [{"streamId": "S-OUT", "pickNodeIds": ["WEST"], "dropNodeIds": ["EAST"]}],
}


class Journey(msgspec.Struct, frozen=True):
    """The calls in every module that was passed, in the order of the first of them."""

    calls: Mapping[str, int]

    @property
    def modules(self) -> int:
        return len(self.calls)

    @property
    def total(self) -> int:
        return sum(self.calls.values())


class Documented(msgspec.Struct, frozen=True):
    """A journey as ARCHITECTURE.md has it: the most modules it may pass, and those worth knowing."""

    modules: int
    hops: Sequence[str]


def of_the_page() -> dict[str, Documented]:
    """The journeys of ARCHITECTURE.md. The number of modules may fall, and never rises."""
    found: dict[str, Documented] = {}
    for block in blocks(PAGE, (ROOT / PAGE).read_text(encoding="utf-8")):
        first, *rest = block.text.splitlines()
        if title := TITLE.fullmatch(first):
            hops = [hop["name"] for line in rest if (hop := HOP.fullmatch(line))]
            found[title["name"]] = Documented(int(title["modules"]), hops)
    return found


class Tracer:
    """Notes calls in all threads that start while it is installed, and only while it is `noting`."""

    def __init__(self) -> None:
        self._codes: list[CodeType] | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        before = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before)

    async def noting(self, walk: Callable[[], Awaitable[object]]) -> list[CodeType]:
        codes: list[CodeType] = []
        self._codes = codes
        try:
            await walk()
        finally:
            self._codes = None
        return codes

    async def calls(self, function: CodeType, times: int) -> None:
        """Wait until the function has been called so often while the tracer is noting."""
        codes = self._codes
        assert codes is not None
        async with asyncio.timeout(300):
            while sum(code is function for code in list(codes)) < times:
                await asyncio.sleep(0.02)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        codes = self._codes
        if event == "call" and codes is not None:
            codes.append(frame.f_code)


def _journey(codes: Iterable[CodeType]) -> Journey:
    return Journey(Counter(module for code in codes if (module := _module(code))))


def _length(journey: Journey) -> tuple[int, int]:
    return journey.modules, journey.total


def _module(code: CodeType) -> str | None:
    """`jobs/decide` for a function of that module; None for a function of another package."""
    prefix = f"{SOURCE}/"
    if code.co_name in INLINED or not code.co_filename.startswith(prefix):
        return None
    return code.co_filename.removeprefix(prefix).removesuffix(".py").removesuffix("/__init__")


async def _shortest(tracer: Tracer, walk: Callable[[], Awaitable[object]]) -> Journey:
    """Of several: work in the background, such as the upkeep of jobs, can only lengthen a journey.

    The first is not counted, since it fills caches.
    """
    await walk()
    return min([_journey(await tracer.noting(walk)) for _ in range(REPEATED)], key=_length)


async def enqueue(tracer: Tracer) -> Journey:
    async with _served("jobs") as client:
        return await _shortest(tracer, lambda: _enqueue(client))


async def ack(tracer: Tracer) -> Journey:
    async with _served("jobs") as client:
        for _ in range(1 + REPEATED):
            await _enqueue(client)
        leases = (await _post(client, "/scheduler/jobs/pull", worker_id="w", limit=1 + REPEATED))["jobs"]

        def walk() -> Awaitable[Any]:
            job = leases.pop()
            lease = {"worker_id": "w", "lease_token": job["lease_token"], "result": "succeeded"}
            return _post(client, f"/scheduler/jobs/{job['job_id']}/ack", **lease)

        return await _shortest(tracer, walk)


async def next_of_a_player(tracer: Tracer) -> Journey:
    async with _served("playback") as client:
        records = [{"id": number, "ts": number} for number in range(1, 40)]
        response = await client.put("/api/v1/playback/channels/a", json={"records": records})
        assert response.status_code == 200, response.text
        await _post(client, "/api/v1/playback", name="hall", seed=1, channels=["a"], dwell_ms=3_600_000)
        return await _shortest(tracer, lambda: _post(client, "/api/v1/playback/hall/next"))


async def fleet_tick(tracer: Tracer) -> Journey:
    """From one tick of a served fleet to the next, while its simulated trucks drive; the median of some."""
    async with _served("fleet") as client:
        await _post(client, "/api/v1/fleet?name=hall&speed=5", **FLEET)
        await tracer.noting(lambda: tracer.calls(FleetEngine.apply.__code__, 5))
        codes = await tracer.noting(lambda: tracer.calls(FleetEngine.apply.__code__, 6))
    begins = [place for place, code in enumerate(codes) if code is FleetEngine.apply.__code__]
    ticks = sorted((_journey(codes[begin:end]) for begin, end in pairwise(begins)), key=_length)
    return ticks[len(ticks) // 2]


async def credit_tick(tracer: Tracer) -> Journey:
    run = Headless(plan_run(from_value(network(*LINES)), seed=1, intensity=100))

    async def walk() -> None:
        run.step(1)

    return await _shortest(tracer, walk)


JOURNEYS: Mapping[str, Callable[[Tracer], Coroutine[Any, Any, Journey]]] = {
    "enqueue": enqueue,
    "ack": ack,
    "next": next_of_a_player,
    "fleet tick": fleet_tick,
    "credit tick": credit_tick,
}


@asynccontextmanager
async def _served(scheduler: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server, without a network, that serves one scheduler."""
    with tempfile.TemporaryDirectory() as data:
        settings = Settings(data=f"{data}/data")
        served = [spec for spec in schedulers_for(settings) if spec.name == scheduler]
        async with running(settings, served) as app, client_of(app) as client:
            yield client


async def _post(client: httpx.AsyncClient, path: str, **body: Any) -> Any:
    response = await client.post(path, json=body)
    assert response.is_success, response.text
    return response.json()


def _enqueue(client: httpx.AsyncClient) -> Awaitable[Any]:
    return _post(client, "/scheduler/jobs", object_type="memory", object_id=f"m_{next(NUMBERS)}", action="verify")


def traced(name: str) -> Journey:
    monitoring.configure(LogFormat.JSON, LogLevel.INFO, io.StringIO())
    tracer = Tracer()
    with tracer.installed():
        return asyncio.run(JOURNEYS[name](tracer))


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in JOURNEYS]:
        sys.stderr.write(f"no journey {unknown[0]!r}; there are {', '.join(JOURNEYS)}\n")
        return 2
    journeys = {name: traced(name) for name in names or JOURNEYS}
    lines = [f"{'journey':<14}{'modules':>8}{'calls':>8}"]
    lines += [f"{name:<14}{journey.modules:>8}{journey.total:>8}" for name, journey in journeys.items()]
    for name in names:
        lines += ["", *(f"{calls:>6}  {module}" for module, calls in journeys[name].calls.items())]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
