"""Sentences of codes and facts, rendered where they are shown; no journal, state or digest contains one."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pendula.kernel.canonical import Json

# Names of allowed values, as `allowed` in the facts of a refusal; other names stand for themselves.
ALLOWED = {
    "array": "a list",
    "artwork_id": "an artwork id from 0 to 2^64 - 1",
    "bool": "true or false",
    "channel_id": "an id of 1 to 256 characters",
    "day_part": "a DayPart with name, start, end and weights",
    "day_parts": "a list of at most 32 parts",
    "days": "days out of mon, tue, wed, thu, fri, sat, sun",
    "decimal": "a number",
    "end_of_day_part": "a time of day from 00:00 to 24:00",
    "iana_zone": "an IANA zone such as Europe/Berlin, or UTC",
    "int": "an integer",
    "name_of_64": "a name of 1 to 64 characters",
    "number_of_30_digits": "a finite number of at most 30 digits",
    "object": "an object",
    "offsets": "1 to 64 pairs of a moment and seconds, in order",
    "offsets_below_a_day": "offsets of less than a day",
    "other_form": "a value of another form",
    "p_max": "a number from p_min to 1",
    "p_min": "a number above 0, at most p_max",
    "settings": "an object of settings",
    "share": "a number from 0 to 1",
    "start_of_day_part": "a time of day from 00:00 to 23:59",
    "str": "a text",
    "unique_name": "a name that no other part has",
    "unix_ms": "milliseconds since 1970",
}
POWERS = {(1 << 63) - 1: "2^63 - 1", (1 << 64) - 1: "2^64 - 1", -(1 << 63): "-2^63"}


def allowed_values(allowed: Any) -> str:
    """`[least, most]`, or the names of what is allowed, in words."""
    if isinstance(allowed[0], int):
        least, most = (POWERS.get(bound, bound) for bound in allowed)
        return f"an integer from {least} to {most}"
    *some, last = (ALLOWED.get(name, name) for name in allowed)
    return f"{', '.join(some)} or {last}" if some else str(last)


def _nearest(name: str, names: Sequence[str], otherwise: str) -> str:
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(names) or 'none'}"


def _invalid_parameter(facts: Mapping[str, Any]) -> str:
    parameter = facts["parameter"]
    match facts.get("fault"):
        case "unknown":
            near = get_close_matches(parameter.rsplit(".", 1)[-1], facts["allowed"], 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(facts['allowed'])}"
            return f"{parameter} is not known; {hint}"
        case "missing":
            place, _, member = parameter.rpartition(".")
            return f"{place} lacks {member}"
        case _:
            return f"{parameter} is {facts['value']}; allowed is {allowed_values(facts['allowed'])}"


def _unknown_channel(facts: Mapping[str, Any]) -> str:
    channel, followed = facts["channel"], facts["followed"]
    if "field" in facts:
        hint = _nearest(channel, followed, "followed are")
        return f"{facts['field']} names {channel!r}, and no channel of that id is followed; {hint}"
    return f"Channel {channel!r} is not followed; followed are {', '.join(followed) or 'none'}"


def _invalid_record(facts: Mapping[str, Any]) -> str:
    field, allowed = facts["field"], facts.get("allowed")
    match allowed:
        case [least, most]:
            return f"{field} is {facts['value']}; allowed are integers from {least} to {most}"
        case int():
            value = facts["value"]
            return f"{field} is {f'{value} bytes' if isinstance(value, int) else value}; allowed are {allowed} bytes"
        case _:
            return (
                "A record to show needs an id from 0 to 2^64 - 1, and 16 and 32 bytes in base64 as storage_key and "
                "payload"
            )


def _not_shown(facts: Mapping[str, Any]) -> str:
    match facts.get("fault"):
        case "blank":
            return "The current item is from before the last change; only an item of the present epoch can be banned"
        case "not_held":
            return f"Neither history nor lookahead holds item {facts['ordinal']} of this epoch"
        case "other_epoch":
            return f"The item is of epoch {facts['epoch_id']}, and it is epoch {facts['present']}"
        case "not_waiting":
            return f"New artwork {facts['id']} is neither held nor waiting in this scheduler"
        case "not_an_item":
            return f"Only what `next` gave can be banned, not {facts['value']}; `ban_artwork` takes an id"
        case "not_followed":
            followed = ", ".join(facts["followed"]) or "none"
            return (
                f"The item is not of this scheduler: channel {facts['channel']!r} is not followed, followed are "
                f"{followed}; ban what its own `next` gave"
            )
        case _:
            return (
                f"The item is not of this scheduler: channel {facts['channel']!r} has another record at place "
                f"{facts['at']}; ban what its own `next` gave"
            )


def _input_refused(facts: Mapping[str, Any]) -> str:
    if "to" in facts:
        return f"It is {facts['now']}; time does not go back to {facts['to']}"
    if "due" in facts:
        return f"Something is due at {facts['due']}, before {facts['at']}; advance first"
    return f"{facts['n']} items are too many at once; allowed are {facts['allowed']}"


def _too_many_controls(facts: Mapping[str, Any]) -> str:
    verb = {"pins": "pinned", "bans": "banned"}[facts["limit"]]
    return f"{facts['allowed']} artworks are {verb} already; no more are accepted"


REFUSALS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "artwork_banned": lambda facts: f"Artwork {facts['id']} is banned; lift the ban to show it",
    "channel_taken": lambda facts: f"Channel {facts['channel']!r} is followed already",
    "input_refused": _input_refused,
    "invalid_count": lambda facts: f"A number of items is an integer from 0, not {facts['n']}",
    "invalid_parameter": _invalid_parameter,
    "invalid_record": _invalid_record,
    "invalid_weight": lambda facts: (
        f"The weight of channel {facts['channel']!r} is {facts['value']}; allowed are finite numbers of 30 digits"
    ),
    "not_shown": _not_shown,
    "too_many_channels": lambda facts: (
        f"{facts['channel']!r} would be channel {facts['value']}; at most {facts['allowed']} can be followed"
    ),
    "too_many_controls": _too_many_controls,
    "unknown_channel": _unknown_channel,
}


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence of a refusal."""
    return REFUSALS[code](facts)


def _unreadable_channel(facts: Mapping[str, Any]) -> str:
    sentence = "Its records cannot be read; it stays out until it is refreshed."
    return f"{sentence} Its shelf: {facts['shelf']}." if "shelf" in facts else sentence


DIAGNOSTICS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "AllManualWeightsZero": lambda _: "All manual weights are 0, so every channel gets the same share.",
    "BadRecord": lambda _: "A record is damaged and is skipped.",
    "UnreadableChannel": _unreadable_channel,
}


def diagnostic_sentence(code: str, facts: Mapping[str, Any]) -> str:
    """The sentence of a diagnostic of a programme; those of cache files and sources bring their own."""
    return DIAGNOSTICS[code](facts)


RESETS: dict[str, Callable[[str | None], str]] = {
    "asked_for": str,
    "channel_read_again": lambda channel: f"channel {channel!r} is read again",
    "day_part_began": lambda part: f"the day part {part!r} began",
    "day_part_ended": lambda _: "no part of the day holds",
    "snapshot_changed": lambda _: "the snapshot changed",
}


def reset_sentence(code: str, subject: str | None) -> str:
    """Why an epoch began; of a reset that was asked for, the reason that was given."""
    return RESETS[code](subject)
