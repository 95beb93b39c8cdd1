"""`pendula fleet compile`: compile a graph and truck profiles into the file that a fleet loads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.fleet import files, report
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

if TYPE_CHECKING:
    from pendula.fleet import Certificate, CompiledMap, Finding, Fleet, RobotProfile

STEPS = 4


def register(group: typer.Typer) -> None:
    group.command(
        "compile",
        epilog=example(
            "pendula fleet compile hall.json --profiles trucks.json -o hall.map.json --report",
            "pendula fleet compile hall.json --profiles trucks.json --fleet fleet.json -o hall.map.json --json",
            "pendula fleet compile changed.json --profiles trucks.json --previous hall.map.json -o changed.map.json",
        ),
    )(compile)


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
        **report.map_form(found.compiled, findings, certificate),
    }
    if with_report:
        form["findings"] = report.findings_form(findings)
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
        forms = report.findings_form(findings)
        said.result(forms, lambda: tables_of("fleet").findings(forms))
    errors = report.ranked(errors_of(findings))
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    remedy = f" ({errors[0].remedy})" if errors[0].remedy else ""
    line = f" in line {errors[0].details['line']}" if errors[0].details.get("line") else ""
    return MapRefused(
        f"{graph} cannot be used: {errors[0].code.value}{line}: {errors[0].message}{remedy}{more}",
        findings=report.findings_form(findings),
    )
