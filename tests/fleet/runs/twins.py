"""A fleet beside its twins: before a tick another fleet is made of the bytes of its state, gets the same tick, and must
decide the same. A manager that takes up a journal does so from a snapshot; whatever decides and is not in it shows."""

from collections.abc import Callable

from pendula.fleet.commands import Commands
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import FleetEvent
from pendula.kernel.canonical import Json, decode, first_difference
from pendula.kernel.engine import Outcome
from pendula.kernel.frames import outcome_bytes


class Twins:
    """The way of a tick into a fleet, and into a twin of it where `chosen` says so."""

    def __init__(self, engine: FleetEngine, config: Json, chosen: Callable[[FleetEngine], bool]) -> None:
        self.made = 0
        self.differences: list[str] = []
        self._engine, self._config, self._chosen = engine, config, chosen

    def apply(self, command: Commands) -> Outcome[FleetEvent]:
        engine = self._engine
        twin = FleetEngine.from_state(self._config, engine.state()) if self._chosen(engine) else None
        result = engine.apply(command)
        if twin is not None:
            self.made += 1
            again = outcome_bytes(twin.apply(command))
            if again.digest() != outcome_bytes(result).digest():
                self.differences.append(f"{engine.now()} ms: {_parted(engine.state(), twin.state())}")
        return result


def _parted(one: bytes, other: bytes) -> object:
    return first_difference(decode(one), decode(other))


def waits_for_what_somebody_holds(engine: FleetEngine) -> bool:
    """Whether a truck waits for a thing of another: the next tick need not ask again what is in its way."""
    waiting = (one.waiting for one in engine.traffic.records)
    return any(one is not None and one.theirs is not None for one in waiting)
