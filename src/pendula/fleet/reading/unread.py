"""Members of parameter and fleet files that nobody reads: allowed within a major version, and often a misspelling."""

from collections.abc import Collection, Mapping
from typing import Any

from pendula.documents import Document
from pendula.documents.faults import suggestion
from pendula.fleet.reading.fleet import FLEET_MEMBERS, FLEET_PARAMS
from pendula.fleet.reading.params import PARAMS

_VERSION = "contractVersion"


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
        f"{file}: nobody reads the member {path + name!r}{suggestion(name, tuple(known))}"
        for name in value
        if name not in known and name != _VERSION
    )
