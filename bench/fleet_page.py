"""The page of a fleet in a real browser: frames per second with 50 trucks on a map of 1000 edges, and the cost of a
frame.

Server and page are real; the map and the moments are generated and replace those of the server, a new moment for every
request of the page, so that every truck moves all the time. The report shows the target beside each figure. Without a
graphics card the browser draws on the processor, which is slower than the machines of users.

Frames per second depend on the whole load of the machine. The cost of a frame hardly does: the median time of drawing,
and the processor time of the drawing process, browser included.
"""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pendula.cli.benchmarks import Progress, Row, Target, compared

PEERS: tuple[str, ...] = ("playwright", "numpy", "shapely")

WANTED_FPS = 50
TRUCKS, COLUMNS, ROWS, STEP_MM = 50, 16, 16, 12_000
SECONDS, QUICK_SECONDS = 10, 3
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
# Records the time of every callback of a frame; installed before the page has any.
TIMED = """(() => {
  const ask = window.requestAnimationFrame.bind(window);
  window.drawn = [];
  window.requestAnimationFrame = (draw) => ask((time) => {
    const begun = performance.now();
    draw(time);
    window.drawn.push(performance.now() - begun);
  });
})()"""
COUNT = """(seconds) => new Promise((done) => {
  let frames = 0;
  window.drawn = [];
  const begun = performance.now();
  const step = () => {
    frames += 1;
    const passed = (performance.now() - begun) / 1000;
    if (passed < seconds) requestAnimationFrame(step);
    else done({ frames, seconds: passed, drawn: window.drawn });
  };
  requestAnimationFrame(step);
})"""


