"""User code behind a world: hooks, functions of modifiers and processes, asked while a command is carried out."""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from pendula.actions.model import Instance
from pendula.kernel.bodies import Nobody
from pendula.kernel.canonical import Json

# A process yields what somebody is to do next and is sent how the last thing went.
Step: TypeAlias = Instance | Mapping[str, Json]
Process: TypeAlias = Generator[Step, Mapping[str, Json], None]
Hook: TypeAlias = Callable[[Mapping[str, Json]], Iterable[Step]]
Modifiers: TypeAlias = Callable[[Mapping[str, Json]], Mapping[str, Json]]


class UserCode:
    """User code as an outside: what a hook, a function of modifiers or a process says."""

    def __init__(self, hook: Hook | None, modifiers: Modifiers | None) -> None:
        self._hook = hook
        self._modifiers = modifiers
        self.processes: dict[str, tuple[Process, int]] = {}

    def begin(self, name: str, process: Process, minute: int) -> Json:
        self.processes[name] = (process, 0)
        return self._next(name, lambda: next(process), minute)

    def ask(self, name: str, question: Json) -> Json:
        assert isinstance(question, Mapping)
        if name == "modifiers" and self._modifiers is not None:
            return dict(self._modifiers(question))
        if name != "follow_up":
            return Nobody().ask(name, question)
        outcome: Any = question["outcome"]
        key = question["process"]
        if isinstance(key, str) and key in self.processes:
            process = self.processes[key][0]
            further = self._next(key, lambda: process.send(outcome), outcome["t"])
            return [] if further is None else [further]
        if self._hook is None:
            return []
        return [_plain(step, outcome["t"]) for step in self._hook(question)]

    def _next(self, key: str, go_on: Callable[[], Step], minute: int) -> Json:
        try:
            step = _plain(go_on(), minute)
        except StopIteration:
            return None
        process, number = self.processes[key]
        self.processes[key] = (process, number + 1)
        return {"id": f"{key}-{number}", **step, "process": key}


def _plain(step: Step, minute: int) -> dict[str, Any]:
    """A step as an object, for now when it says nothing else."""
    given = step if isinstance(step, Mapping) else msgspec.structs.asdict(step)
    plain = {name: value for name, value in given.items() if value is not None and value != ()}
    return plain if "t" in plain or "submitted_at" in plain else {**plain, "t": minute}
