"""Small networks and the public scenarios, for the tests of this scheduler."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.credit.engine import Run
from pendula.credit.ledger.book import Book, People
from pendula.credit.model import Participant, ParticipantType, Policy, Trustline
from pendula.credit.money import ATOMS
from pendula.credit.runs.headless import Headless, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import Document, from_value, read_file
from pendula.kernel.canonical import Json, decode

PUBLIC = Path(__file__).resolve().parents[3] / "shared" / "data" / "credit"


@pytest.fixture
def public() -> Callable[[str], Document]:
    """A public scenario by its name; the test is skipped without the public collection."""

    def open_scenario(name: str) -> Document:
        path = PUBLIC / name / "scenario.json"
        if not path.exists():
            pytest.skip(f"the public scenario {name} is missing")
        return read_file(path)

    return open_scenario


def network(*lines: tuple[str, str, Json], **more: Json) -> dict[str, Json]:
    """A scenario of lines (creditor, debtor, limit) in UAH, with the participants that they name."""
    people = sorted({end for creditor, debtor, _ in lines for end in (creditor, debtor)})
    scenario: dict[str, Json] = {
        "schema_version": "scenario/1",
        "scenario_id": "test",
        "equivalents": ["UAH"],
        "participants": [{"id": name, "type": "person"} for name in people],
        "trustlines": [{"from": creditor, "to": debtor, "limit": limit} for creditor, debtor, limit in lines],
        "baseEquivalent": "UAH",
    }
    return {**scenario, **more}


def still(scenario: dict[str, Json]) -> dict[str, Any]:
    """The scenario with participants that never plan a payment, at any intensity."""
    people: Any = scenario["participants"]
    profile: Json = {"id": "still", "props": {"tx_rate": 0}}
    return {
        **scenario,
        "behaviorProfiles": [profile],
        "participants": [{**person, "behaviorProfileId": "still"} for person in people],
    }


def saved(run: Run) -> Any:
    """The decoded state of a run."""
    return decode(run.state())


def headless(scenario: dict[str, Json], seed: int = 1, intensity: int = 0, **settings: str) -> Headless:
    """A run of a scenario; intensity 0 leaves all payments to the test."""
    options = change_settings(Settings(), settings)
    return Headless(plan_run(from_value(scenario), seed=seed, intensity=intensity, settings=options))


def book(*lines: tuple[str, str, int], **policies: Policy) -> Book:
    """A ledger of lines (creditor, debtor, limit in units); a policy by the two letters of its line."""
    names = sorted({end for creditor, debtor, _ in lines for end in (creditor, debtor)})
    people = People(Participant(name, ParticipantType.PERSON) for name in names)
    rows = [
        Trustline("UAH", creditor, debtor, limit * ATOMS, policies.get(creditor + debtor, Policy()))
        for creditor, debtor, limit in lines
    ]
    return Book("UAH", people, rows)
