"""Documents with random mistakes are read or refused with places; no mistake is an internal error."""

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from importlib.resources import files
from random import Random
from typing import Any

import pytest

from pendula.documents import Document, DocumentRefused, Format, from_value, read_bytes
from pendula.fleet import read_profiles, read_source_map
from pendula.fleet.map.reading import unread_graph, unread_profiles
from pendula.fleet.scenarios import read_scenario, shipped_names
from tests.fleet.documents import GOLDEN

WRONG: list[Any] = [None, True, 0, -1, 1.5, 1e10, 10**30, "", "x", "A#B", "2.0.0", [], {}, [1], [[1, 2]], {"x": 1}]
CHANGES = 120


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values but the whole."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, part in inner for found in ((*path, key), *places(part, (*path, key)))]


def mutated(document: Any, draw: Random) -> Any:
    """A copy with up to three values left out, renamed or replaced."""
    copy = deepcopy(document)
    for _ in range(draw.randint(1, 3)):
        *above, key = draw.choice(places(copy) or [("x",)])
        parent = copy
        for step in above:
            parent = parent[step]
        value = parent.pop(key, None) if isinstance(parent, dict) else parent[key]
        match draw.choice(("leave out", "rename", "replace")):
            case "rename" if isinstance(parent, dict):
                parent[f"{key}x"] = value
            case "replace":
                parent[key] = draw.choice(WRONG)
    return copy


def refusals(read: Callable[[Document], object], documents: Iterable[Document]) -> list[DocumentRefused]:
    refused = []
    for document in documents:
        try:
            read(document)
        except DocumentRefused as refusal:
            refused.append(refusal)
    return refused


def are_placed(refused: Iterable[DocumentRefused]) -> bool:
    return all(fault.path.startswith("$") and fault.message for refusal in refused for fault in refusal.faults)


@pytest.mark.parametrize("name", ["SourceMap", "RobotProfile"])
def test_maps_and_profiles_with_mistakes_are_refused_with_places(name: str) -> None:
    form, draw = json.loads((GOLDEN / f"{name}.json").read_text()), Random(name)
    read, warn = (read_source_map, unread_graph) if name == "SourceMap" else (read_profiles, unread_profiles)
    documents = [from_value(mutated(form, draw)) for _ in range(CHANGES)]
    refused = refusals(read, documents)

    assert len(refused) > CHANGES // 3
    assert are_placed(refused)
    assert any(warn(document) for document in documents)


@pytest.mark.parametrize("name", shipped_names()[:6])
def test_scenarios_with_mistakes_are_refused_with_places(name: str) -> None:
    data = files("pendula.fleet.scenarios").joinpath("files", f"{name}.yaml").read_bytes()
    form, draw = read_bytes(data, Format.YAML).value, Random(name)
    documents = [from_value(mutated(form, draw)) for _ in range(CHANGES)]
    refused = refusals(lambda document: read_scenario(document, None), documents)

    assert len(refused) > CHANGES // 3
    assert are_placed(refused)
