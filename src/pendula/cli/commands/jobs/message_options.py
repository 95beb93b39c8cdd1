"""Options of the command line, made from the struct of a request: names, kinds, help and what holds without them."""

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from msgspec import Meta
from msgspec.structs import FieldInfo, fields

from pendula.cli.commands.jobs.target import Options, members
from pendula.jobs.messages import Delay, Fraction, Instant, JsonText
from pendula.jobs.request_reading import Request
from pendula.kernel.errors import WrongUsage

TIME = "A time with offset: 2026-02-21T00:00:00Z."
# Options whose name is not that of the member.
FLAGS = {"worker_id": "--worker", "idempotency_key": "--key"}
# Placeholders that are not the last word of the member.
PLACEHOLDERS = {"worker_id": "NAME", "queue": "NAME", "queues": "NAME", "outcome": "WORD", "unique": "WORD"}
PLACEHOLDERS |= {"error": "TEXT", "progress_note": "TEXT", "reason": "TEXT", "pairs": "TYPE:ACTION"}


def options_of(request: type[Request], *, without: Collection[str] = ()) -> Options:
    """The options for the members of a request, none of them required; a parameter gets those that were given."""
    taken = [entry for entry in fields(request) if entry.encode_name not in without]
    reads = {entry.encode_name: _reader(entry) for entry in taken}

    def make(**given: Any) -> dict[str, Any]:
        present = members(**{name: value for name, value in given.items() if value not in (None, [])})
        return {name: reads[name](value) for name, value in present.items()}

    return Options({entry.encode_name: (_option(entry), None) for entry in taken}, make)


def flag_of(name: str, *, several: bool = False) -> str:
    return FLAGS.get(name, "--" + (name.removesuffix("s") if several else name).replace("_", "-"))


def _plain(annotation: Any) -> tuple[Any, dict[str, Any]]:
    """The type without null and annotations, and what the annotations say."""
    facts: dict[str, Any] = {}
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *marks = get_args(annotation)
            for mark in marks:
                if isinstance(mark, Meta):
                    facts = {"help": mark.description, **(mark.extra or {}), **_given(facts)}
        elif get_origin(annotation) is Union or isinstance(annotation, _UNION):
            annotation = get_args(annotation)[0]
        else:
            return annotation, facts


_UNION = type(int | None)


def _given(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _option(entry: FieldInfo) -> Any:
    form, facts = _plain(entry.type)
    name, several = entry.encode_name, get_origin(form) is tuple
    kind: Any = list[str] if several else bool if form is bool else int if form is int else str
    if form is Instant:
        facts["help"] = f"{facts['help']}. {TIME.removesuffix('.')}"
    text = f"{facts['help']}; may be repeated" if several else str(facts["help"])
    option = typer.Option(
        flag_of(name, several=several),
        metavar=None if form is bool else _placeholder(name, form),
        help=f"{text}.",
        show_default=facts.get("absent", False),
    )
    return Annotated[kind | None, option]


def _placeholder(name: str, form: Any) -> str:
    by_kind = {Instant: "TIME", JsonText: "JSON", Delay: "SECONDS", Fraction: "FRACTION"}
    if form in by_kind:
        return by_kind[form]
    if form is int:
        return "SECONDS" if name.endswith("_sec") else "N"
    return PLACEHOLDERS.get(name, name.removesuffix("s").rpartition("_")[2].upper())


def _reader(entry: FieldInfo) -> Callable[[Any], Any]:
    """What makes the value of a body from that of the option."""
    form, _ = _plain(entry.type)
    if form is JsonText:
        return partial(json_given, flag_of(entry.encode_name))
    if form in (Delay, Fraction):
        return partial(_number, flag_of(entry.encode_name))
    if entry.encode_name == "pairs":
        return lambda pairs: [pair.split(":", 1) for pair in pairs]
    return lambda value: value


def _number(option: str, text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise WrongUsage(f"{option}: {text!r} is not a number", value=text)
    return number


def json_given(option: str, text: str) -> Any:
    from pendula.documents import DocumentRefused, read_bytes

    try:
        return read_bytes(members(json=text)["json"].encode()).value
    except DocumentRefused as refused:
        raise WrongUsage(f"{option} is not JSON: {refused.message}", value=text) from None
