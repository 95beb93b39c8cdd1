"""What people see of governed objects: facts of one, tables of many, gates, rollbacks."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from pendula.cli.commands.jobs.tables import second, short
from pendula.cli.output import facts, table

if TYPE_CHECKING:
    from rich.console import RenderableType

# What says nothing by being so.
PLAIN: tuple[object, ...] = (None, [], False, 0)
FIRST = ("object_type", "object_id", "status", "epistemic_state")


def state(one: Mapping[str, Any]) -> str:
    """Where an object is and what comes next, in one sentence."""
    if one["next_action"] is None:
        return f"{one['object_type']} {one['object_id']} is {_place(one)}; nothing is left to do."
    coming = f"next comes {one['next_action']} at {one['next_action_at']}"
    return f"{one['object_type']} {one['object_id']} is {_place(one)}; {coming}."


def kept(reply: Mapping[str, Any]) -> str:
    job = f" ({reply['followup_job_id']})" if reply["followup_job_id"] else ""
    return state(reply["object"])[:-1] + f"{job}."


def decided(reply: Mapping[str, Any]) -> str:
    """How a decision ended, and where that leaves the object."""
    asked = " A person is asked." if reply["escalated"] else ""
    nothing = " (nothing changed)" if reply["outcome"] == "noop" else ""
    return f"{reply['outcome']}{nothing}: {reply['reason']}. {kept(reply)}{asked}"


def rolled_back(reply: Mapping[str, Any]) -> str:
    """Where a finished rollback leaves the object; or that there was none to finish."""
    none = "" if reply["rollbacks"] else "No rollback was ever asked for. "
    return none + state(reply["object"])


def governed(reply: Mapping[str, Any]) -> "RenderableType":
    one = reply["object"]
    pairs = [("object", f"{one['object_type']} {one['object_id']}"), ("state", _place(one))]
    # A server sends members by name; people read them in the order of the model.
    told = [*(name for name in _order() if name in one), *(name for name in one if name not in _order())]
    rest = [(name, one[name]) for name in told if name not in FIRST and one[name] not in PLAIN]
    pairs += [(name.replace("_", " "), _said(value)) for name, value in rest]
    parts: list[RenderableType] = [facts(pairs)]
    if reply["gates"]:
        parts += ["", gates(reply)]
    if reply["decision_traces"]:
        parts += ["", _traces(reply["decision_traces"])]
    if reply["rollbacks"]:
        parts += ["", rollbacks(reply)]
    return Group(*parts)


def page(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["objects"]:
        return "There are no such objects."
    rows = [
        (
            one["object_id"],
            _place(one),
            one["risk_tier"],
            one["next_action"] or "-",
            second(one["next_action_at"] or "-"),
            one["closed"] or one["decision_mode"] or "",
        )
        for one in reply["objects"]
    ]
    return _with_more(table(("object", "state", "risk", "next", "at", "how to decide"), rows), reply)


def gates(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["gates"]:
        return "No gate is set; a change of high risk waits until those that have to be asked are."
    rows = [
        (one["gate"], one["scope"], one["verdict"], second(one["set_at"]), one["set_by"], short(one["reason"]))
        for one in reply["gates"]
    ]
    return _with_more(table(("gate", "scope", "verdict", "since", "by", "why"), rows), reply)


def _with_more(drawn: "RenderableType", reply: Mapping[str, Any]) -> "RenderableType":
    if reply.get("next_after") is None:
        return drawn
    return Group(drawn, Text(f"There are more: --after {shlex.quote(reply['next_after'])}"))


def gate(one: Mapping[str, Any]) -> str:
    scope = "everything" if one["scope"] == "*" else one["scope"]
    return f"{one['gate']} says {one['verdict']} for {scope}, by {one['set_by']}."


def rollbacks(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["rollbacks"]:
        return "No rollback is waited for."
    rows = [
        (
            one["rollback_id"],
            f"{one['object_type']} {one['object_id']}",
            second(one["asked_at"]),
            "-" if one["finished_at"] is None else second(one["finished_at"]),
            short(one["reason"]),
        )
        for one in reply["rollbacks"]
    ]
    return table(("rollback", "object", "asked", "finished", "why"), rows)


def _traces(traces: Sequence[Mapping[str, Any]]) -> "RenderableType":
    rows = [
        (
            one["decision_trace_id"],
            second(one["at"]),
            one["action"],
            one["outcome"],
            ", ".join(f"{gate} {word}" for gate, word in one["verdicts"].items()),
            one["reason"],
        )
        for one in traces
    ]
    return table(("decision", "at", "action", "outcome", "gates", "why"), rows)


def _order() -> list[str]:
    from pendula.jobs.objects.governed import SHOWN_AS, Governed

    return [SHOWN_AS.get(name, name) for name in Governed.__struct_fields__]


def _place(one: Mapping[str, Any]) -> str:
    axis = one["epistemic_state"]
    return str(one["status"]) if axis is None else f"{one['status']}/{axis}"


def _said(value: object) -> str:
    return ", ".join(str(entry) for entry in value) if isinstance(value, list) else str(value)
