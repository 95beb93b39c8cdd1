"""Clearing compared with a plain greedy search and with the optimum: speed and share of the optimum."""

from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any

from bench import credit_loads as loads
from bench import credit_ours as ours
from bench.credit_loads import Debt
from bench.measuring.cpu_time import Rounds
from pendula.cli.benchmarks import Progress, Row, Target, compared, measured

DEPTH = 6
DEPTHS = (6, 8, 10)
PARTICIPANTS, DEBTS = 1000, 5000
# The default of one call; all cycles would take the plain search ten minutes.
CYCLES_PER_CALL = 100

A_QUARTER = Target(">=", Decimal(4))
A_TWENTIETH = Target(">=", Decimal(20))
# All work of a run against the flows alone.
OPTIMAL = Target(">=", Decimal(8))


def rows(village: Sequence[Debt], ticks: int, quick: bool, progress: Progress) -> list[Row]:
    """`village` has the debts after `ticks` ticks without clearing."""
    rounds = 3 if quick else 7
    random = loads.debts(PARTICIPANTS, DEBTS)
    size = f"{PARTICIPANTS} / {DEBTS}"
    progress("clearing the village")
    results = [
        _greedy(f"village after {ticks} ticks", village, None, rounds, A_QUARTER, "every cycle of up to 6 debts")
    ]
    progress(f"clearing {size}")
    note = f"the first {CYCLES_PER_CALL} cycles, the default of one call; the lead grows with the number"
    results.append(_greedy(size, random, CYCLES_PER_CALL, 1 if quick else 3, A_TWENTIETH, note))
    progress("share of the optimum")
    for name, debts in (("village", village), (size, random)):
        results += _shares(name, debts)
    progress(f"optimal clearing of {size}")
    return results + _optimal(size, random, rounds)


def _greedy(name: str, debts: Sequence[Debt], most: int | None, rounds: int, target: Target, note: str) -> Row:
    from bench import credit_plain_clearing as plain

    books = [ours.book_owing(debts) for _ in range(rounds + 1)]
    graphs = [debt_graph(debts) for _ in range(rounds + 1)]
    book = books.pop()
    assert (
        ours.named_cycles(book, ours.clear_greedily(book, DEPTH, most))
        == plain.greedy(graphs.pop(), DEPTH, most).cycles
    ), "the sides do not clear the same cycles in the same order"
    measured_sides = Rounds(
        {
            "ours": lambda: ours.clear_greedily(books.pop(), DEPTH, most),
            "greedy": lambda: plain.greedy(graphs.pop(), DEPTH, most),
        },
        rounds,
    )
    return compared(
        f"clearing, {name}",
        1 / measured_sides.seconds("ours"),
        1 / measured_sides.seconds("greedy"),
        "calls/s",
        against="plain greedy search",
        ratio=measured_sides.times_faster("ours", "greedy"),
        target=target,
        fairness=f"{note}; the same cycles in the same order on both sides; ours also checks positions after each",
    )


def _shares(name: str, debts: Sequence[Debt]) -> list[Row]:
    best = volume(ours.clear_optimally(ours.book_owing(debts)))
    shares = []
    for depth in DEPTHS:
        reached = volume(ours.clear_greedily(ours.book_owing(debts), depth, None).reduction)
        shares.append(measured(f"share of the optimum, {name}, up to {depth} debts", reached / best, ""))
    return shares


def _optimal(name: str, debts: Sequence[Debt], rounds: int) -> list[Row]:
    nx: Any = import_module("networkx")
    circulation, remainder = debt_graph(debts, kept=False), debt_graph(debts, kept=True)
    mine = volume(ours.clear_optimally(ours.book_owing(debts)))
    assert mine == loads.amount(-nx.network_simplex(circulation)[0]), "the optima differ"
    total = sum(debt.cents for debt in debts)
    assert mine == loads.amount(total - nx.network_simplex(remainder)[0]), "the optima differ"
    books = [ours.book_owing(debts) for _ in range(rounds)]
    sides = Rounds(
        {
            "ours": lambda: ours.clear_optimally(books.pop()),
            "networkx": lambda: nx.network_simplex(circulation),
            "networkx, remainder": lambda: nx.network_simplex(remainder),
        },
        rounds,
    )

    def row(title: str, theirs: str, target: Target | None, fairness: str) -> Row:
        return compared(
            f"optimal clearing, {name}{title}",
            1 / sides.seconds("ours"),
            1 / sides.seconds(theirs),
            "calls/s",
            against="networkx, network_simplex",
            ratio=sides.times_faster("ours", theirs),
            target=target,
            fairness=fairness,
        )

    return [
        row(
            "",
            "networkx",
            OPTIMAL,
            "a circulation of the largest volume, equal to the cent; ours does all work of a run: it reads the "
            "ledger, asks for the circulation, proves it, splits it into cycles and clears them; networkx finds the "
            "flows alone",
        ),
        row(
            ", in reverse order",
            "networkx, remainder",
            None,
            "networkx minimises the debt that keeps all positions: the same optimum, which its simplex finds four "
            "times as fast; printed, not judged",
        ),
    ]


def debt_graph(debts: Sequence[Debt], kept: bool | None = None) -> Any:
    """A networkx graph: amounts for the greedy search; with `kept`, capacities and costs."""
    graph = import_module("networkx").DiGraph()
    for debtor, creditor, cents in debts:
        if kept is None:
            graph.add_edge(loads.named(debtor), loads.named(creditor), debt=loads.amount(cents))
        else:
            graph.add_edge(debtor, creditor, capacity=cents, weight=1 if kept else -1)
    if kept:
        for node in graph:
            owed = sum(edge["capacity"] for _, _, edge in graph.in_edges(node, data=True))
            graph.nodes[node]["demand"] = owed - sum(
                edge["capacity"] for _, _, edge in graph.out_edges(node, data=True)
            )
    return graph


def volume(atoms: int) -> Decimal:
    return Decimal(atoms).scaleb(-8)
