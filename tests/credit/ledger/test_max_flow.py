"""Exact routing against an independent maximum flow, and against exhaustive search on tiny networks."""

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, permutations
from random import Random

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.ledger.book import Book, People
from pendula.credit.ledger.max_flow import exact_routes, max_flow, shares
from pendula.credit.ledger.routing import FoundRoutes, Work, WorkSpent, greedy_routes
from pendula.credit.model import LineStatus, Participant, ParticipantType, Policy, Trustline
from tests.campaigns import campaign_after, campaign_except

PLENTY = 10**9
WAYS_TO_TRY = 16


def book_of(
    people: str, lines: dict[str, int], policies: dict[str, Policy] | None = None, frozen: Sequence[str] = ()
) -> Book:
    """Hops as "ab": value goes from a to b, which trusts it. One letter is one participant."""
    known = [Participant(name, ParticipantType.PERSON) for name in people]
    trust = [
        Trustline(
            "UAH",
            hop[1],
            hop[0],
            limit,
            (policies or {}).get(hop, Policy()),
            LineStatus.FROZEN if hop in frozen else LineStatus.ACTIVE,
        )
        for hop, limit in lines.items()
    ]
    return Book("UAH", People(known), trust)


def network(luck: Random, most_people: int, most_capacity: int, *, strict: bool = True) -> Book:
    """A random network with debts and, if strict, with policies, frozen lines and an inactive participant."""
    people = "abcdefghijkl"[: luck.randint(3, most_people)]
    pairs = [u + v for u, v in permutations(people, 2)]
    hops = luck.sample(pairs, luck.randint(len(people), min(len(pairs), 3 * len(people))))
    policies, frozen = {}, []
    for hop in hops if strict else ():
        match luck.randint(0, 15):
            case 0 | 1:
                policies[hop] = Policy(mediates=False)
            case 2 | 3:
                policies[hop] = Policy(blocked=(luck.choice(people),))
            case 4:
                frozen.append(hop)
    book = book_of(people, {hop: luck.randint(1, most_capacity) for hop in hops}, policies, frozen)
    for h in range(len(book)):
        if luck.random() < 0.3:
            book.move(h, luck.randint(0, max(0, book.capacity[h])))
    if strict and len(people) > 4 and luck.random() < 0.2:
        book.people.active[-1] = False
        book.rewire()
    return book


def networks(most_people: int, most_capacity: int, *, strict: bool = True) -> st.SearchStrategy[Book]:
    """Drawn from a seed: a strategy of lists is too sparse for more than one route."""
    return st.integers(0, 2**32 - 1).map(lambda seed: network(Random(seed), most_people, most_capacity, strict=strict))


def tangle(luck: Random) -> Book:
    """Two or three hops at either end and many between, so that routes compete for hops."""
    between = "cdefgh"[: luck.randint(3, 6)]
    pairs = [u + v for u, v in permutations(between, 2)]
    hops = ["a" + first for first in luck.sample(between, luck.randint(2, 3))]
    hops += [last + "b" for last in luck.sample(between, luck.randint(2, 3))]
    hops += luck.sample(pairs, min(len(pairs), luck.randint(len(between), 2 * len(between))))
    policies = {hop: Policy(blocked=(luck.choice(between),)) for hop in hops if luck.random() < 0.1}
    return book_of("ab" + between, {hop: luck.randint(1, 4) for hop in hops}, policies)


def usable(book: Book, h: int, receiver: int) -> bool:
    active = book.people.active
    ends = book.creditor[h], book.debtor[h]
    return (
        book.status[h] is LineStatus.ACTIVE
        and all(active[end] for end in ends)
        and (book.creditor[h] == receiver or book.policy[h].mediates)
    )


def graph_of(book: Book, receiver: int) -> "networkx.DiGraph[int]":
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(range(len(book.people)))
    for h in range(len(book)):
        if usable(book, h, receiver):
            graph.add_edge(book.debtor[h], book.creditor[h], capacity=book.limit[h] - book.owed[h])
    return graph


def largest_flow(book: Book) -> int:
    return int(networkx.maximum_flow_value(graph_of(book, 1), 0, 1))


