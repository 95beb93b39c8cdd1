"""The largest payment over up to three routes: every set of routes is tried, each solved in closed form.

For two or three routes the largest sum is the cheapest cover of the routes by shared hops: single hops, pairs and
triples, or half of each pair.
"""

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations, pairwise

from tests.credit.oracle.money import ATOM, NOTHING, down_to
from tests.credit.oracle.routes import Hop, Policies, may_mediate, paths

Path = tuple[str, ...]


def legal_paths(
    hops: Mapping[Hop, Fraction], policies: Policies, sender: str, receiver: str, max_hops: int
) -> list[Path]:
    """Every simple path that capacity and policies allow."""
    usable = {hop: amount for hop, amount in hops.items() if amount > 0}
    return [
        path
        for length in range(1, max_hops + 1)
        for path in paths(usable, sender, receiver, length)
        if may_mediate(policies, path)
    ]


def most_payable(
    hops: Mapping[Hop, Fraction], policies: Policies, sender: str, receiver: str, max_hops: int, max_paths: int
) -> Fraction:
    """The largest payment for which a set of up to `max_paths` (three at most) routes exists, in whole atoms."""
    if max_paths > 3:
        raise AssertionError("closed form for at most three routes")
    legal = legal_paths(hops, policies, sender, receiver, max_hops)
    count = min(max_paths, len(legal))
    return max((carried(hops, chosen) for chosen in combinations(legal, count)), default=NOTHING)


def carried(hops: Mapping[Hop, Fraction], chosen: tuple[Path, ...]) -> Fraction:
    """The most that these routes carry together."""
    tightest: dict[frozenset[int], Fraction] = {}
    users = range(len(chosen))
    for size in users:
        for group in combinations(users, size + 1):
            shared = [hops[hop] for hop in hops if all(hop in pairwise(chosen[user]) for user in group)]
            if shared:
                tightest[frozenset(group)] = min(shared)
    covers = [total for total in (cover(tightest, group) for group in partitions(list(users))) if total is not None]
    pairs = [tightest.get(frozenset(pair)) for pair in combinations(users, 2)]
    if len(chosen) == 3 and None not in pairs:
        covers.append(down_to(ATOM, sum((amount for amount in pairs if amount is not None), NOTHING) / 2))
    return min(covers, default=NOTHING)


def cover(tightest: Mapping[frozenset[int], Fraction], groups: list[list[int]]) -> Fraction | None:
    """The sum of the tightest hops shared by each group; None where a group shares none."""
    amounts = [tightest.get(frozenset(group)) for group in groups]
    return None if None in amounts else sum((amount for amount in amounts if amount is not None), NOTHING)


def partitions(items: list[int]) -> list[list[list[int]]]:
    """All ways to split items into groups."""
    if not items:
        return [[]]
    first, rest = items[0], partitions(items[1:])
    joined = [
        [*groups[:place], [first, *group], *groups[place + 1 :]]
        for groups in rest
        for place, group in enumerate(groups)
    ]
    return [[[first], *groups] for groups in rest] + joined
