"""Makes the pictures of the documentation: maps in docs/explanation/pictures, and screenshots of the control room with
the demo in docs/pictures.

python scripts/pictures.py            draw the maps
python scripts/pictures.py --check    change nothing; fail when a map is not what would be drawn
python scripts/pictures.py --schedulers    take screenshots of the schedulers (built page and Chromium needed, 2 min)
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pendula.fleet import SourceMap, compile_map
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.pictures import map_svg

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/explanation/pictures"
PHOTOGRAPHS = ROOT / "docs/pictures"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1280, 860
QUALITY = 80
LARGEST = 150_000
# How long the demo runs before the screenshots, and how long a page may take to draw, in milliseconds.
LIVED_MS = 60_000
DRAWN_MS = 4_000

# The address of a page, and how far it is scrolled.
SCHEDULERS = {
    "overview": ("#/", 0),
    "actions": ("#/schedulers/actions", 0),
    "jobs": ("#/schedulers/jobs/memory:library-004-poisoned?on=objects", 220),
    "credit": ("#/schedulers/credit", 0),
    "playback": ("#/schedulers/playback", 60),
    "fleet": ("#/schedulers/fleet/hall?on=R4", 60),
}


def short_spur() -> SourceMap:
    """A lane with two parking spurs, the second of which is too short."""
    sketch = Sketch("short-spur")
    for name, x in (("W", -10.0), ("M", 0.0), ("N", 12.0), ("E", 22.0)):
        sketch.node(name, x, 0, "ActionPoint" if name in "WE" else "LocationMark")
    sketch.chain("W", "M", "N", "E")
    for name, mouth, x, length in (("P", "M", 0.0, 8.0), ("Q", "N", 12.0, 3.4)):
        sketch.node(name, x, -length, "ParkPoint")
        sketch.lane(mouth, name)
    return sketch.done()


# The map and the highlighted part.
PICTURES: dict[str, tuple[Callable[[], SourceMap], tuple[str, ...]]] = {
    "hall-demo.svg": (samples.hall_demo, ()),
    "tail-swing.svg": (samples.tail_swing_bend, ("B->C#4",)),
    "cell.svg": (lambda: samples.straight_lane(30.0, back=False), ("A->B#30",)),
    "short-spur.svg": (short_spur, ("N->Q#6",)),
}


def drawn(name: str) -> str:
    source, parts = PICTURES[name]
    return map_svg(compile_map(source(), [FL_STD]), highlight=parts)


def photograph_schedulers() -> int:
    """Screenshot every scheduler a minute after the start of the demo; report pictures that are too large."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    PHOTOGRAPHS.mkdir(exist_ok=True)
    large = []
    with served_demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.wait_for_timeout(LIVED_MS)
        for name, (place, down) in SCHEDULERS.items():
            page.goto(f"{address}/{place}")
            page.wait_for_timeout(DRAWN_MS)
            page.evaluate("down => scrollTo(0, down)", down)
            picture = photograph(page)
            (PHOTOGRAPHS / f"{name}.webp").write_bytes(picture)
            large += [name] if len(picture) > LARGEST else []
        browser.close()
    for name in large:
        print(f"docs/pictures/{name}.webp is larger than {LARGEST} bytes", file=sys.stderr)
    return 1 if large else 0


def photograph(page: Any) -> bytes:
    """A screenshot as WebP: half the bytes of a PNG."""
    session = page.context.new_cdp_session(page)
    screenshot = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(screenshot["data"])


@contextmanager
def served_demo() -> Iterator[str]:
    """The address of a server with the demo, which ends with the block."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "pendula", "serve", "--demo", "--port", "0", "--data", data, "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["address"]
        finally:
            server.terminate()
            server.wait(timeout=60)


def main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--schedulers"]:
        return photograph_schedulers()
    pictures = {name: drawn(name) for name in PICTURES}
    if list(arguments) != ["--check"]:
        FOLDER.mkdir(exist_ok=True)
        for name, picture in pictures.items():
            (FOLDER / name).write_text(picture, encoding="utf-8")
        return 0
    old = [name for name, picture in pictures.items() if not is_drawn(FOLDER / name, picture)]
    for name in old:
        print(f"docs/explanation/pictures/{name} is not up to date; run python scripts/pictures.py", file=sys.stderr)
    return 1 if old else 0


def is_drawn(path: Path, picture: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == picture


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