def simple_ways(book: Book, hops: int) -> list[tuple[int, ...]]:
    """Every route from the first participant to the second that the policies allow."""
    names, others = book.people.names, range(2, len(book.people))
    ways = []
    for count in range(hops):
        for between in permutations(others, count):
            nodes = (0, *between, 1)
            way = [book.hop[u].get(v, -1) for u, v in pairwise(nodes)]
            if -1 in way or not all(usable(book, h, 1) and book.capacity[h] > 0 for h in way):
                continue
            blocked = {name for h in way for name in book.policy[h].blocked}
            if not blocked & {names[node] for node in between}:
                ways.append(tuple(way))
    return ways


def most_of_set(ways: Sequence[tuple[int, ...]], capacity: list[int]) -> int:
    """The most that these routes carry together, by trying every amount of the first."""
    if not ways:
        return 0
    best = 0
    for amount in range(min(capacity[h] for h in ways[0]) + 1):
        for h in ways[0]:
            capacity[h] -= amount
        best = max(best, amount + most_of_set(ways[1:], capacity))
        for h in ways[0]:
            capacity[h] += amount
    return best


def most_by_trying(book: Book, hops: int, paths: int) -> int:
    ways, bound, best = simple_ways(book, hops), largest_flow(book), 0
    for chosen in combinations(ways, min(paths, len(ways))):
        best = max(best, most_of_set(chosen, list(book.capacity)))
        if best == bound:
            break
    return best


def assert_sound(book: Book, payment: FoundRoutes, hops: int, paths: int) -> None:
    assert payment.amount == sum(route.amount for route in payment.routes)
    assert len(payment.routes) <= paths
    used = [0] * len(book)
    allowed = simple_ways(book, hops)
    for route in payment.routes:
        assert route.amount > 0
        assert route.hops in allowed
        for h in route.hops:
            used[h] += route.amount
    assert all(used[h] <= max(0, book.capacity[h]) for h in range(len(book)))


@pytest.mark.req("SIM-PAY-22")
@given(networks(most_people=10, most_capacity=30))
def test_the_largest_flow_equals_an_independent_computation(book: Book) -> None:
    flow = max_flow(book, 0, 1, Work(PLENTY))

    assert flow.value == largest_flow(book)


@given(networks(most_people=10, most_capacity=30))
def test_a_flow_respects_capacities_and_conserves_value(book: Book) -> None:
    flow = max_flow(book, 0, 1, Work(PLENTY))

    balance = [0] * len(book.people)
    for h, amount in flow.hops:
        assert 0 < amount <= book.capacity[h]
        assert usable(book, h, 1)
        balance[book.debtor[h]] -= amount
        balance[book.creditor[h]] += amount
    assert balance == [-flow.value, flow.value] + [0] * (len(book.people) - 2)


@given(networks(most_people=8, most_capacity=9))
def test_the_cut_separates_the_ends_and_equals_the_flow(book: Book) -> None:
    flow = max_flow(book, 0, 1, Work(PLENTY))

    graph = graph_of(book, 1)
    graph.remove_edges_from((book.debtor[h], book.creditor[h]) for h in flow.cut)
    assert sum(max(0, book.capacity[h]) for h in flow.cut) == flow.value
    assert not networkx.has_path(graph, 0, 1)


def test_of_several_minimum_cuts_the_one_nearest_to_the_sender_is_named() -> None:
    book = book_of("abcd", {"ac": 5, "cd": 5, "db": 5})

    flow = max_flow(book, 0, 1, Work(PLENTY))

    assert flow.cut == (book.hop[0][2],)


def test_an_exhausted_hop_is_named_as_the_cut() -> None:
    book = book_of("abc", {"ac": 5, "cb": 0})

    flow = max_flow(book, 0, 1, Work(PLENTY))

    assert (flow.value, flow.hops, flow.cut) == (0, (), (book.hop[2][1],))


def test_a_flow_undoes_a_bad_first_route() -> None:
    book = book_of("abcdefgh", {"ac": 1, "cd": 1, "db": 1, "ce": 1, "ef": 1, "fb": 1, "ag": 1, "gh": 1, "hd": 1})

    flow = max_flow(book, 0, 1, Work(PLENTY))

    assert flow.value == 2
    assert book.hop[2][3] not in dict(flow.hops)


