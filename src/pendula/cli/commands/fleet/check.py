"""`pendula fleet check`: all findings about a map, without writing anything."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from pendula.cli.commands.fleet import files, report
from pendula.cli.commands.fleet.files import FleetOption, GranularityOption, GraphArgument, ParamsOption, ProfilesOption
from pendula.cli.failing import require
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from pendula.fleet import Certificate, CompiledMap, Finding

T = TypeVar("T")
STEPS = 4


def register(group: typer.Typer) -> None:
    group.command(
        "check",
        epilog=example(
            "pendula fleet check hall.json --profiles trucks.json",
            "pendula fleet check hall.json --profiles trucks.json --fleet fleet.json --json > report.json",
        ),
    )(check)


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
        "severities": report.severities(findings),
        "findings": report.findings_form(findings),
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
    sizes = None if site is None else report.sizes(site)
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
