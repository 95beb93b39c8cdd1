"""User code of a world: hooks, functions of modifiers and processes, called while a command is applied.

Their exceptions become `UserCodeFailed`, which names the function.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from pendula.actions.model import Instance
from pendula.actions.rules.validation import exact
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import Answer, NoOutside
from pendula.kernel.errors import WrongUsage
from pendula.kernel.wording import shown

T = TypeVar("T")
STEPS_MOST = 100_000  # in one answer of a hook

# A process yields the next step, or a wait, and receives the outcome.
Step: TypeAlias = Instance | Mapping[str, Json]
Process: TypeAlias = Generator[Step, Mapping[str, Json], None]
# A hook receives `{action_id, actor, verb, params, process, outcome: {ended, t}}`, modifiers `{action_id, actor, verb,
# params, t}`; `t` is the current minute.
Hook: TypeAlias = Callable[[Mapping[str, Json]], Iterable[Step] | None]
Modifiers: TypeAlias = Callable[[Mapping[str, Json]], Mapping[str, Json] | None]


class UserCodeFailed(WrongUsage):
    """A hook, a function of modifiers or a process raised, or gave an invalid answer. Facts: `who`, `raised`."""

    code = "user_code_failed"


class UserCode:
    """User code as the outside of an engine."""

    def __init__(self, hook: Hook | None, modifiers: Modifiers | None) -> None:
        self._hook = hook
        self._modifiers = modifiers
        self.processes: dict[str, tuple[Process, int]] = {}
        self.who = "The world"  # the function called last
        self.has_advanced = False  # whether a process advanced, which cannot be undone
        self.is_running = False  # whether user code is being called

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
            further = self._resume(key, outcome)
            return [] if further is None else [further]
        hook = self._hook
        if hook is None or question["action_id"] is None:
            return []  # the process was not given to `recover`; hooks do not handle its actions
        who = f"The hook {_name(hook)}"
        return self._call(who, lambda: [_plain(one, outcome["t"]) for one in _bounded(hook(question) or ())])

    def factors(self, question: Mapping[str, Json]) -> dict[str, Json]:
        """The factors of the function of modifiers for an admission."""
        modifiers = self._modifiers
        if modifiers is None:
            return {}
        return self._call(f"The function of modifiers {_name(modifiers)}", lambda: dict(modifiers(question) or {}))

    def repeat(self, processes: Mapping[str, Process], answers: Iterable[Answer]) -> None:
        """Replay processes against the answers in a journal. Raises `UserCodeFailed` if one differs."""
        for name, process in processes.items():
            self.begin(name, process, 0)
        for stored in answers:
            question: Any = stored.question
            key = question["process"] if stored.name == "follow_up" else None
            if key in self.processes:
                further = self._resume(key, question["outcome"])
                steps = [] if further is None else [further]
                if encode(steps) != encode(stored.answer):
                    who = f"The process {key!r}"
                    raise UserCodeFailed(f"{who} does not repeat the steps in the journal", who=who, raised=None)

    def _resume(self, key: str, outcome: Any) -> Json:
        process = self.processes[key][0]
        return self._next(key, lambda: process.send(outcome), outcome["t"])

    def _next(self, key: str, go_on: Callable[[], Step], minute: int) -> Json:
        self.has_advanced = True

        def step() -> dict[str, Any] | None:
            try:
                return _plain(go_on(), minute)
            except StopIteration:
                return None

        taken = self._call(f"The process {key!r}", step)
        if taken is None:
            return None
        if "wait" in taken:
            return {**taken, "process": key}
        process, number = self.processes[key]
        self.processes[key] = (process, number + 1)
        return {"id": f"{key}-{number}", **taken, "process": key}

    def _call(self, who: str, call: Callable[[], T]) -> T:
        self.who, self.is_running = who, True
        try:
            return call()
        except Exception as trouble:
            raised = _safe_repr(trouble)
            raise UserCodeFailed(f"{who} raised {raised}", who=who, raised=raised) from trouble
        finally:
            self.is_running = False

    def refuse_if_running(self, busy: bool = False) -> None:
        """Raise `WrongUsage` during a command, when the world can neither be saved nor changed."""
        if self.is_running or busy:
            raise WrongUsage("Hooks, modifiers and processes cannot call the world. Return the follow-ups instead")


def _bounded(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps of one answer, at most STEPS_MOST."""
    for number, step in enumerate(steps):
        if number >= STEPS_MOST:
            raise ValueError(f"gave more than {STEPS_MOST} steps at once")
        yield step


def _safe_repr(trouble: BaseException) -> str:
    try:
        return repr(trouble)
    except Exception:
        # `__repr__` is user code, too.
        return type(trouble).__name__


def _name(code: Any) -> str:
    return str(getattr(code, "__qualname__", None) or type(code).__qualname__)


def _plain(step: Step, minute: int) -> dict[str, Any]:
    """A step as an object, with the current minute as default time; floats in params become exact."""
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
    """Yield this to wait for the first of several conditions, each made by `ended`, `minute` or `known`."""
    conditions: Sequence[Json] = [dict(thing) for thing in things]
    return {"wait": conditions}


def ended(action_id: str) -> dict[str, Json]:
    """Wait until an action has ended, in any way."""
    return {"ended": action_id}


def minute(t: int) -> dict[str, Json]:
    """Wait for a minute of the run."""
    return {"minute": t}


def known(item: str, by: str) -> dict[str, Json]:
    """Wait until an actor can know of an item."""
    return {"known": item, "by": by}