def test_a_participant_has_no_flow_to_itself() -> None:
    book = book_of("abc", {"ac": 5, "ca": 5})

    assert max_flow(book, 0, 0, Work(PLENTY)).value == 0


@pytest.mark.req("SIM-PAY-11")
@given(networks(most_people=9, most_capacity=30, strict=False))
def test_with_enough_hops_and_routes_exactly_the_largest_flow_is_carried(book: Book) -> None:
    most, hops, paths = largest_flow(book), len(book.people), len(book) + 1

    carried = exact_routes(book, 0, 1, most, hops, paths, Work(PLENTY)) if most else FoundRoutes((), 0)
    refused = exact_routes(book, 0, 1, most + 1, hops, paths, Work(PLENTY))

    assert carried.amount == most
    assert refused.amount <= most
    assert_sound(book, carried, hops, paths)


@pytest.mark.req("SIM-PAY-11")
@pytest.mark.parametrize("paths", campaign_except((2,), [1, 2, 3, 4]))
@pytest.mark.parametrize("kind", [tangle, lambda luck: network(luck, 7, 3)], ids=["tangles", "networks"])
def test_a_payment_is_refused_only_if_no_set_of_routes_carries_it(kind: Callable[[Random], Book], paths: int) -> None:
    carried = refused = 0

    for seed in range(150):
        luck = Random(f"{paths} {seed}")
        book, hops = kind(luck), luck.randint(1, 6)
        if len(simple_ways(book, hops)) > WAYS_TO_TRY:
            continue
        most = most_by_trying(book, hops, paths)

        for amount in range(1, most + 2):
            payment = exact_routes(book, 0, 1, amount, hops, paths, Work(PLENTY))
            assert (payment.amount == amount) == (amount <= most), f"seed {seed}, amount {amount}"
            assert_sound(book, payment, hops, paths)
            carried += amount <= most
            refused += amount > most

    assert min(carried, refused) >= 100, (carried, refused)


@pytest.mark.parametrize("count", campaign_after(3, [1, 2, 3, 4, 5]))
def test_shares_of_routes_equal_an_exhaustive_search(count: int) -> None:
    for seed in range(300):
        luck = Random(f"{count} {seed}")
        capacity = [luck.randint(0, 3) for _ in range(7)]
        ways = [tuple(luck.sample(range(7), luck.randint(2, 3))) for _ in range(count)]
        most = most_of_set(ways, list(capacity))

        carried = shares(ways, capacity, most, Work(PLENTY))

        assert carried is not None
        assert sum(carried) == most
        assert min(carried) >= 0
        for h in range(7):
            assert sum(share for way, share in zip(ways, carried, strict=True) if h in way) <= capacity[h]
        assert shares(ways, capacity, most + 1, Work(PLENTY)) is None


@pytest.mark.parametrize(
    ("ways", "capacity", "most"),
    [
        ([(0, 3, 5, 4), (3, 4, 2, 1), (5, 2, 1), (0, 1, 2)], [1, 6, 2, 2, 1, 1], 2),
        (
            [(3, 0, 4, 1), (4, 8, 5), (2, 8, 4, 3), (1, 0, 3, 5, 8), (7, 3), (7, 2, 6, 5), (1, 7)],
            [3, 1, 1, 1, 5, 1, 1, 2, 1],
            3,
        ),
    ],
    ids=["only less of it", "only more of it"],
)
def test_a_fractional_share_is_rounded_both_ways(ways: list[tuple[int, ...]], capacity: list[int], most: int) -> None:
    carried = shares(ways, capacity, most, Work(PLENTY))

    assert carried is not None
    assert sum(carried) == most_of_set(ways, list(capacity)) == most


def test_the_set_next_to_a_failed_one_is_tried_too() -> None:
    book = book_of("abcde", {"ac": 1, "ad": 3, "cb": 1, "ce": 3, "dc": 2, "de": 2, "eb": 3})

    routes = exact_routes(book, 0, 1, 4, 3, 3, Work(PLENTY))

    assert routes.amount == most_by_trying(book, 3, 3) == 4
    assert_sound(book, routes, 3, 3)


