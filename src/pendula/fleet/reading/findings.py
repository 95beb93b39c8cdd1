"""Faults of a document as findings of the validator, and findings about its edges, with their places."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from pendula.documents import Document, DocumentRefused, Path, path_text
from pendula.fleet.model import Code, Finding, finding
from pendula.fleet.reading.values import FaultCode
from pendula.kernel.canonical import Json

_GEOMETRY = frozenset({"not_finite", "number_too_long", FaultCode.COORDINATE_OUT_OF_RANGE})


def findings_of(refused: DocumentRefused, profile: bool = False) -> tuple[Finding, ...]:
    """The faults of a document as findings of the validator, with their places."""
    result = []
    for fault in refused.faults:
        code = Code.MAP_INVALID_GEOMETRY if fault.code in _GEOMETRY else Code.MAP_PARSE_ERROR
        if profile and fault.code == "missing_field":
            code = Code.PROFILE_MISSING_FIELD
        remedy = f"allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
        place: dict[str, Json] = {
            "file": refused.source_name,
            "path": fault.path,
            "line": fault.line,
            "column": fault.column,
        }
        result.append(finding(code, f"{fault.path}: {fault.message}", remedy, **place))
    return tuple(result)


def with_places(findings: Iterable[Finding], graph: Document) -> tuple[Finding, ...]:
    """Add the place in the graph to findings about a single edge or about a duplicate id."""
    all_findings = tuple(findings)
    paths = _paths(graph.value)
    edge_paths = [
        paths.get(("edge", item.details.get("edge"))) or paths.get(("id", item.details.get("id")))
        for item in all_findings
    ]
    known = [path for path in edge_paths if path is not None]
    places = dict(zip(known, graph.places(known), strict=True)) if known else {}
    result = []
    for item, path in zip(all_findings, edge_paths, strict=True):
        if path is not None:
            line, column = places[path].line, places[path].column
            where = {"file": graph.source_name, "path": path_text(path), "line": line, "column": column}
            item = replace(item, details={**item.details, **where})
        result.append(item)
    return tuple(result)


def _paths(graph: Any) -> dict[tuple[str, Any], Path]:
    """The paths of edges by id, and of the second occurrence of an id."""
    paths: dict[tuple[str, Any], Path] = {}
    for member in ("nodes", "edges"):
        known = set()
        for number, item in enumerate(graph[member]):
            if item["id"] in known:
                paths.setdefault(("id", item["id"]), (member, number))
            elif member == "edges":
                paths["edge", item["id"]] = member, number
            known.add(item["id"])
    return paths
