"""Draws the maps that the documentation shows, into docs/explanation/pictures.

python scripts/pictures.py            draw them
python scripts/pictures.py --check    change nothing; fail when a picture is not what would be drawn
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pendula.fleet import SourceMap, compile_map
from pendula.fleet.pictures import map_svg
from pendula.fleet.samples import FL_STD, Sketch, scenes

FOLDER = Path(__file__).resolve().parent.parent / "docs/explanation/pictures"


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


# The map and what is pointed out on it.
PICTURES: dict[str, tuple[Callable[[], SourceMap], tuple[str, ...]]] = {
    "hall-demo.svg": (scenes.hall_demo, ()),
    "tail-swing.svg": (scenes.tail_swing_bend, ("B->C#4",)),
    "cell.svg": (lambda: scenes.straight_lane(30.0, back=False), ("A->B#30",)),
    "short-spur.svg": (short_spur, ("N->Q#6",)),
}


def drawn(name: str) -> str:
    source, parts = PICTURES[name]
    return map_svg(compile_map(source(), [FL_STD]), highlight=parts)


def main(arguments: Sequence[str]) -> int:
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
