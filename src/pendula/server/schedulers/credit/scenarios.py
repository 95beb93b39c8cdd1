"""Bundled and uploaded scenarios.

A scenario is parsed once, when it is added; each run gets its own copy.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from pendula.credit.authoring.villages import village
from pendula.credit.model import ParticipantType, Scenario
from pendula.credit.reading import read_scenario
from pendula.documents import Document, DocumentRefused, from_value
from pendula.kernel.canonical import Json, decode, encode
from pendula.server.errors import HttpRefused

FAULTS_MOST = 50


ID_MOST = 200
UNADDRESSABLE = re.compile(r"\.+|.*[/\\].*")


class ScenarioInvalid(HttpRefused):
    """The upload is not a scenario. Facts: `errors`, up to fifty of `path` and `message`."""

    code = "SCENARIO_INVALID"
    status = 400


class ScenarioExists(HttpRefused):
    """A scenario with this id exists. Facts: `scenario_id`."""

    code = "SCENARIO_EXISTS"
    status = 409


class ScenarioNotFound(HttpRefused):
    """Facts: `scenario_id`."""

    code = "SCENARIO_NOT_FOUND"
    status = 404


class Summary(Struct, frozen=True):
    """A scenario in the list of scenarios."""

    api_version: str
    scenario_id: str
    name: str | None
    created_at: str | None
    participants_count: int
    trustlines_count: int
    equivalents: list[str]
    clusters_count: int | None
    hubs_count: int | None
    tags: list[str] | None


class StoredScenario(Struct, frozen=True):
    """A scenario and its document; `uploaded_at` is None for bundled ones."""

    scenario: Scenario
    document: Json
    uploaded_at: str | None

    def summary(self, api_version: str) -> Summary:
        scenario = self.scenario
        return Summary(
            api_version=api_version,
            scenario_id=scenario.id,
            name=scenario.name,
            created_at=self.uploaded_at,
            participants_count=len(scenario.participants),
            trustlines_count=len(scenario.lines),
            equivalents=list(scenario.equivalents),
            clusters_count=len(scenario.groups) or None,
            hubs_count=sum(person.type is ParticipantType.HUB for person in scenario.participants),
            tags=["bundled"] if self.uploaded_at is None else ["uploaded"],
        )


def read(document: Document, uploaded_at: str | None) -> StoredScenario:
    """Parse a document; raises `ScenarioInvalid`."""
    try:
        scenario = read_scenario(document)
    except DocumentRefused as refused:
        raise invalid(refused) from None
    # A copy through bytes: later changes of the document have no effect.
    return StoredScenario(scenario, decode(encode(document.value)), uploaded_at)


def invalid(refused: DocumentRefused) -> ScenarioInvalid:
    errors: list[Json] = [{"path": fault.path, "message": fault.message} for fault in refused.faults[:FAULTS_MOST]]
    return ScenarioInvalid(refused.message, errors=errors)


def _village() -> dict[str, Any]:
    return {**village(100, 7), "scenario_id": "village-100", "name": "A village of a hundred"}


def _ring_of_five() -> dict[str, Any]:
    names = {"anna": "Anna", "bakery": "Bakery", "cafe": "Café", "dmytro": "Dmytro", "farm": "Farm"}
    businesses = {"bakery", "cafe", "farm"}
    around = ("anna", "bakery", "farm", "dmytro", "cafe")
    ends = [(a, b) for at, a in enumerate(around) for b in (around[(at + 1) % 5], around[(at + 4) % 5])]
    return {
        "schema_version": "scenario/1",
        "scenario_id": "ring-of-five",
        "name": "Five who trust their neighbours",
        "description": "Small enough to pay by hand and to see a circle of debt being cleared.",
        "baseEquivalent": "HOUR",
        "participants": [
            {"id": participant_id, "name": name, "type": "business" if participant_id in businesses else "person"}
            for participant_id, name in names.items()
        ],
        "trustlines": [{"from": a, "to": b, "limit": "10"} for a, b in ends],
    }


BUNDLED: Mapping[str, Callable[[], dict[str, Any]]] = {"ring-of-five": _ring_of_five, "village-100": _village}


@cache
def bundled_scenario(name: str) -> StoredScenario:
    return read(from_value(BUNDLED[name](), name), None)


class Registry:
    """Scenarios by id; bundled ones only if `allowed` has them, None allows all."""

    def __init__(self, allowed: Collection[str] | None = None) -> None:
        self._bundled = [name for name in BUNDLED if allowed is None or name in allowed]
        self._uploaded: dict[str, StoredScenario] = {}

    def all(self) -> list[StoredScenario]:
        return [*map(bundled_scenario, self._bundled), *(self._uploaded[name] for name in sorted(self._uploaded))]

    def get(self, scenario_id: str) -> StoredScenario:
        """Raises `ScenarioNotFound`."""
        if scenario_id in self._uploaded:
            return self._uploaded[scenario_id]
        if scenario_id in self._bundled:
            return bundled_scenario(scenario_id)
        shown = scenario_id[:200]
        raise ScenarioNotFound(f"There is no scenario {shown!r}", scenario_id=shown)

    def check_new(self, stored: StoredScenario) -> None:
        """Raises `ScenarioExists`."""
        name = stored.scenario.id
        if name in self._uploaded or name in BUNDLED:
            raise ScenarioExists(f"There is a scenario {name!r} already; give yours another id", scenario_id=name)

    def add(self, stored: StoredScenario) -> None:
        """Add an uploaded scenario."""
        self.check_new(stored)
        self._uploaded[stored.scenario.id] = stored


def require_addressable(scenario_id: str) -> None:
    """Raise `ScenarioInvalid` for an id that cannot be part of a URL path; ids from files may be like that."""
    if len(scenario_id) <= ID_MOST and scenario_id.isprintable() and not UNADDRESSABLE.fullmatch(scenario_id):
        return
    message = f"the id {scenario_id[:50]!r} cannot be part of an address"
    allowed = f"allowed: at most {ID_MOST} printable characters, without / and \\, and not only dots"
    errors: list[Json] = [{"path": "$.scenario_id", "message": message}]
    raise ScenarioInvalid(f"scenario: $.scenario_id: {message}; {allowed}", errors=errors)


def with_scenario_id(document: Document, scenario_id: str | None) -> Document:
    """The document with another id, if one is given."""
    if scenario_id is None or not isinstance(document.value, dict):
        return document
    return from_value({**document.value, "scenario_id": scenario_id}, document.source_name)
