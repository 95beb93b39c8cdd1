"""Loads of the benchmark of `credit`: a random network with its payments, and random debts. The same every time."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

CODE = "UNIT"
NETWORK_SEED, PAYMENTS_SEED, DEBTS_SEED = 20, 21, 22


class Payment(NamedTuple):
    sender: int
    receiver: int
    cents: int


class Debt(NamedTuple):
    debtor: int
    creditor: int
    cents: int


class Network(NamedTuple):
    """`lines` are (creditor, debtor, limit in whole units); participants are 0, 1, 2 …"""

    participants: int
    lines: Sequence[tuple[int, int, int]]


def named(participant: int) -> str:
    """Names sort as the numbers do."""
    return f"p{participant:05}"


def network(participants: int, lines: int) -> Network:
    draw = Random(NETWORK_SEED)
    return Network(participants, [(v, u, draw.randint(100, 1000)) for u, v in _pairs(draw, participants, lines)])


def scenario(given: Network, scenario_id: str = "network") -> dict[str, Any]:
    """The network as a document; everybody mediates."""
    return {
        "schema_version": "scenario/1",
        "scenario_id": scenario_id,
        "baseEquivalent": CODE,
        "participants": [{"id": named(one), "type": "person"} for one in range(given.participants)],
        "trustlines": [{"from": named(v), "to": named(u), "limit": limit} for v, u, limit in given.lines],
    }


def payments(given: Network, count: int) -> list[Payment]:
    """Between any two; amounts of 1.00 to 10.00, so that the network does not run dry."""
    draw = Random(PAYMENTS_SEED)
    ends = [draw.sample(range(given.participants), 2) for _ in range(count)]
    return [Payment(sender, receiver, draw.randint(100, 1000)) for sender, receiver in ends]


def debts(participants: int, count: int) -> list[Debt]:
    """Of up to 1000.00 each, and no two that face each other."""
    draw = Random(DEBTS_SEED)
    taken: set[tuple[int, int]] = set()
    found: list[Debt] = []
    for u, v in _pairs(draw, participants, 2 * count):
        if (v, u) not in taken and len(found) < count:
            taken.add((u, v))
            found.append(Debt(u, v, draw.randint(1, 100_000)))
    return sorted(found)


def amount(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _pairs(draw: Random, participants: int, count: int) -> list[tuple[int, int]]:
    found: dict[tuple[int, int], None] = {}
    while len(found) < count:
        u, v = draw.sample(range(participants), 2)
        found[u, v] = None
    return list(found)
