"""Clearing beside a plain greedy search, and beside the optimum: how fast, and how much of it."""

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
# As many as one call clears by default: all of them would keep the plain search busy for ten minutes.
CYCLES_PER_CALL = 100

A_QUARTER = Target(">=", Decimal(4))
A_TWENTIETH = Target(">=", Decimal(20))
# All that a run does against the flows alone; 88 of 243 ms were the cycles before they were cut out in one pass.
OPTIMAL = Target(">=", Decimal(8))


def rows(village: Sequence[Debt], ticks: int, quick: bool, progress: Progress) -> list[Row]:
    """`village` is who owes whom there after so many ticks without clearing."""
    rounds = 3 if quick else 7
    random = loads.debts(PARTICIPANTS, DEBTS)
    size = f"{PARTICIPANTS} / {DEBTS}"
    progress("clearing the village")
    found = [_greedy(f"village after {ticks} ticks", village, None, rounds, A_QUARTER, "every cycle of up to 6 debts")]
    progress(f"clearing {size}")
    note = f"the first {CYCLES_PER_CALL} cycles, as one call does; the more, the further we are ahead"
    found.append(_greedy(size, random, CYCLES_PER_CALL, 1 if quick else 3, A_TWENTIETH, note))
    progress("how much of the optimum")
    for name, debts in (("village", village), (size, random)):
        found += _shares(name, debts)
    progress(f"optimal clearing of {size}")
    return found + _optimal(size, random, rounds)


def _greedy(name: str, debts: Sequence[Debt], most: int | None, rounds: int, target: Target, note: str) -> Row:
    from bench import credit_plain_clearing as plain

    books = [ours.owing(debts) for _ in range(rounds + 1)]
    graphs = [debt_graph(debts) for _ in range(rounds + 1)]
    book = books.pop()
    assert ours.named_cycles(book, ours.cleared(book, DEPTH, most)) == plain.greedy(graphs.pop(), DEPTH, most).cycles, (
        "the sides do not clear the same cycles in the same order"
    )
    measured_sides = Rounds(
        {
            "ours": lambda: ours.cleared(books.pop(), DEPTH, most),
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
    best = volume(ours.optimum(ours.owing(debts)))
    found = []
    for depth in DEPTHS:
        reached = volume(ours.cleared(ours.owing(debts), depth, None).reduction)
        found.append(measured(f"share of the optimum, {name}, up to {depth} debts", reached / best, ""))
    return found


def _optimal(name: str, debts: Sequence[Debt], rounds: int) -> list[Row]:
    nx: Any = import_module("networkx")
    circulation, remainder = debt_graph(debts, kept=False), debt_graph(debts, kept=True)
    mine = volume(ours.optimum(ours.owing(debts)))
    assert mine == loads.amount(-nx.network_simplex(circulation)[0]), "the optimum is another"
    total = sum(one.cents for one in debts)
    assert mine == loads.amount(total - nx.network_simplex(remainder)[0]), "the optimum is another"
    books = [ours.owing(debts) for _ in range(rounds)]
    sides = Rounds(
        {
            "ours": lambda: ours.optimum(books.pop()),
            "networkx": lambda: nx.network_simplex(circulation),
            "networkx, what is left": lambda: nx.network_simplex(remainder),
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
            "a circulation of the largest volume, equal to the cent; ours does all that a run does: reads the ledger, "
            "asks for the circulation, proves it, takes it apart into cycles and clears them; networkx finds the flows "
            "alone",
        ),
        row(
            ", in reverse order",
            "networkx, what is left",
            None,
            "networkx looks for the least debt that leaves all positions as they are: the same optimum, which its "
            "simplex finds four times as fast; printed, not judged",
        ),
    ]


def debt_graph(debts: Sequence[Debt], kept: bool | None = None) -> Any:
    """Of networkx: amounts for the greedy search; with `kept`, capacities and costs of what is kept or cleared."""
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
