"""Optimal clearing against the network simplex of networkx, and against wrong solvers."""

import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from random import Random

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.ledger.cycles import QUESTION, Edge, WrongFlows, as_cycles, check, flows_of, question_of
from pendula.credit.outside import answers
from pendula.credit.outside.answers import UNITS_MOST, AmountsTooLarge, OptimalOutside, OrTools, solve
from pendula.kernel.canonical import Json
from pendula.kernel.engine import NoAnswerSource, Recorded, Recorder, Refusal
from pendula.kernel.errors import MissingExtra

TRIANGLE: list[Edge] = [(0, 1, 100), (1, 2, 80), (2, 0, 50)]


def debts(most: int = 10**14) -> st.SearchStrategy[list[Edge]]:
    """Random debts, one-way between any two people, in random order.

    Drawn from a seed: a strategy of lists is too sparse for more than one circle.
    """
    return st.integers(0, 2**32 - 1).map(lambda seed: some_debts(Random(seed), most))


def some_debts(luck: Random, most: int) -> list[Edge]:
    people = luck.sample(range(40), luck.randint(2, 10))
    pairs = [*combinations(people, 2)]
    chosen = luck.sample(pairs, luck.randint(0, min(len(pairs), 4 * len(people))))
    turned = [(v, u) if luck.random() < 0.5 else (u, v) for u, v in chosen]
    return [(debtor, creditor, luck.randint(1, most)) for debtor, creditor in turned]


def largest_volume(edges: Sequence[Edge]) -> int:
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_node(0)
    for debtor, creditor, amount in edges:
        graph.add_edge(debtor, creditor, capacity=amount, weight=-1)
    cost, _ = networkx.network_simplex(graph)
    return -int(cost)


def positions(edges: Sequence[Edge], amounts: Sequence[int]) -> dict[int, int]:
    balances: dict[int, int] = {}
    for (debtor, creditor, _), amount in zip(edges, amounts, strict=True):
        balances[debtor] = balances.get(debtor, 0) - amount
        balances[creditor] = balances.get(creditor, 0) + amount
    return balances


class FixedFlows:
    """A solver that returns fixed flows."""

    name = "fixed 1.0"

    def __init__(self, *flows: int) -> None:
        self._flows = flows

    def solve(self, edges: Sequence[Edge]) -> tuple[int, ...]:
        return self._flows


@pytest.mark.req("SIM-CLR-14")
@given(debts())
def test_the_volume_equals_an_independent_optimum(edges: list[Edge]) -> None:
    flows = solve(edges)

    assert sum(flows) == largest_volume(edges)


@pytest.mark.req("SIM-CLR-14")
@given(debts())
def test_optimal_clearing_keeps_every_position(edges: list[Edge]) -> None:
    flows = solve(edges)

    left = [amount - flow for (_, _, amount), flow in zip(edges, flows, strict=True)]
    assert min(left, default=0) >= 0
    assert positions(edges, left) == positions(edges, [amount for _, _, amount in edges])


def test_of_two_circles_with_a_common_debt_the_longer_one_is_cleared() -> None:
    edges = [(0, 1, 10), (1, 0, 4), (1, 2, 10), (2, 3, 10), (3, 0, 10)]

    assert solve(edges) == (10, 0, 10, 10, 10)


def test_an_empty_ledger_has_no_flows() -> None:
    assert solve([]) == ()
    assert as_cycles([], ()) == ()


def test_nodes_can_have_any_numbers() -> None:
    edges = [(7, 10**12, 5), (10**12, 3, 6), (3, 7, 4)]

    assert solve(edges) == (4, 4, 4)


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        ((50, 50), "There are 3 debts and 2 flows"),
        ((-1, -1, -1), "A flow of -1 over the debt of 0 to 1; allowed is 0 to 100"),
        ((51, 51, 51), "A flow of 51 over the debt of 2 to 0; allowed is 0 to 50"),
        ((50, 50, 49), "The position of 0 would change by -1"),
        ((49, 49, 49), "Another circulation over these debts has a larger volume"),
        ((0, 0, 0), "Another circulation over these debts has a larger volume"),
    ],
)
def test_wrong_flows_are_rejected(flows: tuple[int, ...], message: str) -> None:
    with pytest.raises(WrongFlows, match=message):
        check(TRIANGLE, flows)


@given(debts(most=20), st.randoms(use_true_random=False))
def test_an_optimum_with_one_circle_less_is_rejected(edges: list[Edge], luck: Random) -> None:
    flows = list(solve(edges))
    cycles = as_cycles(edges, flows)
    if not cycles:
        return
    taken = luck.choice(cycles)
    for at in taken.hops:
        flows[at] -= 1

    with pytest.raises(WrongFlows, match="larger volume"):
        check(edges, flows)