def run(quick: bool, progress: Progress) -> list[Row]:
    program = os.environ.get("CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        return []
    scene = f"{TRUCKS} trucks, {len(_edges())} edges"
    progress(scene)
    with TemporaryDirectory() as folder:
        figures = _measured(program, Path(folder), QUICK_SECONDS if quick else SECONDS)
    rows = [
        compared(
            f"frames a second, {scene}",
            figures.fps,
            WANTED_FPS,
            "fps",
            against="wanted",
            target=Target(">=", Decimal(1)),
            fairness=f"headless, drawn on the processor; load of the machine {os.getloadavg()[0]:.1f}",
        ),
        _cost(f"drawing of a frame by the page, {scene}", figures.drawing_ms, "median of performance.now around it"),
    ]
    if figures.cpu_ms is not None:
        rows.append(
            _cost(f"processor time of a frame, {scene}", figures.cpu_ms, "the whole process that draws the page")
        )
    return rows


def _cost(name: str, ms: float, fairness: str) -> Row:
    """The cost of a frame beside its time budget."""
    whole = 1000 / WANTED_FPS
    return compared(name, ms, whole, "ms", against="a frame", target=Target("<=", Decimal(1)), fairness=fairness)


class Found(NamedTuple):
    fps: float
    drawing_ms: float
    # None if processes cannot be inspected.
    cpu_ms: float | None


def _measured(program: str, folder: Path, seconds: int) -> Found:
    from playwright.sync_api import Route, sync_playwright

    command = [sys.executable, "-m", "pendula", "serve", "--demo", "--port", "0", "--data", str(folder), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            moments = iter(range(1_000_000))

            def answer(route: Route) -> None:
                path = route.request.url.partition("?")[0].rpartition("/")[2]
                body = _map() if path == "map" else _moment(next(moments))
                route.fulfill(status=200, content_type="application/json", body=json.dumps(body))

            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.add_init_script(TIMED)
                page.route("**/api/v1/fleet/hall/map", answer)
                page.route("**/api/v1/fleet/hall/now*", answer)
                page.goto(f"{address}/#/schedulers/fleet/hall")
                page.get_by_test_id("hall").wait_for()
                before = _renderer_seconds()
                timing = page.evaluate(COUNT, seconds)
                after = _renderer_seconds()
                browser.close()
            # The counting callback is timed too, and takes no time: drawing is the upper half.
            drawn = sorted(timing["drawn"])[len(timing["drawn"]) // 2 :]
            cpu_ms = None if not before else (after - before) * 1000 / timing["frames"]
            return Found(timing["frames"] / timing["seconds"], median(drawn), cpu_ms)
        finally:
            server.send_signal(signal.SIGTERM)


def _renderer_seconds() -> float:
    """Processor seconds of the renderers started by this process; 0 without /proc."""
    spent, parents = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        number = int(status.parent.name)
        parents[number] = int(fields[1])
        if b"--type=renderer" in command:
            spent[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return sum(seconds for number, seconds in spent.items() if os.getpid() in _above(number, parents))


def _above(number: int, parents: dict[int, int]) -> Iterator[int]:
    while number in parents:
        number = parents[number]
        yield number


@cache
def _nodes() -> list[tuple[int, int]]:
    return [(column * STEP_MM, row * STEP_MM) for row in range(ROWS) for column in range(COLUMNS)]


@cache
def _edges() -> list[tuple[int, int]]:
    """Both ways between neighbours in a grid."""
    found = []
    for row in range(ROWS):
        for column in range(COLUMNS):
            here = row * COLUMNS + column
            if column + 1 < COLUMNS:
                found += [(here, here + 1), (here + 1, here)]
            if row + 1 < ROWS:
                found += [(here, here + COLUMNS), (here + COLUMNS, here)]
    return found


def _map() -> dict[str, Any]:
    places = _nodes()

    def ends(a: int, b: int) -> list[tuple[int, int]]:
        return [places[a], places[b]]

    outline = {"front": 1400, "rear": 900, "side": 500}
    around = {"front": 1700, "rear": 1200, "side": 800}
    return {
        "map_id": "grid",
        "compiled_hash": "",
        "low": [0, 0],
        "high": [(COLUMNS - 1) * STEP_MM, (ROWS - 1) * STEP_MM],
        "nodes": [
            {"id": f"N{i}", "x": x, "y": y, "station": i % 7 == 0, "parking": i % 11 == 0, "radius": 1800}
            for i, (x, y) in enumerate(places)
        ],
        "edges": [
            {
                "key": f"{a}-{b}",
                "start": a,
                "end": b,
                "forward": True,
                "points": [places[a], places[b]],
                "s": [0, STEP_MM],
            }
            for a, b in _edges()
        ],
        "sections": [],
        "profiles": [{"profile_id": "P", "body": outline, "envelope": around}],
    }


def _moment(number: int) -> dict[str, Any]:
    return {
        "n": number,
        "tick": number,
        "now": number * 300,
        "override": False,
        "trucks": [_truck(robot, number) for robot in range(TRUCKS)],
        "tasks": [],
        "over": [],
        "more_tasks": 0,
        "streams": [],
        "counts": {},
        "broken": [],
        "degraded": None,
    }


def _truck(robot: int, number: int) -> dict[str, Any]:
    edges, places = _edges(), _nodes()
    edge = (robot * 37 + number // 20) % len(edges)
    part = (number % 20) / 20
    (ax, ay), (bx, by) = places[edges[edge][0]], places[edges[edge][1]]
    at = {"x": round(ax + (bx - ax) * part), "y": round(ay + (by - ay) * part)}
    at["yaw"] = round(math.atan2(by - ay, bx - ax) * 1000)
    on = round(STEP_MM * part)
    return {
        "robot_id": f"R{robot}",
        "profile_id": "P",
        "park_node_id": "N0",
        "at": at,
        "speed": 1200,
        "status": "OK",
        "health": "HEALTHY",
        "phase": "TO_PICK",
        "load": robot % 2 == 0,
        "paused": False,
        "silent": False,
        "absent": False,
        "releasable": [],
        "task_id": None,
        "report_age": 0,
        "hold_reason": "NONE",
        "code": "UNDER_WAY",
        "sentence": "on its way",
        "wait": 0,
        "blocker": f"R{(robot + 1) % TRUCKS}" if robot % 5 == 0 else None,
        "because": [],
        "cycle": [],
        "stop": at,
        "refuge": at,
        "bands": {
            "occupied": [[edge, max(0, on - 2000), on]],
            "granted": [[edge, on, min(STEP_MM, on + 3000)]],
            "requested": [[edge, min(STEP_MM, on + 3000), STEP_MM]],
        },
        "zones": [edges[edge][1]],
    }
