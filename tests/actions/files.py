"""Files of actions for tests: a valid one to change in any place, and the faults of a refused one."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import strategies as st

from pendula.documents import Document, DocumentRefused, Format, from_value, read_bytes
from tests.actions.worlds import document, does, lasting


def yaml(text: str) -> Document:
    return read_bytes(text.encode(), Format.YAML, "town.yaml")


def faults(read: Callable[[Document], object], given: Document) -> list[tuple[int, int, str, str]]:
    """Line, column, path and code of every fault."""
    with pytest.raises(DocumentRefused) as refused:
        read(given)
    return [(fault.line, fault.column, fault.path, fault.code) for fault in refused.value.faults]


def codes(read: Callable[[Document], object], value: Any) -> list[tuple[str, str]]:
    return [(path, code) for _, _, path, code in faults(read, from_value(value))]


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 5, -1, "x", [], {}, True, Decimal("0.5"), "2025-07-01T08:00:00", "2025-07-01T08:00:00Z"]
)


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, one in inner for found in paths(one, (*path, step)))]


def changed(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, list):
        return [changed(one, path[1:], new) if place == path[0] else one for place, one in enumerate(value)]
    if isinstance(value, dict):
        return {name: changed(one, path[1:], new) if name == path[0] else one for name, one in value.items()}
    return value  # an earlier change removed this place


BASE = document(
    {"clean": lasting(60, "hall", resources=[{"name": "soap", "amount": 1}]), "fix": lasting(30, skill="repair")},
    does("A1", "2025-07-01T08:00:00", "clean", knowledge=["k", {"id": "l", "to_scope": "pc"}]),
    does("A2", 500, "fix", visibility={"scope": "public", "visibility_to": ["bob"]}),
    skills={"ann": {"matrix": {"care": 1}, "override": {"clean": 2}}, "bob": {"clean": 3}},
    skill_weights={"repair": {"base": 1, "weights": {"care": 1}}},
    resources={"soap": 2},
    world_state={"modifiers": [{"name": "rain", "factor": 2, "from": 5, "verbs": ["clean"], "actors": ["ann"]}]},
    interrupts=[{"t": 490, "target": "A1", "priority": 5, "source": "bell", "hold_min": 3}],
    commands=[{"at": "2025-07-01T09:00:00", "cancel": "A2"}],
    options={"strict_locks": ["hall"], "pc": "ann", "allies": ["bob"]},
)
ALL_PATHS = paths(BASE)
