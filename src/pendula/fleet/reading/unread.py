"""Members that nobody reads: allowed within a major version, and often a misspelling, so they are told of.

Those of graphs and profiles are findings of the validator, with their places; those of parameters and fleets sentences.
A member whose name begins with `x-` is somebody's own and passed over.
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
_OWN = "x-"


def unread_graph(document: Document) -> tuple[Finding, ...]:
    """A finding for each member of a graph that changes nothing."""
    return _told(document, _graph)


def unread_profiles(document: Document) -> tuple[Finding, ...]:
    """A finding for each member of a file of truck profiles that changes nothing."""
    return _told(document, _profiles)


def unread_params(document: Document) -> tuple[str, ...]:
    """One sentence for each member of a file of compile parameters that changes nothing."""
    return _unread(document.source_name, "", document.value, PARAMS)


def unread_fleet(document: Document) -> tuple[str, ...]:
    """One sentence for each member of a fleet file, or of its `params`, that changes nothing."""
    root = document.value
    inner = root.get("params") if isinstance(root, Mapping) else None
    # Limits stand at the top where there is no object for them.
    known = FLEET_MEMBERS if isinstance(inner, Mapping) else (*FLEET_MEMBERS, *FLEET_PARAMS)
    return (
        *_unread(document.source_name, "", root, known),
        *_unread(document.source_name, "params.", inner, FLEET_PARAMS),
    )


def _unread(file: str, path: str, value: Any, known: Collection[str]) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return ()
    return tuple(
        f"{file}: the member {path + name!r} is not known and has no effect{_instead(name, known)}"
        for name in value
        if name not in known and name != _VERSION
    )


def _instead(name: str, known: Collection[str]) -> str:
    if name in profiles.PLACES:
        return f"; it belongs to the truck profile: {profiles.PLACES[name]}"
    return suggestion(name, tuple(known))


def _told(document: Document, walk: Callable[[Cursor], None]) -> tuple[Finding, ...]:
    """What a walk over all known members finds unknown. It is a warning: no member is an error within a version."""
    try:
        document.read(walk)
    except DocumentRefused as refused:
        return tuple(_finding(refused.source_name, fault) for fault in refused.faults if _misread(fault))
    return ()


def _misread(fault: Fault) -> bool:
    return fault.code == "unknown_field" and not _member(fault).startswith(_OWN)


def _member(fault: Fault) -> str:
    """The last step of a path: after a dot, or quoted in brackets where it is not a plain name."""
    head, _, quoted = fault.path.rpartition("[")
    return quoted.strip("\"']") if head and fault.path.endswith(('"]', "']")) else fault.path.rpartition(".")[2]


def _finding(file: str, fault: Fault) -> Finding:
    place: dict[str, Json] = {"file": file, "path": fault.path, "line": fault.line, "column": fault.column}
    message = (
        f"{fault.path}: this member is not known and has no effect{suggestion(_member(fault), tuple(fault.allowed))}"
    )
    remedy = f"correct its name, remove it, or let it begin with {_OWN}"
    return Finding(Code.MAP_PARSE_ERROR, Severity.WARN, message, place, remedy)


def _graph(root: Cursor) -> None:
    it = root.object(optional=(*source_map.MAP_REQUIRED, *source_map.MAP_OPTIONAL))
    it["nodes"].list_of(lambda at: at.object(optional=source_map.NODE))
    it["edges"].list_of(_edge)
    if it["criticalSections"].unless_null().given:
        it["criticalSections"].list_of(_section)


def _edge(at: Cursor) -> None:
    it = at.object(optional=(*source_map.EDGE_REQUIRED, *source_map.EDGE_OPTIONAL))
    if it["props"].unless_null().given:
        it["props"].object(optional=source_map.PROPS)


def _section(at: Cursor) -> None:
    it = at.object(optional=source_map.SECTION)
    it["members"].list_of(lambda one: one.object(optional=source_map.MEMBER))


def _profiles(root: Cursor) -> None:
    if root.is_list:
        root.list_of(_profile)
        return
    it = root.object(optional=("profiles",), unknown="keep")
    if "profiles" in it:
        root.object(optional=("profiles", _VERSION))
        it["profiles"].list_of(_profile)
    else:
        _profile(root)


def _profile(at: Cursor) -> None:
    it = at.object(optional=(*profiles.PROFILE, "capabilities"))
    it["geometry"].object(optional=profiles.GEOMETRY)
    safety = it["safety"].object(optional=(*profiles.SAFETY, *profiles.SAFETY_OPTIONAL))
    it["dynamics"].object(optional=(*profiles.DYNAMICS, *profiles.DYNAMICS_OPTIONAL))
    for error in ("localizationErrorM", "trackingErrorM"):
        safety[error].object(optional=profiles.ERROR)
