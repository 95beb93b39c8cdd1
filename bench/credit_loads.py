"""Loads of the credit benchmark: a random network with payments, and random debts; fixed seeds."""

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
    """`lines` are (creditor, debtor, limit in whole units); participants are numbered from 0."""

    participants: int
    lines: Sequence[tuple[int, int, int]]


def named(participant: int) -> str:
    """The id of a participant; ids sort as the numbers do."""
    return f"p{participant:05}"


def network(participants: int, lines: int) -> Network:
    draw = Random(NETWORK_SEED)
    return Network(participants, [(v, u, draw.randint(100, 1000)) for u, v in _pairs(draw, participants, lines)])


def scenario(network: Network, scenario_id: str = "network") -> dict[str, Any]:
    """The network as a document; every line mediates."""
    return {
        "schema_version": "scenario/1",
        "scenario_id": scenario_id,
        "baseEquivalent": CODE,
        "participants": [{"id": named(number), "type": "person"} for number in range(network.participants)],
        "trustlines": [{"from": named(v), "to": named(u), "limit": limit} for v, u, limit in network.lines],
    }


def payments(network: Network, count: int) -> list[Payment]:
    """Payments between any two; 1.00 to 10.00, small enough to keep the network liquid."""
    draw = Random(PAYMENTS_SEED)
    ends = [draw.sample(range(network.participants), 2) for _ in range(count)]
    return [Payment(sender, receiver, draw.randint(100, 1000)) for sender, receiver in ends]


def debts(participants: int, count: int) -> list[Debt]:
    """Debts of up to 1000.00 each, at most one per pair."""
    draw = Random(DEBTS_SEED)
    taken: set[tuple[int, int]] = set()
    result: list[Debt] = []
    for u, v in _pairs(draw, participants, 2 * count):
        if (v, u) not in taken and len(result) < count:
            taken.add((u, v))
            result.append(Debt(u, v, draw.randint(1, 100_000)))
    return sorted(result)


def amount(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _pairs(draw: Random, participants: int, count: int) -> list[tuple[int, int]]:
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < count:
        u, v = draw.sample(range(participants), 2)
        pairs[u, v] = None
    return list(pairs)
