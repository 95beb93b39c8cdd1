"""Sentences of codes and facts, rendered where they are shown; no journal, state or digest contains one."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import minutes_between_ceil, parse_iso
from pendula.kernel.wording import number_text, shown_fact, unknown_name, validation_sentence

Facts = Mapping[str, Any]

REFUSALS: Mapping[str, Callable[[Facts], str]] = {
    "not_a_minute": lambda facts: f"A minute is a whole number, not {shown_fact(facts['value'])}.",
    "too_far_away": lambda facts: f"Minute {facts['to']} is too far away; the last is {facts['latest']}.",
    "time_goes_forward": lambda facts: f"It is minute {facts['now']}; time does not go back to {facts['to']}.",
}

LIMITS = {
    "actions_instances": "The epoch has too many instances",
    "actions_locks": "The world has too many locks",
    "actions_locks_each": "The instance has too many locks",
    "actions_resources_each": "Too many resources for an instance",
    "actions_follow_ups": "One minute has too many follow-ups",
}
FOLLOW_UPS = {
    "one_upon_another": "one upon another",
    "in_one_answer": "in one answer",
    "declared": "declared by definitions",
}


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence for the code of a refusal."""
    return REFUSALS[code](facts)


def reason_sentence(reason: str, facts: Facts) -> str:
    """The sentence for the reason of a fault, a rejection or a diagnostic."""
    return REASONS[reason](facts)


