"""The demo of `actions`: the town of the package, repeated without end.

Every round of days submits the file again under new ids; a delivery replaces the resources that a round uses up. Each
command depends on the state of the world alone, so that a restart continues where it was.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from pendula.actions import accept, config_of, run_document
from pendula.actions import town as town_of_the_package
from pendula.actions.configuration import Setting
from pendula.actions.engine import World
from pendula.actions.messages import Advance, Command, Request, Submit
from pendula.demo import Demo
from pendula.kernel.engine import Engine

NAME = "town"
DELIVERY = "delivery"
CARTER = "carter"


class TimedForm(Struct, frozen=True):
    """A submission or request of the file; `minute` counts from the start of a round."""

    minute: int
    form: Mapping[str, Any]


class Rounds(Struct, frozen=True):
    """The submissions and requests of a round of days."""

    day: int
    days: int
    submissions: tuple[TimedForm, ...]
    interrupts: tuple[TimedForm, ...]
    commands: tuple[TimedForm, ...]
    delivers: bool

    def next_command(self, engine: Engine[Any, Any], _number: int) -> Command:
        """Submit the current day, send a request one minute early, or advance to the next event."""
        assert isinstance(engine, World)
        now = engine.now()
        today = list(self._of_day(now // self.day))
        if today and today[0]["id"] not in engine.current.used_ids:
            return Submit(tuple(today))
        tomorrow = (now // self.day + 1) * self.day
        request = self._next_request(now, tomorrow)
        if request == now + 1 and not _has_request(engine, request):
            return self._request(request)
        stop = tomorrow if request is None else max(request - 1, now + 1)
        due = engine.next_due()
        return Advance(stop if due is None else min(max(due, now + 1), stop))

    @property
    def _span(self) -> int:
        return self.day * self.days

    def _of_day(self, day: int) -> Iterator[dict[str, Any]]:
        number, start = day // self.days, day % self.days * self.day
        if number and not start and self.delivers:
            yield {"id": _id(DELIVERY, number), "actor": CARTER, "verb": DELIVERY, "t": day * self.day}
        for timed in self.submissions:
            if start <= timed.minute < start + self.day:
                yield {**timed.form, "id": _id(timed.form["id"], number), "t": timed.minute + number * self._span}

    def _next_request(self, now: int, before: int) -> int | None:
        """The first minute of a request after now and before `before`."""
        number = now // self._span
        minutes = (timed.minute + number * self._span for timed in (*self.interrupts, *self.commands))
        return min((minute for minute in minutes if now < minute < before), default=None)

    def _request(self, minute: int) -> Request:
        number = minute // self._span

        def of(forms: tuple[TimedForm, ...]) -> tuple[dict[str, Any], ...]:
            return tuple(
                {name: _id(value, number) if name in TARGETS else value for name, value in one.form.items()}
                | {"t": minute}
                for one in forms
                if one.minute + number * self._span == minute
            )

        return Request(of(self.interrupts), of(self.commands))


TARGETS = ("target", "cancel", "resume")


def rounds_of(document: Mapping[str, Any], setting: Setting, delivers: bool) -> Rounds:
    """The rounds of a file of actions; submissions and requests without a time are left out."""

    def timed_forms(section: str, field: str) -> tuple[TimedForm, ...]:
        forms = [_timed_form(one, field, setting) for one in document.get(section) or ()]
        return tuple(sorted((one for one in forms if one is not None), key=lambda one: one.minute))

    return Rounds(
        setting.horizon,
        document.get("epochs") or 1,
        timed_forms("actions_submitted", "submitted_at"),
        timed_forms("interrupts", "at"),
        timed_forms("commands", "at"),
        delivers,
    )


def _timed_form(form: Mapping[str, Any], field: str, setting: Setting) -> TimedForm | None:
    when = (form["t"], 0) if "t" in form else setting.minute_of(form.get(field))
    if not isinstance(when, tuple):
        return None
    return TimedForm(max(0, when[0]), {name: value for name, value in form.items() if name not in (field, "t")})


def _has_request(world: World, minute: int) -> bool:
    return any(entry[0] == minute and hasattr(entry[3], "target") for entry in world.current.queue)


def _id(text: str, number: int) -> str:
    return f"{text}.{number + 1}" if number else text


def demo_of(document: Mapping[str, Any]) -> Demo:
    """The demo of a file."""
    config: dict[str, Any] = config_of(document)
    used = _used_up(document)
    if used:
        needs = [{"name": name, "amount": amount, "produce": True} for name, amount in sorted(used.items())]
        delivery = {"base_duration_min": 1, "effort": "medium", "interruptible": False, "resources": needs}
        config["action_defs"] = {**config["action_defs"], DELIVERY: delivery}
    rounds = rounds_of(document, Setting.read(config), bool(used))
    return Demo(NAME, config, rounds.next_command)


def _used_up(document: Mapping[str, Any]) -> dict[str, Any]:
    """The resources that a round uses up, net of what it produces."""
    left = {name: row["available"] for name, row in run_document(document).epochs[-1].resources.items()}
    given = document.get("resources") or {}
    return {name: amount - left[name] for name, amount in given.items() if amount > left[name]}


DEMO = demo_of(accept(town_of_the_package()))
