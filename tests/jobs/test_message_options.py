"""The options of the commands come from the structs of the requests."""

from decimal import Decimal
from typing import Annotated, Any, get_args

import pytest
from msgspec import Meta

from pendula.cli.commands.jobs.message_options import options_of
from pendula.jobs import messages
from pendula.jobs.messages import Fraction, Instant, about
from pendula.jobs.request_reading import Request
from pendula.kernel.errors import WrongUsage


class Paint(Request, frozen=True):
    """A request that no command has."""

    object_type: Annotated[str, Meta(max_length=9), about("Only these")]
    colours: Annotated[tuple[str, ...] | None, about("Which colours", "all")] = None
    share: Annotated[Fraction | None, about("How much")] = None
    run_at: Annotated[Instant | None, about("When", "now")] = None
    lease_sec: Annotated[int | None, about("How long")] = None
    dry: Annotated[bool, about("Wait until it is dry")] = False


# Typer keeps the name of an option in `default` until it reads the parameter.
def described(request: type[Request]) -> dict[str, tuple[Any, ...]]:
    named = {name: get_args(annotation) for name, (annotation, _) in options_of(request).named.items()}
    return {
        name: (kind, option.default, option.metavar, option.help, option.show_default)
        for name, (kind, option) in named.items()
    }


def test_each_member_is_an_option_of_its_kind() -> None:
    time = "When. A time with offset: 2026-02-21T00:00:00Z."

    assert described(Paint) == {
        "object_type": (str | None, "--object-type", "TYPE", "Only these.", False),
        "colours": (list[str] | None, "--colour", "COLOUR", "Which colours; may be repeated.", "all"),
        "share": (str | None, "--share", "FRACTION", "How much.", False),
        "run_at": (str | None, "--run-at", "TIME", time, "now"),
        "lease_sec": (int | None, "--lease-sec", "SECONDS", "How long.", False),
        "dry": (bool | None, "--dry", None, "Wait until it is dry.", False),
    }


def test_given_options_are_members_and_the_others_are_left_out() -> None:
    given: dict[str, Any] = {
        "object_type": "a",
        "colours": [],
        "share": "0.5",
        "run_at": None,
        "lease_sec": 0,
        "dry": None,
    }

    assert options_of(Paint).make(**given) == {"object_type": "a", "share": Decimal("0.5"), "lease_sec": 0}


@pytest.mark.parametrize("text", ["x", "NaN", "1e999999999999999999999"])
def test_text_that_is_no_number_is_refused_by_the_name_of_the_option(text: str) -> None:
    with pytest.raises(WrongUsage, match="--share"):
        options_of(Paint).make(share=text)


@pytest.mark.parametrize(
    "request_type", [messages.Enqueue, messages.Pull, messages.Ack, messages.Fail, messages.Renew, messages.Release]
)
def test_every_member_that_a_command_has_is_described(request_type: type[Request]) -> None:
    positional = {"object_type", "object_id", "action", "result"}

    helps = [
        get_args(annotation)[1].help for annotation, _ in options_of(request_type, without=positional).named.values()
    ]

    assert helps
    assert not [text for text in helps if text.startswith("None")]