def _number(value: Any) -> str:
    """The same text before and after a journal: canonical bytes have no zeros at the end of a fraction."""
    text = number_text(value) if isinstance(value, int) else format(Decimal(value), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _not_canonical(facts: Facts) -> str:
    found = facts["found"]
    if found == "nested":
        return "The value is nested too deeply or contains itself"
    if not isinstance(found, Mapping) or "float" not in found:
        return f"the value at {facts['path']} cannot be written as JSON"
    number = found["float"]
    if number in ("inf", "-inf", "nan"):
        return f"{number} is not a finite number, at {facts['path']}"
    return f"{number} is a binary float, which is not exact: write Decimal('{number}'), at {facts['path']}"


def _unreadable_time(facts: Facts) -> str:
    """Read the text again to get the error message of the reader."""
    try:
        minutes_between_ceil(parse_iso(facts["start"]), parse_iso(facts["value"]))
    except InputRefused as fault:
        return fault.message
    return f"{facts['value']!r} is not a time"


def _short(facts: Facts) -> str:
    return "; ".join(
        f"{one['name']}: {_number(one['needed'])} needed, {_number(one['available'])} available"
        for one in facts["short"]
    )


def _too_many(facts: Facts) -> str:
    if "how" in facts:
        return f"{LIMITS[facts['limit']]}: more than {facts['allowed']}, {FOLLOW_UPS[facts['how']]}"
    if "count" in facts:
        return f"{LIMITS[facts['limit']]}: {facts['count']}, allowed are {facts['allowed']}"
    return f"{LIMITS[facts['limit']]}: more than {facts['allowed']}"


def _does_not_yield(facts: Facts) -> str:
    if "priority" in facts:
        return f"its priority {facts['priority']} is not below {facts['needed']}"
    return "it cannot be interrupted"


def _not_interrupted(why: str) -> Callable[[Facts], str]:
    return lambda facts: f"{facts['action']} is not interrupted: {why}"


# Facts of the reasons of diagnostics include `action` and `by`, where the event has them.
REASONS: Mapping[str, Callable[[Facts], str]] = {
    # An input that cannot be read
    "malformed": lambda facts: validation_sentence(facts["fault"]),
    "malformed_definition": lambda facts: f"The definition of {facts['verb']}: {validation_sentence(facts['fault'])}",
    "malformed_matrix": lambda facts: f"The matrix of {facts['actor']}: {validation_sentence(facts['fault'])}",
    "malformed_weights": lambda facts: f"The weights of {facts['skill']}: {validation_sentence(facts['fault'])}",
    "malformed_wait": lambda facts: f"wait: {validation_sentence(facts['fault'])}",
    "not_canonical": _not_canonical,
    "unknown_field": lambda facts: unknown_name(facts["field"], facts["known"], f"a field of {facts['inside']}"),
    "unknown_fields": lambda facts: f"Unknown fields: {', '.join(facts['fields'])}",
    # Definitions, skills and modifiers
    "unknown_verb": lambda facts: f"There is no definition of {facts['verb']}",
    "duration_of_verb": lambda facts: (
        f"base_duration_min of {facts['verb']} is {facts['minutes']}; allowed is 1 or more"
    ),
    "amount_of_verb": lambda facts: (
        f"The definition of {facts['verb']}: an amount of a resource is "
        f"not a number from 0 with at most {facts['digits']} digits"
    ),
    "modifier_out_of_range": lambda facts: (
        f"The modifier {facts['name']} is {_number(facts['value'])}; allowed is above 0 up to 10"
    ),
    "modifier_not_a_number": lambda facts: f"The modifier {facts['name']} is not a number; allowed is above 0 up to 10",
    "takes_too_long": lambda facts: (
        f"{facts['verb']} would take {facts['minutes']} minutes; allowed is {facts['allowed']}"
    ),
    "skills_of_actor": lambda facts: f"The skills of {facts['actor']} must be an object",
    "skill_level": lambda facts: (
        f"{facts['skill']} of {facts['actor']} is {shown_fact(facts['found'])}; allowed is 0, 1, 2 or 3"
    ),
    "matrix_out_of_range": lambda facts: (
        f"{facts['dimension']} of {facts['actor']} is {shown_fact(facts['found'])}; allowed is -1 to 1"
    ),
    "weights_not_finite": lambda facts: f"The weights of {facts['skill']}: every number must be finite",
    # Times
    "unreadable_time": _unreadable_time,
    "time_too_far_away": lambda facts: f"{facts['value']} is too far away; the last minute is {facts['latest']}",
    "minute_out_of_range": lambda facts: f"t is {facts['t']}; allowed is {-facts['latest']} to {facts['latest']}",
    "minute_outside_of_run": lambda facts: (
        f"minute {facts['minute']} is outside of the run; allowed is 0 to {facts['latest']}"
    ),
    "wait_too_far_away": lambda facts: f"minute {facts['minute']} is too far away; the last is {facts['latest']}",
    "no_single_time": lambda _: "exactly one of `at` and `t` is required",
    # Admission
    "id_in_use": lambda facts: f"The id {facts['id']} is already in use",
    "cancelled_before_admission": lambda facts: f"{facts['id']} was cancelled before it was admitted",
    "unknown_locks": lambda facts: f"{', '.join(facts['locks'])}: not in `strict_locks`",
    "resources_short": _short,
    "too_many": _too_many,
    "locks_taken": lambda facts: (
        f"{facts['id']} does not wait, and these locks are not free: {', '.join(facts['locks'])}"
    ),
    # Waits of processes
    "wait_without_process": lambda _: "`process` is missing; only processes can wait",
    "wait_list": lambda facts: (
        f"wait is {shown_fact(facts['found'])}; it must be a list of 1 to {facts['most']} things"
    ),
    "wait_for_unknown": lambda facts: (
        f"a process can wait for `ended`, `minute` or `known`, not for {shown_fact(facts['found'])}"
    ),
    "wait_repeated": lambda facts: f"{facts['by']} stops waiting. {_too_many(facts)}",
    # Interrupts and commands
    "force_without_cancel": lambda _: "`force` is allowed only with `cancel`",
    "no_single_command": lambda _: "exactly one of `cancel` and `resume` is required",
    "not_first_in_queues": lambda facts: f"{facts['action']} is not first in all its queues",
    "waits_for_resources": lambda facts: f"{facts['action']} waits for {', '.join(facts['resources'])}",
    "holder_does_not_yield": lambda facts: (
        f"{facts['action']} waits: {facts['by']} does not yield, {_does_not_yield(facts)}"
    ),
    "does_not_yield": lambda facts: f"{facts['action']} does not yield to {facts['by']}: {_does_not_yield(facts)}",
    "priority_too_low": lambda facts: f"{facts['action']} is not interrupted: {_does_not_yield(facts)}",
    "not_interruptible": _not_interrupted("it cannot be interrupted"),
    "not_running": _not_interrupted("it is not running"),
    "nothing_to_interrupt": _not_interrupted("it is unknown or has ended"),
    "cause_is_over": lambda facts: (
        f"{facts['action']} is not interrupted: {facts['cause']} has ended or was interrupted itself"
    ),
    "nothing_to_cancel": lambda facts: f"{facts['action']} is unknown or has ended",
    "needs_force": lambda facts: f"{facts['action']} cannot be interrupted; cancel it with force",
    "not_suspended": lambda facts: f"{facts['action']} is not suspended",
}
