"""Questions and commands for a world, with examples that work."""

from collections.abc import Iterator
from itertools import count

from pendula.actions.engine import World
from pendula.actions.messages import Advance, CommandForm, InterruptForm, Request, Submit
from pendula.actions.minute.world_state import WorldState
from pendula.actions.model import Instance
from pendula.actions.rules.locks import Action, Stage
from pendula.actions.rules.validation import Verb
from pendula.kernel.canonical import Json
from pendula.server.runtime.scheduler_spec import (
    ChoicesView,
    FieldView,
    FormView,
    QuestionView,
    fields_of,
    form,
    form_inside,
)

MOST_QUESTIONS = 50
HOUR = 60
DOES = {Stage.WAITING: "waits", Stage.HELD: "is held", Stage.SUSPENDED: "is suspended", Stage.RUNNING: "runs"}


def choices(world: World) -> ChoicesView:
    """The choices for the current state."""
    state = world.current
    actions = sorted(state.actions.values(), key=lambda one: (one.stage is Stage.RUNNING, one.admission))
    questions = [_question(action) for action in actions[:MOST_QUESTIONS]]
    return ChoicesView(questions or [QuestionView("Why nothing happens", {"action": "A1"})], _forms(state, actions))


def _question(action: Action) -> QuestionView:
    id = action.instance.id
    return QuestionView(f"Why {id} {DOES[action.stage]}", {"action": id})


def _forms(state: WorldState, actions: list[Action]) -> list[FormView]:
    """Advance and submit always; commands about actions if there are any."""
    now = state.clock.minute
    return [
        form("Advance time", Advance, {"to": now + HOUR}),
        form_inside("Submit an action", Submit, "actions", _instance(state, actions)),
        *_interrupt([one.instance.id for one in actions if one.stage is Stage.RUNNING], now),
        *_about("cancel", [one.instance.id for one in actions], now),
        *_about("resume", [one.instance.id for one in actions if one.stage is Stage.SUSPENDED], now),
    ]


def _interrupt(running: list[str], now: int) -> Iterator[FormView]:
    if running:
        examples: dict[str, Json] = {"target": running[0], "priority": 1000, "hold_min": 0, "t": now}
        fields = fields_of(InterruptForm, examples, {"target": running})
        yield form_inside("Interrupt an action", Request, "interrupts", fields)


def _about(word: str, ids: list[str], now: int) -> Iterator[FormView]:
    if ids:
        fields = fields_of(CommandForm, {word: ids[0], "t": now}, {word: ids})
        yield form_inside(f"{word.capitalize()} an action", Request, "commands", fields)


def _instance(state: WorldState, actions: list[Action]) -> list[FieldView]:
    verbs = sorted(name for name, verb in state.setting.verbs.items() if isinstance(verb, Verb))
    actors = sorted({one.instance.actor for one in actions} | set(state.places))
    free = next(f"by-hand-{number}" for number in count(1) if f"by-hand-{number}" not in state.used_ids)
    examples: dict[str, Json] = {
        "id": free,
        "actor": _first(actors),
        "verb": _first(verbs),
        "t": state.clock.minute,
        "priority": None,
        "params": None,
    }
    return fields_of(Instance, examples, {"verb": verbs, "actor": actors})


def _first(names: list[str]) -> str:
    return names[0] if names else "ann"
