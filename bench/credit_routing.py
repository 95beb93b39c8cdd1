"""Routing and committing payments on a large network, compared with the shortest path of igraph; memory per line."""

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
    payments = loads.payments(network, PAYMENTS_QUICK if quick else PAYMENTS)
    progress(f"{len(payments)} payments on {PARTICIPANTS} participants: checking that both sides agree")
    lengths = _bare(network, payments)
    assert_agreement(network, payments, lengths)
    progress(f"{len(payments)} payments on {PARTICIPANTS} participants")
    results = _beside_igraph(network, payments, lengths, 3 if quick else 7)
    progress("memory")
    return [*results, _memory(network)]


def assert_agreement(network: Network, payments: Sequence[Payment], lengths: Sequence[int]) -> None:
    """On the initial network our route is as long as that of igraph; beyond the hop limit there is none."""
    book = ours.book_of(network)
    mine = [ours.route_length(book, payment, HOPS) for payment in payments]
    assert mine == [length if length <= HOPS else 0 for length in lengths], "the sides do not find the same distances"


def _graph(network: Network) -> Any:
    igraph = import_module("igraph")
    return igraph.Graph(n=network.participants, edges=[(u, v) for v, u, _ in network.lines], directed=True)


def _bare(network: Network, payments: Sequence[Payment]) -> list[int]:
    """Hops of the shortest paths; 0 without a path."""
    shortest = _graph(network).get_shortest_path
    with warnings.catch_warnings():
        # igraph warns of each pair without a path.
        warnings.simplefilter("ignore")
        return [len(shortest(payment.sender, payment.receiver, output="epath")) for payment in payments]


def _beside_igraph(network: Network, payments: Sequence[Payment], lengths: Sequence[int], rounds: int) -> list[Row]:
    shortest = _graph(network).get_shortest_path
    processors = [ours.processor(network) for _ in range(rounds)]
    near = [payment for payment, length in zip(payments, lengths, strict=True) if 0 < length <= HOPS]
    near_processors = [ours.processor(network) for _ in range(rounds)]

    def bare(payments: Sequence[Payment]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for payment in payments:
                shortest(payment.sender, payment.receiver)

    sides = {
        "ours": lambda: ours.count_paid(processors.pop(), payments),
        "igraph": lambda: bare(payments),
        "ours, near": lambda: ours.count_paid(near_processors.pop(), near),
        "igraph, near": lambda: bare(near),
    }
    committed = ours.count_paid(ours.processor(network), payments)
    measured = Rounds(sides, rounds)

    def row(title: str, mine: str, theirs: str, count: int, target: Target | None, fairness: str) -> Row:
        return compared(
            f"payments routed and committed{title}",
            count / measured.seconds(mine),
            count / measured.seconds(theirs),
            "payments/s",
            against="igraph, bare shortest path",
            ratio=measured.times_faster(mine, theirs),
            target=target,
            fairness=fairness,
        )

    return [
        row(
            "",
            "ours",
            "igraph",
            len(payments),
            AT_LEAST_IGRAPH,
            f"any two of {PARTICIPANTS}; ours commits {committed} of {len(payments)} and gives a reason for the "
            f"others, within {HOPS} hops, with the smallest ids of ties, several routes where one is too narrow, hops "
            "checked again before and positions after; igraph, in C, has no limit of hops and no capacities, and "
            "changes nothing",
        ),
        row(
            ", where a route exists",
            "ours, near",
            "igraph, near",
            len(near),
            None,
            "the same without pairs beyond the hop limit",
        ),
    ]


def _memory(network: Network) -> Row:
    return compared(
        "memory of a trustline",
        ours.network_bytes(network) / LINES,
        ALLOWED_BYTES,
        "bytes",
        against="allowed",
        target=AT_MOST_ALL,
        fairness="traced memory of the loaded scenario, the ledger and the text of its digest, participants included",
    )
