"""The blocked-by graph of FLT-LIVE-3: which trucks block each truck up to its next refuge, and its cycles."""

from collections.abc import Mapping

from pendula.fleet.traffic.columns import trucks_of
from pendula.fleet.traffic.lock_state import LockState
from pendula.fleet.traffic.refuge import blocked_by, reach, refuge

Graph = dict[int, int]


def blocked_by_graph(state: LockState) -> Graph:
    """For every movable truck the trucks that block it, as bits. A truck without a refuge is measured to the end of its
    route."""
    graph: Graph = {}
    for i in state.moving():
        end = refuge(state, i)
        graph[i] = blocked_by(state, i, state.truck(i).goal if end is None else end)
    return graph


def cycle_of(graph: Mapping[int, int], start: int | None = None) -> tuple[int, ...]:
    """A cycle of trucks, each blocked by the next, or an empty tuple. Small numbers are tried first, `start` before
    them."""
    if not _circles(graph):
        return ()
    done: set[int] = set()
    for root in [*([start] if start is not None else []), *sorted(graph)]:
        path: list[int] = []
        cycle = _walk(graph, root, path, done)
        if cycle:
            return cycle
    return ()


def _circles(graph: Mapping[int, int]) -> bool:
    """Whether there is any cycle: a truck blocked only by unblocked trucks is not in one."""
    left = dict(graph)
    while left:
        mask = sum(1 << i for i in left)
        blocked = {i: by for i, by in left.items() if by & mask}
        if len(blocked) == len(left):
            return True
        left = blocked
    return False


def _walk(graph: Mapping[int, int], root: int, path: list[int], done: set[int]) -> tuple[int, ...]:
    on_path: dict[int, int] = {}
    todo: list[list[int]] = []

    def enter(i: int) -> None:
        on_path[i] = len(path)
        path.append(i)
        todo.append(trucks_of(graph.get(i, 0))[::-1])

    if root in done:
        return ()
    enter(root)
    while path:
        if not todo[-1]:
            todo.pop()
            left = path.pop()
            del on_path[left]
            done.add(left)
            continue
        nearest = todo[-1].pop()
        if nearest in on_path:
            return tuple(path[on_path[nearest] :])
        if nearest not in done:
            enter(nearest)
    return ()


def left_behind(state: LockState) -> list[int]:
    """Trucks that do not get to rest if all go there one after the other, each in one go (banker's algorithm)."""
    start = {i: state.truck(i).position for i in state.moving()}
    left = sorted(start)
    while True:
        gone = [i for i in left if _gone(state, i)]
        left = [i for i in left if i not in gone]
        if not gone or not left:
            break
    for i, position in start.items():
        state.place(i, position)
    return left


def _gone(state: LockState, i: int) -> bool:
    goal = state.truck(i).goal
    free = reach(state, i) == goal
    if free:
        state.place(i, goal)
    return free


def blocked_through(graph: Mapping[int, int], i: int) -> set[int]:
    """All trucks that block a truck, directly or indirectly."""
    blockers: set[int] = set()
    todo = [i]
    while todo:
        for j in trucks_of(graph.get(todo.pop(), 0)):
            if j not in blockers:
                blockers.add(j)
                todo.append(j)
    return blockers
