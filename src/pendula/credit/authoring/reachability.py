"""Graph questions about lines: components, reachability, cycles.

Everything is derived from the lines alone, independent of debts. Edges go from sender to receiver.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_

Ways = dict[str, dict[str, None]]

# Step limit of the search for cycles; ordinary networks need a hundredth of it.
STEPS_MOST = 3_000_000


def ways_of(pairs: Iterable[tuple[str, str]]) -> Ways:
    """The receivers of each sender, in the order of the pairs."""
    ways: Ways = {}
    for payer, payee in pairs:
        ways.setdefault(payer, {})[payee] = None
    return ways


def reach(ways: Ways, sender: str, hops: int, most: int) -> Iterator[str]:
    """Participants within so many hops, layer by layer, until `most` are found, including the sender."""
    seen, layer = {sender}, [sender]
    for _ in range(hops):
        fresh: list[str] = []
        for payer in layer:
            for payee in ways.get(payer, ()):
                if payee in seen:
                    continue
                if len(seen) >= most:
                    return
                seen.add(payee)
                fresh.append(payee)
                yield payee
        layer = fresh


def marks_within(ways: Ways, marks: Mapping[str, int], hops: int) -> dict[str, int]:
    """The union of the marks (bits) of all participants within so many hops of each sender."""
    reached: dict[str, int] = {}
    for _ in range(hops):
        reached = {
            payer: reduce(or_, (marks.get(payee, 0) | reached.get(payee, 0) for payee in payees))
            for payer, payees in ways.items()
        }
    return reached


def parts(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Connected components, ignoring directions; the largest first, then by id."""
    beside: Ways = {}
    for payer, payee in pairs:
        beside.setdefault(payer, {})[payee] = None
        beside.setdefault(payee, {})[payer] = None
    components: list[list[str]] = []
    seen: set[str] = set()
    for start in sorted(beside):
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for payer in part:
            fresh = [payee for payee in beside[payer] if payee not in seen]
            seen.update(fresh)
            part += fresh
        components.append(part)
    return sorted(components, key=lambda part: (-len(part), part[0]))


def has_circle(pairs: Iterable[tuple[str, str]], most: int, steps: int = STEPS_MOST) -> bool | None:
    """Whether three to `most` participants can pay in a cycle; None if the search reached its limit.

    A walk that never turns straight back and meets a participant again has gone round a circle of at least three. Such
    walks are sought from both sides of each participant, half of the length each.
    """
    ahead = ways_of(sorted(pairs))
    behind = ways_of((payee, payer) for payer, payees in ahead.items() for payee in payees)
    if most < 3:
        return False
    everybody = sorted(ahead.keys() | behind.keys())
    _peel(ahead, behind, list(everybody))
    for start in everybody:
        if start not in ahead:
            continue
        forth, spent = _walked(ahead, start, (most + 1) // 2)
        back, more = _walked(behind, start, most // 2)
        if start in forth or any(_turns(before, back.get(at)) for at, before in forth.items()):
            return True
        steps -= spent + more
        if steps < 0:
            return None
        # Remove participants that are on no cycle.
        _peel(ahead, behind, _taken(ahead, behind, start))
    return False


def _turns(before: list[str], after: list[str] | None) -> bool:
    """Whether a walk can come from one of these and continue to a different one of those."""
    return after is not None and (len(before) > 1 or len(after) > 1 or before != after)


def _peel(ahead: Ways, behind: Ways, suspects: list[str]) -> None:
    """Remove participants that cannot be on a cycle: without predecessor, without successor, or with the same one."""
    while suspects:
        suspect = suspects.pop()
        after, before = ahead.get(suspect, {}), behind.get(suspect, {})
        if not after or not before or (len(after) == 1 and after.keys() == before.keys()):
            suspects += _taken(ahead, behind, suspect)


def _taken(ahead: Ways, behind: Ways, start: str) -> list[str]:
    """Remove a participant; returns its neighbours."""
    after, before = ahead.pop(start, {}), behind.pop(start, {})
    for other in after:
        del behind[other][start]
    for other in before:
        del ahead[other][start]
    return [*after, *before]


def _walked(ways: Ways, start: str, length: int) -> tuple[dict[str, list[str]], int]:
    """Participants met on walks without immediate reversal, each with up to two predecessors, and the number of steps.

    Two are enough: coming from the first, the walk continues to all but the first; from the second, only to the first.
    """
    met: dict[str, list[str]] = {other: [start] for other in ways[start]}
    layer, steps = [(other, start) for other in met], len(met)
    for _ in range(length - 1):
        fresh: list[tuple[str, str]] = []
        for at, came_from in layer:
            first = met[at][0]
            onward: Iterable[str] = ways[at] if came_from == first else ((first,) if first in ways[at] else ())
            for target in onward:
                steps += 1
                known = met.get(target)
                if target == came_from or (known is not None and (len(known) > 1 or known[0] == at)):
                    continue
                if known is None:
                    met[target] = [at]
                else:
                    known.append(at)
                fresh.append((target, at))
        layer = fresh
    return met, steps
