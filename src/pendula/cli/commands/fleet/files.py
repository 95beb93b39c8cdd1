"""Files of the commands: graphs, truck profiles, parameters, fleets, compiled maps.

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
    """A copy of `pendula.fleet.Granularity`, so that the scheduler is imported only when used."""

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
        help="A fleet of trucks with rest nodes and streams, to check that it cannot deadlock.",
    ),
]
GranularityOption = Annotated[
    GranularityChoice | None,
    typer.Option(
        help="Whether lanes that are too close exclude each other there (window) or entirely (edge).",
        show_default="window",
    ),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.", show_default=False)]


def profiles_of(file: Path | None) -> Path:
    """The file of truck profiles; raises `WrongUsage` if it is missing."""
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
    """Findings about unknown members of a graph and a file of profiles; none for an unreadable file."""
    from pendula.documents import DocumentRefused, read_file
    from pendula.fleet.map.reading import unread_graph, unread_profiles

    found: list[Finding] = []
    for file, unread in ((graph, unread_graph), (profiles, unread_profiles)):
        try:
            found += unread(read_file(file))
        except DocumentRefused:
            continue
    return tuple(found)


def capability_findings(profiles: "Iterable[RobotProfile]", fleet: "Fleet | None") -> "list[Finding]":
    """Reasons against the admission of trucks: errors if a fleet is given, else warnings."""
    from pendula.fleet.map.trucks import capability_findings
    from pendula.fleet.model import Severity

    return capability_findings(profiles, Severity.WARN if fleet is None else Severity.ERROR)


def odd_kinds(source: "SourceMap | None") -> list[str]:
    """A sentence for each unknown kind of node that resembles a known one."""
    from collections import Counter

    from pendula.fleet.model import NODE_KINDS
    from pendula.kernel.wording import suggestion

    kinds = Counter(node.kind for node in source.nodes) if source is not None else Counter[str]()
    return [
        f"{counted(count, 'node')} of the unknown kind {kind!r}{near}"
        for kind, count in sorted(kinds.items())
        if kind not in NODE_KINDS and (near := suggestion(kind, NODE_KINDS))
    ]


def with_places(findings: "Iterable[Finding]", graph: Path) -> "tuple[Finding, ...]":
    """Add places in the file to findings about single edges."""
    from pendula.documents import read_file
    from pendula.fleet.map.reading import with_places

    return with_places(findings, read_file(graph))


def params_of(file: Path | None, granularity: GranularityChoice | None) -> "CompileParams":
    """The parameters of a file, or the defaults; the granularity option overrides both."""
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
    """Sentences about unknown members of the files of parameters and fleet."""
    from pendula.documents import read_file
    from pendula.fleet.map.reading import unread_fleet, unread_params

    sentences = [] if params is None else [*unread_params(read_file(params))]
    return sentences if fleet is None else [*sentences, *unread_fleet(read_file(fleet))]


def read_compiled(file: Path) -> "CompiledMap":
    """The compiled map of a file; raises `MapDamaged` with the name of the file."""
    from pendula.fleet import MapDamaged, from_bytes

    try:
        return from_bytes(file.read_bytes())
    except MapDamaged as damaged:
        raise MapDamaged(f"{file}: {damaged.message}", path=str(file), **damaged.details) from damaged


def check_target(target: Path, inputs: Iterable[Path | None]) -> None:
    """Raises `WrongUsage` if the output would overwrite an input."""
    for file in inputs:
        if file is not None and file.absolute() == target.absolute():
            raise WrongUsage(f"{target} is an input of this command; name another file to write")
