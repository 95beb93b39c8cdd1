"""A manager in a process of its own that is killed in the middle of its work, and a hall that goes on without it.

The trucks, the judge and the clock are here; the manager hears reports and says what to do over a pair of pipes. It is
killed with SIGKILL while it works on a tick or right after, and another one takes up its journal.
"""

import os
import pickle
import signal
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from pendula.fleet.checker import Judge, Poses, Violation
from pendula.fleet.commands import Tick
from pendula.fleet.contracts.traffic import RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import Recording, recording_disk
from pendula.fleet.scenarios import Run, Scenario
from pendula.fleet.tasks import Operation, TaskEvent
from pendula.fleet.tick.saving import SavedRoute, plan_of, route_form
from pendula.kernel.canonical import Json

PERIOD_MS = 100
CHECKPOINT = 60


class Said(Struct):
    """What a manager answers to a tick: what goes out, whether anybody got more room, tasks that are done."""

    commands: tuple[RollingTargetCommand, ...]
    routes: tuple[SavedRoute, ...]
    operations: tuple[Operation, ...]
    grants: dict[str, tuple[str | None, int]]
    unheard: int
    done: int


class Hall:
    """Trucks of a scenario that are told what to do by a manager elsewhere."""

    def __init__(self, scenario: Scenario, directory: Path, seed: int) -> None:
        self.run = Run(scenario)
        self.directory = directory
        self.chance = Random(seed)
        self.judge: Judge = self.run.judge
        self.violations: list[Violation] = []
        self.kills = self.done = 0
        self._undelivered: list[TaskEvent] = []
        self._manager: _Manager | None = None

    def begin(self) -> None:
        config = self.run.config
        self._manager = _Manager(lambda: _begun(config, self.directory))

    def step(self) -> Said:
        """One tick."""
        assert self._manager is not None
        said: Said = self._manager.ask(self._tick())
        self._carry_out(said)
        self._drive(PERIOD_MS)
        return said

    def step_and_kill(self) -> None:
        """The manager gets a tick and is killed, at once or some instants later; its answer reaches nobody."""
        assert self._manager is not None
        self._manager.send(self._tick())
        self._manager.kill(self.chance.choice((0.0, 0.0005, 0.001, 0.002, 0.004, 0.01)))
        self.kills += 1
        self._drive(PERIOD_MS)

    def stand(self, ms: int) -> None:
        """Nobody is told anything for so long."""
        for _ in range(0, ms, PERIOD_MS):
            self._drive(PERIOD_MS)

    def restart(self) -> None:
        directory = self.directory
        self._manager = _Manager(lambda: _resumed(directory))
        known = self._manager.ask("now")
        # What the last tick brought is in the journal, or it is told again.
        self._undelivered = [] if known >= self._asked_ms else self._undelivered

    def end(self) -> None:
        assert self._manager is not None
        self._manager.ask("close")

    def speeds(self) -> list[int]:
        return [one.v_um_s for one in self.run.world.trucks]

    def _tick(self) -> Tick:
        self._asked_ms = self.run.world.now_ms
        heard = self.run.gateway.received()
        self._undelivered += self.run._task_events(self._asked_ms, heard.done)
        return Tick(self._asked_ms, heard.reports, tuple(self._undelivered))

    def _carry_out(self, said: Said) -> None:
        self._undelivered, self.done = [], said.done
        gateway = self.run.gateway
        gateway.announce([plan_of(route, self.run.site) for route in said.routes])
        gateway.operate(said.operations)
        gateway.send(said.commands)

    def _drive(self, ms: int) -> None:
        trace = self.run.world.advance(self.run.world.now_ms + ms)
        self.violations += self.judge.look(trace.at_ms, Poses(*trace.route), Poses(*trace.truth), [])


def _begun(config: Json, directory: Path) -> Recording:
    return Recording.begin(FleetEngine.create(config), config, recording_disk(directory), snapshot_every=CHECKPOINT)


def _resumed(directory: Path) -> Recording:
    return Recording.resume(recording_disk(directory), snapshot_every=CHECKPOINT)


class _Manager:
    """A process that answers ticks."""

    def __init__(self, make: Any) -> None:
        self._pipe, far = Pipe()
        self._process = os.fork()
        if self._process == 0:
            status = 1
            try:
                self._pipe.close()
                _serve(far, make())
                status = 0
            finally:
                os._exit(status)
        far.close()

    def send(self, what: Any) -> None:
        self._pipe.send_bytes(pickle.dumps(what))

    def ask(self, what: Any) -> Any:
        self.send(what)
        answer = pickle.loads(self._pipe.recv_bytes())
        if what == "close":
            os.waitpid(self._process, 0)
        return answer

    def kill(self, after_s: float) -> None:
        self._pipe.poll(after_s)
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        self._pipe.close()


def _serve(pipe: Connection, recording: Recording) -> None:
    while True:
        what = pickle.loads(pipe.recv_bytes())
        if what == "close":
            recording.close()
            pipe.send_bytes(pickle.dumps(None))
            return
        if what == "now":
            pipe.send_bytes(pickle.dumps(recording.engine.now() if recording.engine.traffic.tick_number else -1))
            continue
        recording.apply(what)
        pipe.send_bytes(pickle.dumps(_said(recording.engine)))


def _said(engine: FleetEngine) -> Said:
    records = engine.traffic.records
    out = engine.orders_out
    return Said(
        commands=tuple(out.commands),
        routes=tuple(map(route_form, out.routes)),
        operations=out.operations,
        grants={
            one.robot_id: (None if one.track is None else one.track.plan.route_id, one.grant_um) for one in records
        },
        unheard=sum(one.unheard for one in records),
        done=engine.dispatch.book.done,
    )
