"""Governed objects, gates and rollbacks as text and tables."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from pendula.cli.commands.jobs.tables import second, short
from pendula.cli.output import facts, table

if TYPE_CHECKING:
    from rich.console import RenderableType

# Default values, not shown.
PLAIN: tuple[object, ...] = (None, [], False, 0)
FIRST = ("object_type", "object_id", "status", "epistemic_state")


def state(row: Mapping[str, Any]) -> str:
    """The state of an object and its next action, in one sentence."""
    if row["next_action"] is None:
        return f"{row['object_type']} {row['object_id']} is {_place(row)}; nothing is left to do."
    coming = f"next comes {row['next_action']} at {row['next_action_at']}"
    return f"{row['object_type']} {row['object_id']} is {_place(row)}; {coming}."


def stored(reply: Mapping[str, Any]) -> str:
    job = f" ({reply['followup_job_id']})" if reply["followup_job_id"] else ""
    return state(reply["object"])[:-1] + f"{job}."


def decided(reply: Mapping[str, Any]) -> str:
    """The outcome of a decision and the resulting state."""
    escalated = " Escalated to a person." if reply["escalated"] else ""
    nothing = " (nothing changed)" if reply["outcome"] == "noop" else ""
    return f"{reply['outcome']}{nothing}: {reply['reason']}. {stored(reply)}{escalated}"


def rolled_back(reply: Mapping[str, Any]) -> str:
    """The state after a finished rollback; or that there was none."""
    none = "" if reply["rollbacks"] else "No rollback was requested. "
    return none + state(reply["object"])


def governed(reply: Mapping[str, Any]) -> "RenderableType":
    row = reply["object"]
    pairs = [("object", f"{row['object_type']} {row['object_id']}"), ("state", _place(row))]
    # A server sends members sorted by name; show them in the order of the model.
    names = [*(name for name in _order() if name in row), *(name for name in row if name not in _order())]
    rest = [(name, row[name]) for name in names if name not in FIRST and row[name] not in PLAIN]
    pairs += [(name.replace("_", " "), _text(value)) for name, value in rest]
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
        return "No objects match."
    rows = [
        (
            row["object_id"],
            _place(row),
            row["risk_tier"],
            row["next_action"] or "-",
            second(row["next_action_at"] or "-"),
            row["closed"] or row["decision_mode"] or "",
        )
        for row in reply["objects"]
    ]
    return _with_more(table(("object", "state", "risk", "next", "at", "mode"), rows), reply)


def gates(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["gates"]:
        return "No gates are set; high-risk changes wait until the required gates are set."
    rows = [
        (row["gate"], row["scope"], row["verdict"], second(row["set_at"]), row["set_by"], short(row["reason"]))
        for row in reply["gates"]
    ]
    return _with_more(table(("gate", "scope", "verdict", "since", "by", "reason"), rows), reply)


def _with_more(drawn: "RenderableType", reply: Mapping[str, Any]) -> "RenderableType":
    if reply.get("next_after") is None:
        return drawn
    return Group(drawn, Text(f"Next page: --after {shlex.quote(reply['next_after'])}"))


def gate(row: Mapping[str, Any]) -> str:
    scope = "all objects" if row["scope"] == "*" else row["scope"]
    return f"{row['gate']} is {row['verdict']} for {scope}, set by {row['set_by']}."


def rollbacks(reply: Mapping[str, Any]) -> "RenderableType":
    if not reply["rollbacks"]:
        return "No open rollbacks."
    rows = [
        (
            row["rollback_id"],
            f"{row['object_type']} {row['object_id']}",
            second(row["asked_at"]),
            "-" if row["finished_at"] is None else second(row["finished_at"]),
            short(row["reason"]),
        )
        for row in reply["rollbacks"]
    ]
    return table(("rollback", "object", "requested", "finished", "reason"), rows)


def _traces(traces: Sequence[Mapping[str, Any]]) -> "RenderableType":
    rows = [
        (
            row["decision_trace_id"],
            second(row["at"]),
            row["action"],
            row["outcome"],
            ", ".join(f"{gate} {word}" for gate, word in row["verdicts"].items()),
            row["reason"],
        )
        for row in traces
    ]
    return table(("decision", "at", "action", "outcome", "gates", "reason"), rows)


def _order() -> list[str]:
    from pendula.governance.model import SHOWN_AS, Governed

    return [SHOWN_AS.get(name, name) for name in Governed.__struct_fields__]


def _place(row: Mapping[str, Any]) -> str:
    axis = row["epistemic_state"]
    return str(row["status"]) if axis is None else f"{row['status']}/{axis}"


def _text(value: object) -> str:
    return ", ".join(str(entry) for entry in value) if isinstance(value, list) else str(value)
