"""Routes of a payment: every simple path is tried in order of length and ids, without caches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.credit.oracle.ledger import apply_hop, capacities
from tests.credit.oracle.money import NOTHING
from tests.credit.oracle.world import World

Hop = tuple[str, str]
Policies = Mapping[Hop, Mapping[str, Any]]
Route = tuple[tuple[str, ...], Fraction]

NO_ROUTE, NO_CAPACITY = "ROUTING_NO_ROUTE", "ROUTING_NO_CAPACITY"


@dataclass(frozen=True)
class Outcome:
    """Routes of a committed payment, or the code of its refusal."""

    routes: tuple[Route, ...] = ()
    code: str | None = None
    hopeless: bool = False


def hops_left(hops: Mapping[Hop, Fraction], receiver: str) -> dict[str, int]:
    """The fewest hops from each node to the receiver, regardless of policies: a bound that prunes hopeless walks."""
    left, level = {receiver: 0}, [receiver]
    while level:
        level = sorted({u for u, v in hops if v in level and u not in left})
        distance = max(left.values()) + 1
        left |= dict.fromkeys(level, distance)
    return left


def paths(hops: Mapping[Hop, Fraction], sender: str, receiver: str, length: int) -> Iterator[tuple[str, ...]]:
    """All simple paths of exactly `length` hops, smallest sequence of ids first."""
    left = hops_left(hops, receiver)
    ahead: dict[str, list[str]] = {}
    for u, v in sorted(hops):
        ahead.setdefault(u, []).append(v)

    def walk(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        rest = length - (len(path) - 1)
        if path[-1] == receiver:
            if rest == 0:
                yield path
            return
        for following in ahead.get(path[-1], []):
            if following not in path and left.get(following, length) < rest:
                yield from walk((*path, following))

    yield from walk((sender,))


def may_mediate(policies: Policies, path: tuple[str, ...]) -> bool:
    """Whether the policies of the lines along a path allow its inner nodes."""
    inner = path[1:-1]
    for hop in pairwise(path):
        policy = policies.get(hop, {})
        closed = policy.get("can_be_intermediate", True) is False or policy.get("max_hop_usage") == 0
        if closed and hop[1] in inner:
            return False
        if set(inner) & set(policy.get("blocked_participants", [])):
            return False
    return True


def best_path(
    hops: Mapping[Hop, Fraction], policies: Policies, sender: str, receiver: str, max_hops: int
) -> tuple[str, ...] | None:
    usable = {hop: amount for hop, amount in sorted(hops.items()) if amount > 0}
    for length in range(1, max_hops + 1):
        for path in paths(usable, sender, receiver, length):
            if may_mediate(policies, path):
                return path
    return None


def routes(
    hops: Mapping[Hop, Fraction],
    policies: Policies,
    sender: str,
    receiver: str,
    amount: Fraction,
    max_hops: int = 6,
    max_paths: int = 3,
) -> Outcome:
    """Routes of a payment over hops with these capacities; a hop of capacity zero still counts as a line."""
    residual, missing = dict(hops), amount
    chosen: list[Route] = []
    while missing > 0 and len(chosen) < max_paths:
        path = best_path(residual, policies, sender, receiver, max_hops)
        if path is None:
            break
        along = list(pairwise(path))
        carried = min(missing, *(residual[hop] for hop in along))
        for hop in along:
            residual[hop] -= carried
        missing -= carried
        chosen.append((path, carried))
    if missing == 0:
        return Outcome(tuple(chosen))
    joined = hops_left(hops, receiver).get(sender, max_hops + 1) <= max_hops
    return Outcome(code=NO_CAPACITY if joined else NO_ROUTE)


def is_hopeless(world: World, sender: str, receiver: str, equivalent: str) -> bool:
    """Whether no allowed path exists even after clearing every circle; debts in the other direction may stay."""
    empty = {
        (debtor, creditor): line.limit + world.debt(equivalent, creditor, debtor)
        for (_, creditor, debtor), line in world.open_lines(equivalent).items()
    }
    hops = world.knobs.number("ROUTING_MAX_HOPS")
    return best_path(empty, policies_of(world, equivalent), sender, receiver, hops) is None


def policies_of(world: World, equivalent: str) -> Policies:
    """The policy that governs each hop."""
    return {(debtor, creditor): line.policy for (_, creditor, debtor), line in world.open_lines(equivalent).items()}


def pay(world: World, sender: str, receiver: str, equivalent: str, amount: Fraction) -> Outcome:
    """Find the routes of a payment and apply all or none."""
    if sender not in world.participants or receiver not in world.participants:
        return Outcome(code="PARTICIPANT_NOT_FOUND")
    limits = (world.knobs.number("ROUTING_MAX_HOPS"), world.knobs.number("ROUTING_MAX_PATHS"))
    outcome = routes(capacities(world, equivalent), policies_of(world, equivalent), sender, receiver, amount, *limits)
    for path, carried in outcome.routes:
        for payer, payee in pairwise(path):
            apply_hop(world.debts, equivalent, payer, payee, carried)
    if outcome.code is None and sum((carried for _, carried in outcome.routes), NOTHING) != amount:
        raise AssertionError("a committed payment carries its whole amount")
    if outcome.code is not None and is_hopeless(world, sender, receiver, equivalent):
        return Outcome(code=outcome.code, hopeless=True)
    return outcome
