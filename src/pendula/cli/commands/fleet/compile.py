"""`pendula fleet compile` and `check`: compile a graph and truck profiles into the file that a fleet loads, or list all
its faults without writing anything."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from pendula.cli.commands.fleet import files
from pendula.cli.commands.fleet.files import (
    FleetOption,
    GranularityOption,
    GraphArgument,
    OutOption,
    ParamsOption,
    ProfilesOption,
)
from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example, require_suffix, tables_of
from pendula.cli.writing import write_whole
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from pendula.fleet import Certificate, CompiledMap, Finding, Fleet, RobotProfile

T = TypeVar("T")
STEPS = 4
MOST_IDS = 4
# Details of a finding that are not a place.
_NO_PLACE = frozenset({"file", "path", "line", "column", "limit", "expected", "condition"})


def register(group: typer.Typer) -> None:
    group.command(
        "compile",
        epilog=example(
            "pendula fleet compile hall.json --profiles trucks.json -o hall.map.json --report",
            "pendula fleet compile hall.json --profiles trucks.json --fleet fleet.json -o hall.map.json --json",
            "pendula fleet compile changed.json --profiles trucks.json --previous hall.map.json -o changed.map.json",
        ),
    )(compile)
    group.command(
        "check",
        epilog=example(
            "pendula fleet check hall.json --profiles trucks.json",
            "pendula fleet check hall.json --profiles trucks.json --fleet fleet.json --json > report.json",
        ),
    )(check)


def compile(
    graph: GraphArgument,
    out: OutOption,
    profiles: ProfilesOption = None,
    params: ParamsOption = None,
    with_report: Annotated[bool, typer.Option("--report", help="List every finding, not only the counts.")] = False,
    granularity: GranularityOption = None,
    fleet: FleetOption = None,
    previous: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An earlier compiled map of this graph; unchanged parts are reused."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Compile a map for these trucks: cells, conflicts, turning discs and stopping places.

    The same input in any order gives the same bytes. A map with errors is rejected with all of them, as is one on which
    the fleet of `--fleet` could deadlock; then nothing is written.
    """
    require("fleet")
    from pendula.fleet import examine

    said = Output(json)
    require_suffix(out, ".json")
    trucks_file = files.profiles_of(profiles)
    files.check_target(out, (graph, trucks_file, params, fleet, previous))
    with said.progress("compile", STEPS) as advance:
        source, trucks = files.read_graph(graph), files.read_trucks(trucks_file)
        settings, group = files.params_of(params, granularity), files.fleet_of(fleet)
        before = None if previous is None else files.read_compiled(previous)
        advance(1)
        found = examine(source, trucks, settings, before)
        advance(3)
        findings = (*files.unread_members(graph, trucks_file), *files.with_places(found.findings, graph))
        findings += tuple(files.capability_findings(trucks, group))
        certificate = None
        if found.compiled is not None and group is not None:
            certificate, findings = _certified(found.compiled, group, trucks, findings)
        advance(STEPS)
    if found.compiled is None or found.data is None or _refused(findings):
        raise _refusal(said, graph, findings, with_report and not json)
    write_whole(out, found.data)
    form: dict[str, Any] = {
        "file": str(out),
        "bytes": len(found.data),
        **map_form(found.compiled, findings, certificate),
    }
    if with_report:
        form["findings"] = findings_form(findings)
    said.result(form, lambda: tables_of("fleet").compiled(form))


def _certified(
    site: "CompiledMap", fleet: "Fleet", trucks: "tuple[RobotProfile, ...]", findings: "tuple[Finding, ...]"
) -> "tuple[Certificate | None, tuple[Finding, ...]]":
    from pendula.fleet import certify

    certificate, more = certify(site, fleet, trucks)
    return certificate, (*findings, *more)


def _refused(findings: "tuple[Finding, ...]") -> bool:
    from pendula.fleet.model import errors_of

    return bool(errors_of(findings))


def _refusal(said: Output, graph: Path, findings: "tuple[Finding, ...]", tell: bool) -> Exception:
    """The error of a map that cannot be used; with `--report` the findings are also printed."""
    from pendula.fleet import MapRefused
    from pendula.fleet.model import errors_of

    if tell:
        forms = findings_form(findings)
        said.result(forms, lambda: tables_of("fleet").findings(forms))
    errors = ranked(errors_of(findings))
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    remedy = f" ({errors[0].remedy})" if errors[0].remedy else ""
    line = f" in line {errors[0].details['line']}" if errors[0].details.get("line") else ""
    return MapRefused(
        f"{graph} cannot be used: {errors[0].code.value}{line}: {errors[0].message}{remedy}{more}",
        findings=findings_form(findings),
    )


