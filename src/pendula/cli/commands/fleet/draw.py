"""`pendula fleet draw`: a map as an SVG, or as GeoJSON for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.cli.commands.fleet import files
from pendula.cli.commands.fleet.files import OutOption, ParamsOption
from pendula.cli.commands.fleet.run import SeedOption, no_journal, require_moment, run_of
from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example, require_suffix
from pendula.cli.writing import write_whole
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.fleet import CompiledMap
    from pendula.fleet.pictures.map import Layer

LAYERS = ("edges", "zones", "cells", "conflicts", "stands", "labels")
# A member of compiled maps that no graph has.
_COMPILED = b'"compiledMapHash"'


AtOption = Annotated[
    int | None,
    typer.Option(metavar="MS", min=0, help="MAP is a scenario: draw its trucks at this time.", show_default=False),
]


def register(group: typer.Typer) -> None:
    group.command(
        "draw",
        epilog=example(
            "pendula fleet draw hall.map.json -o hall.svg",
            "pendula fleet draw hall.json --profiles trucks.json -o hall.svg --layers edges,zones,labels",
            "pendula fleet draw hall.map.json -o why.svg --highlight 'A1->A2#9' --highlight NODE:B2",
            "pendula fleet draw hall.map.json -o hall.geojson --layers cells,zones,conflicts",
            "pendula fleet draw head-on --at 30000 -o head-on.svg",
        ),
    )(draw)


def draw(
    file: Annotated[
        Path, typer.Argument(metavar="MAP", help="A compiled map; with --profiles a graph.", show_default=False)
    ],
    out: OutOption,
    layers: Annotated[str, typer.Option(metavar="NAMES", help="Layers, separated by commas.")] = ",".join(LAYERS),
    highlight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="A node, edge, group, corridor, conflict, section or cell to highlight; may be repeated.",
            show_default=False,
        ),
    ] = None,
    profiles: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Truck profiles; MAP is a graph, which is compiled first.")
    ] = None,
    params: ParamsOption = None,
    at: AtOption = None,
    seed: SeedOption = None,
    json: JsonFlag = False,
) -> None:
    """Draw a map as an SVG: lanes with directions, cells by whether trucks may stop, turning discs, conflicts.

    The same map gives the same bytes. Every shape has a tooltip with its id. A highlighted cell shows what it excludes,
    a highlighted node what must be free while a truck turns there.

    With a name ending in `.geojson` the file is GeoJSON in metres: nodes, lanes, swept areas of cells, turning discs
    with their windows, conflicts.

    With `--at` a scenario is run up to that time, and its trucks are drawn with their envelopes and stop lines, and an
    arrow from each waiting truck to the one it waits for.
    """
    require("fleet")
    require_suffix(out, *((".svg",) if at is not None else (".svg", ".geojson")))
    said = Output(json)
    if at is not None:
        _draw_moment(said, str(file), at, seed, out, _layers(layers))
        return
    shown, parts = _layers(layers), highlight or []
    if parts and _is_geojson(out):
        raise WrongUsage("--highlight is for SVG only; GeoJSON has the id of every part", path=str(out))
    files.check_target(out, (file, profiles, params))
    with said.progress("draw", 3) as advance:
        site = _site(file, profiles, params)
        advance(2)
        picture = _drawn(site, out, shown, parts)
        advance(3)
    write_whole(out, picture)
    form = {
        "file": str(out),
        "bytes": len(picture),
        "mapId": site.map_id,
        "compiledMapHash": site.compiled_hash,
        "layers": [layer.value for layer in shown],
        "highlight": parts,
    }
    said.result(form, lambda: f"{out} shows {site.map_id}, {len(picture)} bytes.")


def _draw_moment(said: Output, name: str, at: int, seed: int | None, out: Path, shown: "list[Layer]") -> None:
    from pendula.fleet.pictures.map import moment_svg

    made = run_of(name, seed, None)
    require_moment(made, at)
    with said.progress("run", at) as advance:
        made.run(at, watch=advance)
    picture = moment_svg(made.site, made.shown_trucks(), shown).encode()
    write_whole(out, picture)
    form = {"file": str(out), "bytes": len(picture), "scenario": made.scenario.name, "atMs": made.now_ms}
    said.result(form, lambda: f"{out} shows {made.scenario.name} at {made.now_ms / 1000:.1f} s, {len(picture)} bytes.")


def _is_geojson(out: Path) -> bool:
    return out.suffix.lower() == ".geojson"


def _drawn(site: "CompiledMap", out: Path, shown: "list[Layer]", parts: list[str]) -> bytes:
    from pendula.fleet.pictures.geojson import map_geojson
    from pendula.fleet.pictures.map import map_svg

    return map_geojson(site, shown) if _is_geojson(out) else map_svg(site, shown, parts).encode()


def _site(file: Path, profiles: Path | None, params: Path | None) -> "CompiledMap":
    from pendula.fleet import compile_map

    no_journal(file)
    if profiles is not None:
        return compile_map(files.read_graph(file), files.read_trucks(profiles), files.params_of(params, None))
    if params is not None:
        raise WrongUsage("--params is for a graph with --profiles; a compiled map has its own parameters")
    if not _is_compiled(file):
        raise WrongUsage(f"{file} is not a compiled map; for a graph pass --profiles FILE", path=str(file))
    return files.read_compiled(file)


def _is_compiled(file: Path) -> bool:
    """Whether a file looks like a compiled map; only regular files are read."""
    with file.open("rb") as opened:
        return opened.read(1) == b"{" and _COMPILED in opened.read()


def _layers(names: str) -> "list[Layer]":
    from pendula.fleet.pictures.map import Layer
    from pendula.kernel.wording import suggestion

    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in LAYERS:
            raise WrongUsage(
                f"There is no layer {name!r}{suggestion(name, LAYERS)}; there are {', '.join(LAYERS)}", layer=name
            )
    return [layer for layer in Layer if layer.value in wanted]
