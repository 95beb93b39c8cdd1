"""Payments routed and committed on a large network, beside the bare shortest path of igraph, and what a line weighs."""

import warnings
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any

from bench import credit_loads as loads
from bench import credit_ours as ours
from bench.credit_loads import Network, Payment
from bench.measuring.cpu_time import Rounds
from pendula.cli.benchmarks import Progress, Row, Target, compared

PARTICIPANTS, LINES = 10_000, 50_000
PAYMENTS, PAYMENTS_QUICK = 5_000, 1_000
HOPS = 6
ALLOWED_BYTES = 500

AT_LEAST_IGRAPH = Target(">=", Decimal(1))
AT_MOST_ALL = Target("<=", Decimal(1))


def rows(quick: bool, progress: Progress) -> list[Row]:
    network = loads.network(PARTICIPANTS, LINES)
    wanted = loads.payments(network, PAYMENTS_QUICK if quick else PAYMENTS)
    progress(f"{len(wanted)} payments on {PARTICIPANTS} participants: do both sides agree?")
    lengths = _bare(network, wanted)
    assert_agreement(network, wanted, lengths)
    progress(f"{len(wanted)} payments on {PARTICIPANTS} participants")
    found = _beside_igraph(network, wanted, lengths, 3 if quick else 7)
    progress("memory")
    return [*found, _memory(network)]


def assert_agreement(network: Network, wanted: Sequence[Payment], lengths: Sequence[int]) -> None:
    """On the untouched network our route is as long as igraph's, and there is none where igraph's is too long."""
    book = ours.book_of(network)
    mine = [ours.route_length(book, payment, HOPS) for payment in wanted]
    assert mine == [length if length <= HOPS else 0 for length in lengths], "the sides do not find the same distances"


def _graph(network: Network) -> Any:
    igraph = import_module("igraph")
    return igraph.Graph(n=network.participants, edges=[(u, v) for v, u, _ in network.lines], directed=True)


def _bare(network: Network, wanted: Sequence[Payment]) -> list[int]:
    """Hops of the shortest paths; 0 where there is none."""
    shortest = _graph(network).get_shortest_path
    with warnings.catch_warnings():
        # Each pair without a path is warned of.
        warnings.simplefilter("ignore")
        return [len(shortest(one.sender, one.receiver, output="epath")) for one in wanted]


def _beside_igraph(network: Network, wanted: Sequence[Payment], lengths: Sequence[int], rounds: int) -> list[Row]:
    shortest = _graph(network).get_shortest_path
    cashiers = [ours.processor(network) for _ in range(rounds)]
    near = [one for one, length in zip(wanted, lengths, strict=True) if 0 < length <= HOPS]
    near_cashiers = [ours.processor(network) for _ in range(rounds)]

    def bare(payments: Sequence[Payment]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for one in payments:
                shortest(one.sender, one.receiver)

    sides = {
        "ours": lambda: ours.paid(cashiers.pop(), wanted),
        "igraph": lambda: bare(wanted),
        "ours, near": lambda: ours.paid(near_cashiers.pop(), near),
        "igraph, near": lambda: bare(near),
    }
    committed = ours.paid(ours.processor(network), wanted)
    found = Rounds(sides, rounds)

    def row(title: str, mine: str, theirs: str, count: int, target: Target | None, fairness: str) -> Row:
        return compared(
            f"payments routed and committed{title}",
            count / found.seconds(mine),
            count / found.seconds(theirs),
            "payments/s",
            against="igraph, bare shortest path",
            ratio=found.times_faster(mine, theirs),
            target=target,
            fairness=fairness,
        )

    return [
        row(
            "",
            "ours",
            "igraph",
            len(wanted),
            AT_LEAST_IGRAPH,
            f"any two of {PARTICIPANTS}; ours commits {committed} of {len(wanted)} and says of the others why not, "
            f"within {HOPS} hops, with the smallest ids of ties, several routes where one is too narrow, hops "
            "checked again before and positions after; igraph, in C, has no limit of hops and no capacities, and "
            "changes nothing",
        ),
        row(
            ", where a way exists", "ours, near", "igraph, near", len(near), None, "the same without those too far away"
        ),
    ]


def _memory(network: Network) -> Row:
    return compared(
        "memory of a trustline",
        ours.bytes_kept(network) / LINES,
        ALLOWED_BYTES,
        "bytes",
        against="allowed",
        target=AT_MOST_ALL,
        fairness="traced memory of the loaded scenario, the ledger and the text of its digest, participants included",
    )