def test_routes_that_a_flow_makes_too_long_are_found_by_search() -> None:
    # The largest flow is a-d-b and a-c-d-e-b; within three hops it has to be a-c-d-b and a-d-e-b.
    book = book_of("abcde", {"ac": 1, "cd": 1, "ad": 1, "de": 1, "eb": 1, "db": 1})

    payment = exact_routes(book, 0, 1, 2, 3, 2, Work(PLENTY))

    assert [len(route.hops) for route in payment.routes] == [3, 3]
    assert_sound(book, payment, 3, 2)


@given(networks(most_people=8, most_capacity=9), st.integers(1, 6), st.integers(1, 4), st.integers(1, 20))
def test_greedy_search_never_carries_more_than_exact_search(book: Book, hops: int, paths: int, amount: int) -> None:
    greedy = greedy_routes(book, 0, 1, amount, hops, paths, Work(PLENTY))
    exact = exact_routes(book, 0, 1, amount, hops, paths, Work(PLENTY))

    assert greedy.amount <= exact.amount <= amount


def test_exact_search_carries_a_payment_that_greedy_search_refuses() -> None:
    book = book_of("abcdefgh", {"ac": 1, "cd": 1, "db": 1, "ce": 1, "ef": 1, "fb": 1, "ag": 1, "gh": 1, "hd": 1})

    greedy = greedy_routes(book, 0, 1, 2, 4, 2, Work(PLENTY))
    exact = exact_routes(book, 0, 1, 2, 4, 2, Work(PLENTY))

    assert (greedy.amount, exact.amount) == (1, 2)
    assert_sound(book, exact, 4, 2)


def three_that_share(capacity: int) -> Book:
    """Three routes of which each pair shares one narrow hop.

    The hop from r to b blocks z: a route over z and that hop would share no narrow hop.
    """
    wide = dict.fromkeys(("am", "nq", "rb", "no", "pb", "az", "zq", "ro"), 10**20)
    narrow = dict.fromkeys(("mn", "op", "qr"), capacity)
    return book_of("abmnopqrz", wide | narrow, {"rb": Policy(blocked=("z",))})


@pytest.mark.parametrize(("amount", "carried"), [(10, True), (11, False)])
def test_three_routes_that_share_hops_in_pairs_carry_half_of_them_rounded_down(amount: int, carried: bool) -> None:
    book = three_that_share(7)

    payment = exact_routes(book, 0, 1, amount, 6, 3, Work(PLENTY))

    assert most_by_trying(book, 6, 3) == 10
    assert (payment.amount == amount) is carried
    assert_sound(book, payment, 6, 3)


@pytest.mark.parametrize("paths", [4, 5])
@pytest.mark.parametrize("scale", [1, 10**19 + 1])
def test_more_than_three_routes_use_shared_hops_fully(paths: int, scale: int) -> None:
    capacities = {"ac": 3, "ad": 3, "ce": 2, "cf": 1, "de": 1, "df": 2, "ef": 1, "eb": 3, "fb": 3, "dc": 1, "ab": 1}
    small = book_of("abcdef", capacities)
    large = book_of("abcdef", {hop: capacity * scale for hop, capacity in capacities.items()})
    most = most_by_trying(small, 4, paths)

    carried = exact_routes(large, 0, 1, most * scale, 4, paths, Work(PLENTY))
    refused = exact_routes(large, 0, 1, (most + 1) * scale, 4, paths, Work(PLENTY))

    assert carried.amount == most * scale
    assert refused.amount < (most + 1) * scale
    assert_sound(large, carried, 4, paths)


@given(networks(most_people=7, most_capacity=9), st.integers(1, 20), st.integers(0, 200))
def test_every_exit_leaves_the_ledger_unchanged(book: Book, amount: int, limit: int) -> None:
    before = list(book.capacity), list(book.owed), dict(book.reserved)

    for question in (
        lambda work: exact_routes(book, 0, 1, amount, 5, 3, work),
        lambda work: max_flow(book, 0, 1, work),
    ):
        try:
            question(Work(limit))
        except WorkSpent:
            continue

    assert (list(book.capacity), list(book.owed), dict(book.reserved)) == before


def test_a_search_beyond_its_work_limit_raises() -> None:
    people = "abcdefghijkl"
    book = book_of(people, {u + v: 1 for u, v in permutations(people, 2)})

    with pytest.raises(WorkSpent):
        exact_routes(book, 0, 1, 3, 6, 2, Work(20))
