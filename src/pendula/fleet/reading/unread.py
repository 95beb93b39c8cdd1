"""Unknown members: allowed within a major version, but often a misspelling, so they are reported as warnings.

In graphs and profiles they are findings of the validator, with their places; in parameters and fleets sentences.
Members whose names begin with `x-` are private and ignored.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pendula.documents import Cursor, Document, DocumentRefused
from pendula.documents.faults import Fault, suggestion
from pendula.fleet.model import Code, Finding, Severity
from pendula.fleet.reading import profiles, source_map
from pendula.fleet.reading.fleet import FLEET_MEMBERS, FLEET_PARAMS
from pendula.fleet.reading.params import PARAMS
from pendula.kernel.canonical import Json

_VERSION = "contractVersion"
_PRIVATE = "x-"


def unread_graph(document: Document) -> tuple[Finding, ...]:
    """A finding for each unknown member of a graph."""
    return _warnings(document, _graph)


def unread_profiles(document: Document) -> tuple[Finding, ...]:
    """A finding for each unknown member of a file of truck profiles."""
    return _warnings(document, _profiles)


def unread_params(document: Document) -> tuple[str, ...]:
    """A sentence for each unknown member of a file of compile parameters."""
    return _unread(document.source_name, "", document.value, PARAMS)


def unread_fleet(document: Document) -> tuple[str, ...]:
    """A sentence for each unknown member of a fleet file or of its `params`."""
    root = document.value
    inner = root.get("params") if isinstance(root, Mapping) else None
    # Without a `params` object its members are at the top level.
    known = FLEET_MEMBERS if isinstance(inner, Mapping) else (*FLEET_MEMBERS, *FLEET_PARAMS)
    return (
        *_unread(document.source_name, "", root, known),
        *_unread(document.source_name, "params.", inner, FLEET_PARAMS),
    )


def _unread(file: str, path: str, value: Any, known: Collection[str]) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return ()
    return tuple(
        f"{file}: the member {path + name!r} is not known and has no effect{_suggest(name, known)}"
        for name in value
        if name not in known and name != _VERSION
    )


def _suggest(name: str, known: Collection[str]) -> str:
    if name in profiles.PLACES:
        return f"; it belongs to the truck profile: {profiles.PLACES[name]}"
    return suggestion(name, tuple(known))


def _warnings(document: Document, walk: Callable[[Cursor], None]) -> tuple[Finding, ...]:
    """Warnings for members that `walk`, which reads all known members, finds unknown."""
    try:
        document.read(walk)
    except DocumentRefused as refused:
        return tuple(_finding(refused.source_name, fault) for fault in refused.faults if _is_unknown_member(fault))
    return ()


def _is_unknown_member(fault: Fault) -> bool:
    return fault.code == "unknown_field" and not _member(fault).startswith(_PRIVATE)


def _member(fault: Fault) -> str:
    """The last step of a path: after a dot, or quoted in brackets if it is not a plain name."""
    head, _, quoted = fault.path.rpartition("[")
    return quoted.strip("\"']") if head and fault.path.endswith(('"]', "']")) else fault.path.rpartition(".")[2]


def _finding(file: str, fault: Fault) -> Finding:
    place: dict[str, Json] = {"file": file, "path": fault.path, "line": fault.line, "column": fault.column}
    message = (
        f"{fault.path}: this member is not known and has no effect{suggestion(_member(fault), tuple(fault.allowed))}"
    )
    remedy = f"correct its name, remove it, or let it begin with {_PRIVATE}"
    return Finding(Code.MAP_PARSE_ERROR, Severity.WARN, message, place, remedy)


def _graph(root: Cursor) -> None:
    members = root.object(optional=(*source_map.MAP_REQUIRED, *source_map.MAP_OPTIONAL))
    members["nodes"].list_of(lambda at: at.object(optional=source_map.NODE))
    members["edges"].list_of(_edge)
    if members["criticalSections"].unless_null().given:
        members["criticalSections"].list_of(_section)


def _edge(at: Cursor) -> None:
    members = at.object(optional=(*source_map.EDGE_REQUIRED, *source_map.EDGE_OPTIONAL))
    if members["props"].unless_null().given:
        members["props"].object(optional=source_map.PROPS)


def _section(at: Cursor) -> None:
    members = at.object(optional=source_map.SECTION)
    members["members"].list_of(lambda member: member.object(optional=source_map.MEMBER))


def _profiles(root: Cursor) -> None:
    if root.is_list:
        root.list_of(_profile)
        return
    members = root.object(optional=("profiles",), unknown="keep")
    if "profiles" in members:
        root.object(optional=("profiles", _VERSION))
        members["profiles"].list_of(_profile)
    else:
        _profile(root)


def _profile(at: Cursor) -> None:
    members = at.object(optional=(*profiles.PROFILE, "capabilities"))
    members["geometry"].object(optional=profiles.GEOMETRY)
    safety = members["safety"].object(optional=(*profiles.SAFETY, *profiles.SAFETY_OPTIONAL))
    members["dynamics"].object(optional=(*profiles.DYNAMICS, *profiles.DYNAMICS_OPTIONAL))
    for error in ("localizationErrorM", "trackingErrorM"):
        safety[error].object(optional=profiles.ERROR)
