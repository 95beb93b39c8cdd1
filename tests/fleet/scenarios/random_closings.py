"""Places of random LIVE maps closed and opened while trucks drive, and checks of what must not happen meanwhile."""

from collections.abc import Iterator
from random import Random

from msgspec import UNSET

from pendula.fleet.contracts import OperatorAction
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.scenarios import Run
from pendula.fleet.tasks.operators import ActionResult
from pendula.fleet.tick.orders import shut_of
from tests.fleet.scenarios.random_runs import Case, site

# The time trucks may need for the remaining tasks once all is open.
ALL_DONE_MS = 60 * 60_000


def changed(run: Run, kind: str, *names: str, force: bool = False) -> ActionResult:
    """The answer to an operator who closes or opens places."""
    action_id = f"{kind}-{run.now_ms}-{names[0]}"
    run.act(
        OperatorAction(
            *("1.0.0", action_id, run.now_ms, "anna", kind, "wet floor"),
            resources=names,
            force=True if force else UNSET,
        )
    )
    run.step()
    return next(answer for action, answer in run.engine.inbox.saved().answers if action.actionId == action_id)


def places(site: CompiledMap) -> list[str]:
    network = site.network
    return [
        *(f"EDGE_GROUP:{group.key}" for group in network.groups),
        *(f"EDGE:{edge.key}" for edge in network.edges),
        *(f"NODE:{node.id}" for node in network.nodes),
    ]


class ClosedHoldings:
    """Resources of closed places held by trucks, tick by tick."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = self._held()

    def _held(self) -> dict[str, set[int]]:
        return {record.robot_id: set(record.keeps) for record in self._run.traffic.records}

    def newly_entered(self) -> Iterator[str]:
        """Every truck that newly holds a part of a closed place since the last tick."""
        held = self._held()
        for closing in self._run.traffic.closings:
            resources = shut_of(self._run.site, closing.resource).resources
            for name, now in held.items():
                if now & resources and not self._before[name] & resources:
                    yield f"{name} came into {closing.resource} at {self._run.now_ms} ms"
        self._before = held


def closed_and_opened(case: Case) -> tuple[Run, list[str]]:
    """A run in which up to three places are closed at a time, and all is open in the end; and its faults."""
    random = Random(20_000 + case.seed)
    run = Run(case.scenario(), site(case.map_seed, case.parks))
    every, closed, wrong = places(run.site), list[str](), list[str]()
    holdings = ClosedHoldings(run)

    def step() -> None:
        run.step()
        wrong.extend(holdings.newly_entered())
        wrong.extend(f"{text} at {run.now_ms} ms" for text in run.traffic.broken())

    while run.now_ms < case.duration_ms:
        for _ in range(random.randrange(5, 60)):
            step()
        if closed and (len(closed) == 3 or random.random() < 0.4):
            name = closed.pop(random.randrange(len(closed)))
            assert changed(run, "OPEN_RESOURCE", name).accepted
        else:
            name = random.choice(every)
            if changed(run, "CLOSE_RESOURCE", name, force=random.random() < 0.5).accepted:
                closed.append(name)
        wrong.extend(holdings.newly_entered())
    if closed:
        assert changed(run, "OPEN_RESOURCE", *closed).accepted
        wrong.extend(holdings.newly_entered())
    while not run.is_over and run.now_ms < case.duration_ms + ALL_DONE_MS:
        step()
    wrong += [f"{breach.invariant} at {breach.at_ms} ms: {breach.sentence}" for breach in run.measures.breaches[:3]]
    wrong += [code for code in run.measures.alerts if code.startswith("DEADLOCK")]
    if not run.is_over:
        wrong.append(f"open tasks {sorted(run.dispatch.book.open)}: {[why.code for why in run.traffic.whys()]}")
    return run, wrong
