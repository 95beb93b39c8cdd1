"""The state of the oracle: participants, lines and debts in plain dictionaries keyed by strings."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.credit.oracle.knobs import Knobs
from tests.credit.oracle.money import CENT, NOTHING, down_to, exact

# Lines are named (equivalent, creditor, debtor), debts (equivalent, debtor, creditor).
Name = tuple[str, str, str]
Debts = dict[Name, Fraction]


@dataclass
class Line:
    """A trustline; `original` is the base of growth and decay."""

    limit: Fraction
    policy: dict[str, Any] = field(default_factory=dict)
    status: str = "active"
    original: Fraction = NOTHING

    def __post_init__(self) -> None:
        self.original = down_to(CENT, self.limit)


Lines = dict[Name, Line]


@dataclass
class Participant:
    status: str = "active"
    group: str | None = None
    profile: str | None = None


@dataclass
class World:
    """Everything a tick reads and writes."""

    scenario: dict[str, Any]
    knobs: Knobs
    equivalents: list[str]
    participants: dict[str, Participant]
    lines: Lines
    debts: Debts = field(default_factory=dict)

    def is_active(self, who: str) -> bool:
        return self.participants[who].status == "active"

    def debt(self, equivalent: str, debtor: str, creditor: str) -> Fraction:
        return self.debts.get((equivalent, debtor, creditor), NOTHING)

    def open_lines(self, equivalent: str) -> Lines:
        """Lines that a payment may use: active, between active participants."""
        return {
            name: line
            for name, line in sorted(self.lines.items())
            if name[0] == equivalent and line.status == "active" and self.is_active(name[1]) and self.is_active(name[2])
        }

    def live_lines(self, equivalent: str) -> Lines:
        """Lines that the planner sees: open and with a limit above zero."""
        return {name: line for name, line in self.open_lines(equivalent).items() if line.limit > 0}

    def section(self, name: str) -> dict[str, Any]:
        return dict(self.scenario.get("settings", {}).get(name, {}))


def code(equivalent: str) -> str:
    return equivalent.strip().upper()


def participant(entry: Mapping[str, Any]) -> Participant:
    return Participant(entry.get("status", "active"), entry.get("groupId"), entry.get("behaviorProfileId"))


def world_of(scenario: Mapping[str, Any], settings: Mapping[str, str]) -> World:
    """The world before the first tick."""
    own = deepcopy(dict(scenario))
    default = own.get("baseEquivalent")
    lines: Lines = {}
    for entry in own["trustlines"]:
        equivalent = code(entry.get("equivalent", default))
        lines[equivalent, entry["from"], entry["to"]] = Line(exact(entry["limit"]), dict(entry.get("policy", {})))
    codes = {code(item) for item in own.get("equivalents", [])} | {name[0] for name in lines}
    if default is not None:
        codes.add(code(default))
    people = {entry["id"]: participant(entry) for entry in own["participants"]}
    return World(own, Knobs(settings), sorted(codes), people, lines)
