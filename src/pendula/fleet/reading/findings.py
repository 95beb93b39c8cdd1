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
    """Findings about a single edge, or about an id that is used twice, with where that stands in the graph."""
    told = tuple(findings)
    paths = _paths(graph.value)
    about = [paths.get(("edge", one.details.get("edge"))) or paths.get(("id", one.details.get("id"))) for one in told]
    wanted = [path for path in about if path is not None]
    places = dict(zip(wanted, graph.places(wanted), strict=True)) if wanted else {}
    result = []
    for one, path in zip(told, about, strict=True):
        if path is not None:
            line, column = places[path].line, places[path].column
            where = {"file": graph.source_name, "path": path_text(path), "line": line, "column": column}
            one = replace(one, details={**one.details, **where})
        result.append(one)
    return tuple(result)


def _paths(graph: Any) -> dict[tuple[str, Any], Path]:
    """Where edges stand, by id, and where an id comes for the second time."""
    paths: dict[tuple[str, Any], Path] = {}
    for member in ("nodes", "edges"):
        known = set()
        for number, one in enumerate(graph[member]):
            if one["id"] in known:
                paths.setdefault(("id", one["id"]), (member, number))
            elif member == "edges":
                paths["edge", one["id"]] = member, number
            known.add(one["id"])
    return paths