def test_a_circulation_that_only_a_detour_improves_is_rejected() -> None:
    # The short circle is full; undoing it for the long circle increases the volume.
    edges = [(0, 1, 1), (1, 0, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]

    with pytest.raises(WrongFlows, match="larger volume"):
        check(edges, (1, 1, 0, 0, 0))
    check(edges, (1, 0, 1, 1, 1))


def test_wrong_flows_of_a_solver_are_rejected() -> None:
    with pytest.raises(WrongFlows):
        solve(TRIANGLE, FixedFlows(50, 50, 51))


def test_amounts_beyond_64_bits_are_cleared_in_their_greatest_common_unit() -> None:
    unit = 10**18 + 9
    edges = [(debtor, creditor, amount * unit) for debtor, creditor, amount in TRIANGLE]

    assert solve(edges) == (50 * unit,) * 3


def test_amounts_beyond_64_bits_without_a_common_unit_are_rejected() -> None:
    edges = [(0, 1, 10**20 - 1), (1, 2, 10**20 - 2), (2, 0, 10**20 - 3)]

    with pytest.raises(AmountsTooLarge) as refused:
        solve(edges)

    assert "too large for optimal clearing" in refused.value.message
    assert (refused.value.unit, refused.value.value, refused.value.allowed) == (1, 10**20 - 1, UNITS_MOST)


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_the_largest_allowed_amounts_are_solved(parts: int) -> None:
    share = UNITS_MOST // parts
    around = [(0, node, share) for node in range(1, parts + 1)] + [(node, 0, share - 1) for node in range(1, parts + 1)]

    assert sum(solve(around)) == 2 * parts * (share - 1)


@given(debts(most=30))
def test_cycles_are_simple_and_add_up_to_the_flows(edges: list[Edge]) -> None:
    flows = solve(edges)

    cycles = as_cycles(edges, flows)

    added = [0] * len(edges)
    for cycle in cycles:
        assert cycle.amount > 0
        assert len(set(cycle.nodes)) == len(cycle.nodes) == len(cycle.hops)
        assert cycle.nodes[0] == min(cycle.nodes)
        for at, debtor, creditor in zip(cycle.hops, cycle.nodes, cycle.nodes[1:] + cycle.nodes[:1], strict=True):
            assert edges[at][:2] == (debtor, creditor)
            added[at] += cycle.amount
    assert tuple(added) == flows


@given(debts(most=30), st.randoms(use_true_random=False))
def test_cycles_do_not_depend_on_the_order_of_the_debts(edges: list[Edge], luck: Random) -> None:
    flows = solve(edges)
    order = list(range(len(edges)))
    luck.shuffle(order)

    cycles = as_cycles(edges, flows)
    shuffled = as_cycles([edges[at] for at in order], [flows[at] for at in order])

    assert [(cycle.nodes, cycle.amount) for cycle in shuffled] == [(cycle.nodes, cycle.amount) for cycle in cycles]


def test_cycles_are_cut_out_along_a_walk_to_the_smallest_next_node() -> None:
    edges = [(0, 2, 5), (2, 3, 5), (2, 1, 3), (1, 2, 3), (3, 0, 5)]

    cycles = as_cycles(edges, (5, 5, 3, 3, 5))

    assert [(cycle.nodes, cycle.hops, cycle.amount) for cycle in cycles] == [
        ((1, 2), (3, 2), 3),
        ((0, 2, 3), (0, 1, 4), 5),
    ]


def test_the_outside_answers_with_flows_and_the_solver() -> None:
    answer = OptimalOutside().ask(QUESTION, question_of(TRIANGLE))

    assert answer == {"flows": ["50", "50", "50"], "solver": OrTools().name}
    assert OrTools().name.startswith("ortools 9.")


def test_a_recorded_answer_is_used_without_a_solver() -> None:
    live = Recorder(OptimalOutside())
    answer = live.ask(QUESTION, question_of(TRIANGLE))

    replayed = Recorded(live.answers).ask(QUESTION, question_of(TRIANGLE))

    assert replayed == answer
    assert flows_of(TRIANGLE, replayed) == (50, 50, 50)


def test_the_outside_answers_that_amounts_are_too_large() -> None:
    edges = [(0, 1, 10**20 - 1), (1, 0, 10**20 - 2)]

    refusal = flows_of(edges, OptimalOutside().ask(QUESTION, question_of(edges)))

    assert isinstance(refusal, Refusal)
    assert refusal.code == "amounts_too_large"


def test_wrong_flows_from_the_outside_become_a_refusal() -> None:
    answer = OptimalOutside(FixedFlows(50, 50, 49)).ask(QUESTION, question_of(TRIANGLE))

    refusal = flows_of(TRIANGLE, answer)

    assert isinstance(refusal, Refusal)
    assert refusal.code == "wrong_flows"


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"flows": "50"},
        {"flows": [50, 50, 50]},
        {"flows": ["50", "50", "-50"]},
        {"flows": ["50", "50", "9" * 5000]},
        {"refused": {"code": 7}},
    ],
)
def test_an_invalid_answer_becomes_a_refusal(answer: Json) -> None:
    refusal = flows_of(TRIANGLE, answer)

    assert isinstance(refusal, Refusal)
    assert refusal.code == "wrong_flows"


def test_other_questions_go_to_the_next_source() -> None:
    class Other:
        def ask(self, name: str, question: Json) -> Json:
            return [name, question]

    assert OptimalOutside(FixedFlows(), Other()).ask("pay", 5) == ["pay", 5]
    with pytest.raises(NoAnswerSource):
        OptimalOutside(FixedFlows()).ask("pay", 5)


def test_a_missing_extra_is_reported_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "find_spec", lambda _: None)

    with pytest.raises(MissingExtra, match=r'install with: pip install "pendula\[optimal\]"') as missing:
        OptimalOutside()

    assert (missing.value.code, missing.value.extra, missing.value.modules) == ("missing_extra", "optimal", ["ortools"])


def test_the_library_is_loaded_only_when_a_solver_is_created() -> None:
    loaded = "any(name.split('.')[0] == 'ortools' for name in sys.modules)"
    look = f"import sys, pendula.credit.outside.answers; print({loaded})"

    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
