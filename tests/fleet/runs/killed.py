"""A manager in a process of its own that is killed in the middle of its work, and a hall that goes on without it.

The trucks, the judge and the clock are here; the manager hears reports and says what to do over a pair of pipes. It is
killed with SIGKILL while it works on a tick or right after, and another one takes up its journal. One truck may be
silent at first, and then nothing may be granted before it has reported (FLT-FAIL-14).
"""

import os
import pickle
import signal
import traceback
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from pendula.fleet.checker import Judge, Poses, Violation
from pendula.fleet.commands import Tick
from pendula.fleet.contracts import RollingTargetCommand
from pendula.fleet.engine import FleetEngine
from pendula.fleet.gateway import read_gateway
from pendula.fleet.runs import Recording, recording_disk
from pendula.fleet.scenarios import Run, Scenario
from pendula.fleet.tasks import Operation, TaskEvent
from pendula.fleet.tick.saving import SavedRoute, plan_of, route_form
from pendula.kernel.canonical import Json
from tests.forking import CHILD_SECONDS

PERIOD_MS = 100
CHECKPOINT = 60


# What each truck keeps from others. Not how far along its route: one that goes on where its old one ends begins at 0.
Grants = dict[str, frozenset[int]]


class Said(Struct):
    """What a manager answers to a tick: what goes out, what everybody has, tasks that are done."""

    commands: tuple[RollingTargetCommand, ...]
    routes: tuple[SavedRoute, ...]
    operations: tuple[Operation, ...]
    grants: Grants
    unheard: int
    done: int


class Hall:
    """Trucks of a scenario with a manager in another process."""

    def __init__(self, scenario: Scenario, directory: Path, seed: int) -> None:
        self.run = Run(scenario)
        self.directory = directory
        self.chance = Random(seed)
        self.judge: Judge = self.run.judge
        self.violations: list[Violation] = []
        self.kills = self.done = self.waited = 0
        self.early: list[str] = []
        self._silent: tuple[str, int] | None = None
        self._known: Grants = {}
        self._undelivered: list[TaskEvent] = []
        self._manager: _Manager | None = None

    def begin(self) -> None:
        config = self.run.config
        self._manager = _Manager(lambda: _begun(config, self.directory))

    def step(self) -> Said:
        """One tick."""
        assert self._manager is not None
        said: Said = self._manager.ask(self._tick())
        self._compare(said)
        self._carry_out(said)
        self._drive(PERIOD_MS)
        return said

    def step_and_kill(self) -> None:
        """The manager gets a tick and is killed, at once or some instants later; its answer is lost."""
        assert self._manager is not None
        self._manager.send(self._tick())
        self._manager.kill(self.chance.choice((0.0, 0.0005, 0.001, 0.002, 0.004, 0.01)))
        self.kills += 1
        self._drive(PERIOD_MS)

    def stand(self, ms: int) -> None:
        """Send no commands for this time."""
        for _ in range(0, ms, PERIOD_MS):
            self._drive(PERIOD_MS)

    def restart(self, silent_ms: int = 0) -> None:
        """Another manager; one of the trucks is not heard for so long."""
        directory = self.directory
        self._manager = _Manager(lambda: _resumed(directory))
        known_ms, self._known = self._manager.ask("now")
        # Reports of the last tick are in the journal, or are sent again.
        self._undelivered = [] if known_ms >= self._asked_ms else self._undelivered
        silent = self.chance.choice(self.run.robots).robot_id
        self._silent = (silent, self.run.world.now_ms + silent_ms)

    def end(self) -> None:
        assert self._manager is not None
        self._manager.ask("close")

    def speeds(self) -> list[int]:
        return [one.v_um_s for one in self.run.world.trucks]

    def _tick(self) -> Tick:
        self._asked_ms = self.run.world.now_ms
        came = read_gateway(self.run.gateway.poll())
        self._undelivered += self.run._task_events(self._asked_ms, came.done)
        reports = tuple(one for one in came.reports if not self._is_silent(one.robot_id))
        return Tick(self._asked_ms, reports, tuple(self._undelivered))

    def _is_silent(self, robot_id: str) -> bool:
        return self._silent is not None and robot_id == self._silent[0] and self._asked_ms < self._silent[1]

    def _compare(self, said: Said) -> None:
        """While a truck is not heard, everybody has what the journal gave them and no more."""
        if said.unheard and self.kills:
            self.waited += 1
            gained = {name: sorted(own - self._known[name]) for name, own in said.grants.items()}
            self.early += [f"{name} gained {more} at {self._asked_ms} ms" for name, more in gained.items() if more]

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
                signal.alarm(CHILD_SECONDS)
                self._pipe.close()
                _serve(far, make())
                status = 0
            except BaseException:
                # Printed here, because the process ends without a message.
                traceback.print_exc()
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
            engine = recording.engine
            pipe.send_bytes(pickle.dumps((engine.now() if engine.traffic.tick_number else -1, _grants(engine))))
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
        grants=_grants(engine),
        unheard=sum(one.unheard for one in records),
        done=engine.dispatch.book.done,
    )


def _grants(engine: FleetEngine) -> Grants:
    return {one.robot_id: frozenset(one.keeps) for one in engine.traffic.records}