def check(
    graph: GraphArgument,
    profiles: ProfilesOption = None,
    fleet: FleetOption = None,
    params: ParamsOption = None,
    granularity: GranularityOption = None,
    json: JsonFlag = False,
) -> None:
    """List every fault of a map for these trucks, with its place and remedy.

    With `--fleet` also whether that fleet can run on it without deadlock: a certificate (W1 rest nodes that block no
    route, W2 routes for every stream, W3 room to stop), or a minimal counterexample with its remedy. The exit code is 1
    if there is an error; warnings and notes do not change it.
    """
    require("fleet")
    from pendula.fleet import MapRefused, certify, examine
    from pendula.fleet.map.trucks import doubts
    from pendula.fleet.model import errors_of
    from pendula.fleet.tick.params import TrafficParams, faults

    trucks_file = files.profiles_of(profiles)
    for path in (graph, trucks_file):
        # A missing file is an error of usage, not a finding.
        path.open("rb").close()
    out = Output(json)
    group, settings = files.fleet_of(fleet), files.params_of(params, granularity)
    findings: list[Finding] = []
    site: CompiledMap | None = None
    certificate: Certificate | None = None
    with out.progress("check", STEPS) as advance:
        source = _read(lambda: files.read_graph(graph), findings, profile=False)
        trucks = _read(lambda: files.read_trucks(trucks_file), findings, profile=True)
        advance(1)
        findings += (*files.unread_members(graph, trucks_file), *files.capability_findings(trucks or (), group))
        if source is not None and trucks is not None:
            found = examine(source, trucks, settings)
            findings += files.with_places(found.findings, graph)
            site = found.compiled
        advance(3)
        if site is not None and group is not None and trucks is not None and not errors_of(tuple(findings)):
            certificate, wrong = certify(site, group, trucks)
            findings += wrong
        advance(STEPS)
    errors = errors_of(tuple(findings))
    form: dict[str, Any] = {
        "file": str(graph),
        "sound": not errors,
        "severities": severities(findings),
        "findings": findings_form(findings),
        "doubts": [
            *(doubt for truck in trucks or () for doubt in doubts(truck)),
            *(
                f"needs other parameters of traffic: {fault}"
                for fault in faults(TrafficParams(), trucks or (), settings)
            ),
            *files.odd_kinds(source),
            *files.unread(params, fleet),
        ],
        "certificate": None if certificate is None or site is None else certificate.form(site),
    }
    sizes = None if site is None else sizes_of(site)
    out.result(form, lambda: tables_of("fleet").checked(form, sizes, asked=group is not None))
    if errors:
        raise MapRefused(_sentence(graph, len(errors)), path=str(graph), errors=len(errors))


def _sentence(graph: Path, errors: int) -> str:
    return f"{graph} cannot be used: {counted(errors, 'error')}"


def _read(read: Callable[[], T], findings: "list[Finding]", *, profile: bool) -> T | None:
    """The value read, or None; its faults are added to the findings."""
    from pendula.documents import DocumentRefused
    from pendula.fleet import findings_of

    try:
        return read()
    except DocumentRefused as refused:
        findings += findings_of(refused, profile)
        return None


def place_of(finding: "Finding") -> str:
    """`file:line:column` of a document, or the ids that a finding names; `map` without either."""
    facts = finding.details
    if "file" in facts:
        return f"{facts['file']}:{facts['line']}:{facts['column']}" if facts["line"] else str(facts["file"])
    ids: list[str] = []
    for name, value in facts.items():
        if name not in _NO_PLACE:
            ids += _ids(value)
    return ", ".join(ids) or "map"


def _ids(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list | tuple):
        return []
    ids = [item for item in value if isinstance(item, str)]
    return ids if len(ids) <= MOST_IDS else [*ids[:MOST_IDS], f"and {len(ids) - MOST_IDS} more"]


def findings_form(findings: "Sequence[Finding]") -> list[dict[str, Any]]:
    """Findings by severity, then by code, the rarest first; each with its place and remedy."""
    from pendula.fleet.model import as_json

    return [{**as_json(finding), "place": place_of(finding), "remedy": finding.remedy} for finding in ranked(findings)]


def ranked(findings: "Sequence[Finding]") -> "list[Finding]":
    from pendula.fleet import Severity

    order = list(Severity)
    often = Counter((finding.severity, finding.code) for finding in findings)
    return sorted(
        findings,
        key=lambda finding: (
            order.index(finding.severity),
            often[finding.severity, finding.code],
            finding.code.value,
            finding.message,
            place_of(finding),
        ),
    )


def severities(findings: "Sequence[Finding]") -> dict[str, int]:
    from pendula.fleet import Severity

    return {severity.value: sum(finding.severity is severity for finding in findings) for severity in Severity}


def sizes_of(site: "CompiledMap") -> dict[str, int]:
    return {
        "nodes": len(site.network.nodes),
        "edges": len(site.network.edges),
        "edgeGroups": len(site.network.groups),
        "cells": len(site.cells),
        "corridors": len(site.corridors),
        "criticalSections": len(site.sections),
        "conflicts": len(site.named),
    }


def map_form(site: "CompiledMap", findings: "Sequence[Finding]", certificate: "Certificate | None") -> dict[str, Any]:
    """Sizes and hashes of a map, with its certificate if there is one."""
    return {
        "mapId": site.map_id,
        "mapHash": site.map_hash,
        "robotProfileHash": site.profile_hash,
        "compiledMapHash": site.compiled_hash,
        "conflictGranularity": site.params.granularity.value,
        "sizes": sizes_of(site),
        "severities": severities(findings),
        "certificate": None if certificate is None else certificate.form(site),
    }
