"""User code behind a world: hooks, functions of modifiers and processes, asked while a command is carried out.

What it raises comes out as `UserCodeFailed`, which says who raised it.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from pendula.actions.model import Instance
from pendula.actions.rules.validation import exact
from pendula.kernel.bodies import Answer, NoOutside
from pendula.kernel.canonical import Json, encode
from pendula.kernel.errors import WrongUsage
from pendula.kernel.wording import shown

T = TypeVar("T")
STEPS_MOST = 100_000  # in one answer of a hook

# A process yields what somebody is to do next, or what it waits for, and is sent how that went.
Step: TypeAlias = Instance | Mapping[str, Json]
Process: TypeAlias = Generator[Step, Mapping[str, Json], None]
# A hook is asked `{action_id, actor, verb, params, process, outcome: {ended, t}}`, modifiers `{action_id, actor, verb,
# params, t}`; `t` is the minute of the question.
Hook: TypeAlias = Callable[[Mapping[str, Json]], Iterable[Step] | None]
Modifiers: TypeAlias = Callable[[Mapping[str, Json]], Mapping[str, Json] | None]


class UserCodeFailed(WrongUsage):
    """A hook, a function of modifiers or a process raised, or answered what cannot be kept. Facts: `who`, `raised`."""

    code = "user_code_failed"


class UserCode:
    """User code as an outside: what a hook, a function of modifiers or a process says."""

    def __init__(self, hook: Hook | None, modifiers: Modifiers | None) -> None:
        self._hook = hook
        self._modifiers = modifiers
        self.processes: dict[str, tuple[Process, int]] = {}
        self.who = "The world"  # is being asked, or was the last
        self.moved = False  # whether a process went on: it cannot be sent back
        self.asked = False  # whether it is being asked at this moment

    def begin(self, name: str, process: Process, minute: int, number: int = 0) -> Json:
        """The first step of a process; its steps are numbered from `number`."""
        self.processes[name] = (process, number)
        try:
            return self._next(name, lambda: next(process), minute)
        except UserCodeFailed:
            del self.processes[name]
            raise

    def ask(self, name: str, question: Json) -> Json:
        assert isinstance(question, Mapping)
        if name == "modifiers" and self._modifiers is not None:
            return self.factors(question)
        if name != "follow_up":
            return NoOutside().ask(name, question)
        outcome: Any = question["outcome"]
        key = question["process"]
        if isinstance(key, str) and key in self.processes:
            further = self._go_on(key, outcome)
            return [] if further is None else [further]
        hook = self._hook
        if hook is None or question["action_id"] is None:
            return []  # a process that nobody brought along again is no matter of a hook
        who = f"The hook {_name(hook)}"
        return self._asked(who, lambda: [_plain(one, outcome["t"]) for one in _some(hook(question) or ())])

    def factors(self, question: Mapping[str, Json]) -> dict[str, Json]:
        """What the function of modifiers says to an admission; nothing where there is none."""
        modifiers = self._modifiers
        if modifiers is None:
            return {}
        return self._asked(f"The function of modifiers {_name(modifiers)}", lambda: dict(modifiers(question) or {}))

    def repeat(self, processes: Mapping[str, Process], answers: Iterable[Answer]) -> None:
        """Let processes do again what a journal says they did; `UserCodeFailed` where one does something else."""
        for name, process in processes.items():
            self.begin(name, process, 0)
        for stored in answers:
            question: Any = stored.question
            key = question["process"] if stored.name == "follow_up" else None
            if key in self.processes:
                further = self._go_on(key, question["outcome"])
                said = [] if further is None else [further]
                if encode(said) != encode(stored.answer):
                    who = f"The process {key!r}"
                    raise UserCodeFailed(f"{who} does not do again what the journal says it did", who=who, raised=None)

    def _go_on(self, key: str, outcome: Any) -> Json:
        process = self.processes[key][0]
        return self._next(key, lambda: process.send(outcome), outcome["t"])

    def _next(self, key: str, go_on: Callable[[], Step], minute: int) -> Json:
        self.moved = True

        def step() -> dict[str, Any] | None:
            try:
                return _plain(go_on(), minute)
            except StopIteration:
                return None

        taken = self._asked(f"The process {key!r}", step)
        if taken is None:
            return None
        if "wait" in taken:
            return {**taken, "process": key}
        process, number = self.processes[key]
        self.processes[key] = (process, number + 1)
        return {"id": f"{key}-{number}", **taken, "process": key}

    def _asked(self, who: str, call: Callable[[], T]) -> T:
        self.who, self.asked = who, True
        try:
            return call()
        except Exception as trouble:
            raised = _told(trouble)
            raise UserCodeFailed(f"{who} raised {raised}", who=who, raised=raised) from trouble
        finally:
            self.asked = False

    def refuse_if_asked(self, busy: bool = False) -> None:
        """A world in the middle of a command can neither be saved nor changed; raises `WrongUsage`."""
        if self.asked or busy:
            raise WrongUsage(
                "Hooks, modifiers and processes answer; they do not call the world. Return what is to follow"
            )


def _some(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps of one answer; who never comes to an end is stopped."""
    for number, step in enumerate(steps):
        if number >= STEPS_MOST:
            raise ValueError(f"gave more than {STEPS_MOST} steps at once")
        yield step


def _told(trouble: BaseException) -> str:
    try:
        return repr(trouble)
    except Exception:
        # Even the words of an exception are anybody's code.
        return type(trouble).__name__


def _name(code: Any) -> str:
    return str(getattr(code, "__qualname__", None) or type(code).__qualname__)


def _plain(step: Step, minute: int) -> dict[str, Any]:
    """A step as an object, for now when it says nothing else; params may have floats, which become exact."""
    if not isinstance(step, Mapping | Instance):
        raise TypeError(f"a step is an object or an Instance, not {shown(step)}")
    given = step if isinstance(step, Mapping) else step.members()
    plain = {name: value for name, value in given.items() if value is not None and value != ()}
    if "params" in plain:
        plain["params"] = exact(plain["params"])
    if "wait" in plain:
        return plain
    return plain if "t" in plain or "submitted_at" in plain else {**plain, "t": minute}


def any_of(*things: Mapping[str, Json]) -> dict[str, Json]:
    """What a process yields to wait for the first of several things, each made by `ended`, `minute` or `known`."""
    listed: Sequence[Json] = [dict(one) for one in things]
    return {"wait": listed}


def ended(action_id: str) -> dict[str, Json]:
    """Wait until an action is over, in whatever way."""
    return {"ended": action_id}


def minute(t: int) -> dict[str, Json]:
    """Wait for a minute of the run."""
    return {"minute": t}


def known(item: str, by: str) -> dict[str, Json]:
    """Wait until an actor can know of an item."""
    return {"known": item, "by": by}
