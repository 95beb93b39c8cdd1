"""What the commands read and write: graphs, truck profiles, parameters, fleets, compiled maps.

Everything is read before anything is written.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.kernel.errors import WrongUsage
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from pendula.fleet import CompiledMap, CompileParams, Finding, Fleet, RobotProfile, SourceMap


class GranularityChoice(StrEnum):
    """As `pendula.fleet` has it; the scheduler itself is loaded only when it is used."""

    WINDOW = "window"
    EDGE = "edge"


GraphArgument = Annotated[
    Path, typer.Argument(metavar="GRAPH", help="The graph of aisles: a YAML or JSON file.", show_default=False)
]
ProfilesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="One truck profile or several: a YAML or JSON file; required. `pendula fleet new --profiles` writes one.",
        show_default=False,
    ),
]
ParamsOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Compile parameters that differ from the defaults.")
]
FleetOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Trucks with their rest nodes, and streams: whether that fleet never stands still for good.",
    ),
]
GranularityOption = Annotated[
    GranularityChoice | None,
    typer.Option(
        help="Lanes that come too close exclude each other where they do (window) or as wholes (edge).",
        show_default="window",
    ),
]
OutOption = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="Where the result goes.", show_default=False)
]


def profiles_of(file: Path | None) -> Path:
    """The file of truck profiles; raises `WrongUsage` that says how to get one."""
    if file is None:
        raise WrongUsage(
            "Missing option '--profiles', a file of truck profiles; `pendula fleet new --scene hall -o example.json "
            "--profiles trucks.json` writes one to start from"
        )
    return file


def read_graph(file: Path) -> "SourceMap":
    from pendula.documents import read_file
    from pendula.fleet import read_source_map

    return read_source_map(read_file(file))


def read_trucks(file: Path) -> "tuple[RobotProfile, ...]":
    from pendula.documents import read_file
    from pendula.fleet import read_profiles

    return read_profiles(read_file(file))


def unread_members(graph: Path, profiles: Path) -> "tuple[Finding, ...]":
    """Findings for what stands in a graph or a file of profiles and changes nothing. A file that is no document at all
    has no members."""
    from pendula.documents import DocumentRefused, read_file
    from pendula.fleet.reading import unread_graph, unread_profiles

    found: list[Finding] = []
    for file, unread in ((graph, unread_graph), (profiles, unread_profiles)):
        try:
            found += unread(read_file(file))
        except DocumentRefused:
            continue
    return tuple(found)


def capability_findings(profiles: "Iterable[RobotProfile]", fleet: "Fleet | None") -> "list[Finding]":
    """What keeps trucks from being let in: an error where there is a fleet of them, else a warning."""
    from pendula.fleet.model import Severity
    from pendula.fleet.trucks.capabilities import capability_findings

    return capability_findings(profiles, Severity.WARN if fleet is None else Severity.ERROR)


def odd_kinds(source: "SourceMap | None") -> list[str]:
    """A sentence for each kind of node that has no meaning here, but nearly has one."""
    from collections import Counter

    from pendula.fleet.model import NODE_KINDS
    from pendula.kernel.wording import suggestion

    kinds = Counter(node.kind for node in source.nodes) if source is not None else Counter[str]()
    return [
        f"{counted(count, 'node')} of the kind {kind!r}, which has no meaning here{near}"
        for kind, count in sorted(kinds.items())
        if kind not in NODE_KINDS and (near := suggestion(kind, NODE_KINDS))
    ]


def with_places(findings: "Iterable[Finding]", graph: Path) -> "tuple[Finding, ...]":
    """Findings of the compiler, those about single edges with their places in the file."""
    from pendula.documents import read_file
    from pendula.fleet.reading import with_places

    return with_places(findings, read_file(graph))


def params_of(file: Path | None, granularity: GranularityChoice | None) -> "CompileParams":
    """The parameters of a file, or the defaults; the granularity of the command line comes before both."""
    from msgspec.structs import replace

    from pendula.documents import read_file
    from pendula.fleet import CompileParams, read_params
    from pendula.fleet.model import Granularity

    params = CompileParams() if file is None else read_params(read_file(file))
    return params if granularity is None else replace(params, granularity=Granularity(granularity.value))


def fleet_of(file: Path | None) -> "Fleet | None":
    from pendula.documents import read_file
    from pendula.fleet import read_fleet

    return None if file is None else read_fleet(read_file(file))


def unread(params: Path | None, fleet: Path | None) -> list[str]:
    """What stands in a file of parameters or a fleet and changes nothing."""
    from pendula.documents import read_file
    from pendula.fleet.reading.unread import unread_fleet, unread_params

    told = [] if params is None else [*unread_params(read_file(params))]
    return told if fleet is None else [*told, *unread_fleet(read_file(fleet))]


def read_compiled(file: Path) -> "CompiledMap":
    """The compiled map of a file; raises `MapDamaged` with the name of the file."""
    from pendula.fleet import MapDamaged, from_bytes

    try:
        return from_bytes(file.read_bytes())
    except MapDamaged as damaged:
        raise MapDamaged(f"{file}: {damaged.message}", path=str(file), **damaged.details) from damaged


def check_target(target: Path, inputs: Iterable[Path | None]) -> None:
    """What is written must not be what was read."""
    for file in inputs:
        if file is not None and file.absolute() == target.absolute():
            raise WrongUsage(f"{target} would take the place of what it is made from; name another file")
