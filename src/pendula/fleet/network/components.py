"""Connected parts of a network, and nodes that can reach each other."""

from collections.abc import Sequence

from pendula.fleet.network.graph import Network


def components(network: Network) -> list[tuple[int, ...]]:
    """The parts connected regardless of direction, each sorted, in the order of their smallest node."""
    seen: set[int] = set()
    parts = []
    for start in range(len(network.nodes)):
        if start in seen:
            continue
        part, queue = {start}, [start]
        while queue:
            node = queue.pop()
            for group in network.meeting[node]:
                for end in (network.groups[group].a, network.groups[group].b):
                    if end not in part:
                        part.add(end)
                        queue.append(end)
        seen |= part
        parts.append(tuple(sorted(part)))
    return parts


def network_numbers(network: Network) -> list[int]:
    """For every node the number of its connected part."""
    result = [0] * len(network.nodes)
    for number, part in enumerate(components(network)):
        for node in part:
            result[node] = number
    return result


def main_component(network: Network, stops: Sequence[int]) -> frozenset[int]:
    """The set of nodes that can all reach each other and contains most of `stops`."""
    best: frozenset[int] = frozenset()
    best_count = 0
    seen: set[int] = set()
    for node in stops:
        if node in seen:
            continue
        both = _reached(network, node, True) & _reached(network, node, False)
        seen |= both
        count = sum(other in both for other in stops)
        # A single isolated station does not count as a component.
        if count > best_count and (len(both) > 1 or len(network.nodes) == 1):
            best, best_count = frozenset(both), count
    return best


def _reached(network: Network, start: int, forward: bool) -> set[int]:
    seen, queue = {start}, [start]
    while queue:
        node = queue.pop()
        for edge in network.outgoing[node] if forward else network.incoming[node]:
            end = network.edges[edge].end if forward else network.edges[edge].start
            if end not in seen:
                seen.add(end)
                queue.append(end)
    return seen
