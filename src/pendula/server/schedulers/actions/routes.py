"""The routes of `actions`: create, close and remove worlds; one route for each kind of command.

Every engine has the routes of state, journal, commands, reasons and stream.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Self

from fastapi import APIRouter, Path, Query
from msgspec import Meta, Raw, Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.actions import messages
from pendula.actions.checks import LISTS, SECTIONS, accept
from pendula.actions.engine import World
from pendula.actions.runs.batch import config_of
from pendula.demo.actions import DEMO
from pendula.documents import DocumentLimits, Format, read_bytes
from pendula.kernel import canonical
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Ticket
from pendula.kernel.engine import Outcome
from pendula.server.api.engines import LARGEST_N, RecordNumber, look_at, read_at, shown_events
from pendula.server.api.openapi import CHANGE_ERRORS, READ_ERRORS, Responses, answers, refusals, takes
from pendula.server.api.requests import Supervised, Viewer, format_of, limits_of, read_body
from pendula.server.data_directory import NAME
from pendula.server.errors import HttpRefused, TooMuchAtOnce, json_response
from pendula.server.runtime.engine_host import EngineHost
from pendula.server.runtime.past import Facts, event_sentence
from pendula.server.runtime.scheduler_spec import CommandRoute, Lifecycle, New, SchedulerSpec, Sentences
from pendula.server.schedulers.actions import views
from pendula.server.views import Became, Complaint, Effect, EngineSummary, encode_view

BASE = "/api/v1/actions"
WORLD = BASE + "/{world}"
MOST_EVENTS = 1000
MOST_LINES = 100_000
MOST_DAYS = 31
MOST_MINUTES = MOST_DAYS * 24 * 60

WorldName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]
NewName = Annotated[str, Query(pattern=f"^{NAME.pattern}$", description="Name of the world")]
EventId = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")]
Minute = Annotated[int, Meta(ge=0, le=LARGEST_N)]


class NotAtTheEnd(HttpRefused):
    """A carry is taken at the end of an epoch. Facts: `now` and `ends`, minutes of the run."""

    code = "not_at_epoch_end"
    status = 409


class WorldSummary(EngineSummary, frozen=True):
    """One world; `state` is ready, starting, broken or closed, `t` the minute of its run."""


class WorldList(Struct, frozen=True):
    worlds: list[WorldSummary]


class NewWorld(Struct, frozen=True):
    """A created world, and the events of its first submissions and requests: rejections, diagnostics."""

    name: str
    events: list[Raw]

    @classmethod
    def of(cls, name: str, tickets: Sequence[Ticket[Any]]) -> Self:
        return cls(name, [event for ticket in tickets for event in shown_events(ticket)])


class Submissions(Struct, frozen=True, forbid_unknown_fields=True):
    """Instances, submitted as one command. Their time defaults to now."""

    actions: list[Any]


class Interrupts(Struct, frozen=True, forbid_unknown_fields=True):
    """Interrupt requests `{target, priority, at | t, source, hold_min}`. Their time defaults to now."""

    interrupts: list[Any]


class Targets(Struct, frozen=True, forbid_unknown_fields=True):
    """Actions to cancel or resume in minute `t` or at time `at`, default now. `force` also cancels running actions
    that are not interruptible."""

    actions: list[str]
    at: str | None = None
    t: Minute | None = None
    force: bool = False


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """How far to advance: by some minutes, or to a minute of the run."""

    by: Minute | None = None
    to: Minute | None = None


router = APIRouter(tags=["actions"])

_FILE_FORM = {
    "schema": {
        "type": "object",
        "required": ["action_defs"],
        "properties": {name: {} for name in SECTIONS},
        "additionalProperties": False,
    }
}
_FILE = {
    "requestBody": {"required": True, "content": dict.fromkeys(("application/json", "application/yaml"), _FILE_FORM)}
}
_LINES: Responses = {
    200: {"description": "One JSON object a line", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
}
_CARRY: Responses = {200: {"description": "The carry", "content": {"application/json": {"schema": {"type": "object"}}}}}


# Lifecycle


async def begin(request: Request, name: NewName) -> New:
    """A new world from a file of actions, JSON or YAML."""
    data = await request.body()
    form = format_of(request, yaml=True)
    document = await asyncio.to_thread(_accepted, data, form, limits_of(request))
    submissions, interrupts, commands = (tuple(document.get(section) or ()) for section in LISTS)
    first = [messages.Submit(submissions)] if submissions else []
    then = [messages.Request(interrupts, commands)] if interrupts or commands else []
    return New(name, config_of(document), [*first, *then])


LIFECYCLE = Lifecycle(
    noun="world",
    plural="worlds",
    begin=begin,
    takes=_FILE,
    summary=WorldSummary,
    listing=WorldList,
    made=NewWorld,
    sentences=Sentences(
        make="Create a world from a file of actions, the input of `pendula actions run`, as JSON or YAML. "
        "Time advances only by command.",
        close="Close a world: it takes no commands until it is opened again, also after a restart of the server.",
        open="Open a closed world.",
        remove="Remove a world with its journal.",
    ),
)


# Commands


async def _submit(host: EngineHost, body: Submissions) -> messages.Command:
    now = await _minute(host)
    return messages.Submit(tuple(_timed(one, now, "submitted_at") for one in body.actions))


async def _interrupt(host: EngineHost, body: Interrupts) -> messages.Command:
    now = await _minute(host)
    return messages.Request(interrupts=tuple(_timed(one, now, "at") for one in body.interrupts))


def _about(kind: str) -> Callable[[EngineHost, Targets], Awaitable[messages.Command]]:
    async def command(host: EngineHost, body: Targets) -> messages.Command:
        now = await _minute(host)
        when: dict[str, Json] = {"at": body.at} if body.at is not None else {}
        when |= {"t": body.t} if body.t is not None else {}
        when |= {"force": True} if body.force else {}
        return messages.Request(commands=tuple(_timed({kind: one} | when, now, "at") for one in body.actions))

    return command


async def _advance(host: EngineHost, step: Step) -> messages.Command:
    now, due = await host.ask(lambda driver: (driver.engine.now(), driver.engine.next_due()))
    if step.to is not None:
        return messages.Advance(step.to)
    return messages.Advance(now + step.by if step.by is not None else max(due or now, now + 1))


COMMANDS = (
    CommandRoute(
        "submit",
        "Submit instances. Each is validated alone; rejections are events of this answer or of a later one.",
        _submit,
        Submissions,
        yaml=True,
    ),
    CommandRoute(
        "interrupt",
        "Request interrupts. They take effect when time advances; a malformed one is a diagnostic.",
        _interrupt,
        Interrupts,
        yaml=True,
    ),
    CommandRoute(
        "cancel",
        "Cancel actions. Waiting and running ones are dropped; a running one that is not interruptible needs `force`.",
        _about("cancel"),
        Targets,
    ),
    CommandRoute("resume", "Resume suspended actions.", _about("resume"), Targets),
    CommandRoute(
        "advance",
        "Advance time and return the events. Without a step, advance to the next minute with an event.",
        _advance,
        Step,
    ),
)


def check_size(world: World, command: messages.Command) -> None:
    """Refuse more than a month of time in one command, before anything is computed: other users of the server would
    wait for it. The library has no such limit. Raises `TooMuchAtOnce`."""
    if not isinstance(command, messages.Advance):
        return
    minutes = command.to - world.now()
    if minutes > MOST_MINUTES:
        raise TooMuchAtOnce(
            f"Minute {command.to} is {minutes} minutes away; one command advances at most {MOST_MINUTES} minutes "
            f"({MOST_DAYS} days): advance in steps, the first to minute {world.now() + MOST_MINUTES}",
            asked=minutes,
            allowed=MOST_MINUTES,
            next_to=world.now() + MOST_MINUTES,
        )


def became(command: messages.Command, outcome: Outcome[messages.Event]) -> Became:
    """The effect of a command. Submissions and requests take effect when time advances to their minute."""
    if isinstance(command, messages.Advance):
        return Became(Effect.DONE)
    refused = [one for one in outcome.events if isinstance(one, messages.Rejection | messages.Diagnostic)]
    complaints = [Complaint(one.code, one.message) for one in refused]
    if isinstance(command, messages.Submit):
        taken = outcome.answer["taken"] if isinstance(outcome.answer, dict) else 0
    else:
        taken = len(command.interrupts) + len(command.commands) - len(refused)
    if taken:
        return Became(Effect.ACCEPTED, complaints)
    return Became(Effect.REFUSED if complaints else Effect.NONE, complaints)


# Queries


@router.post(
    f"{WORLD}/what-if",
    responses=answers(views.EstimateView, CHANGE_ERRORS),
    openapi_extra=takes(views.Supposition),
    operation_id="actions_what_if",
)
async def what_if(world: WorldName, request: Request, supervisor: Supervised, _: Viewer) -> Response:
    """Estimate when an instance would start and end, as far as is known now. Nothing is submitted."""
    host = supervisor.host(SCHEDULER.name, world)
    supposition = await read_body(request, views.Supposition)
    estimate = await supervisor.supposed(
        lambda: host.ask(views.saved_state), lambda state: views.estimate(state, supposition)
    )
    return json_response(encode_view(estimate))


@router.get(f"{WORLD}/now", responses=answers(views.WorldNow), operation_id="actions_now")
async def now(world: WorldName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None) -> Response:
    """Actions, locks and resources, and why actions wait; now or after record `at`."""
    host = supervisor.host(SCHEDULER.name, world)
    return await look_at(supervisor, host, at, _now)


@router.get(f"{WORLD}/events", responses=answers(views.EventsView), operation_id="actions_events")
async def read_events(
    world: WorldName,
    supervisor: Supervised,
    _: Viewer,
    after: EventId = None,
    upto: RecordNumber | None = None,
    type: Annotated[list[str] | None, Query(max_length=16)] = None,
    pc: bool = False,
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = 100,
) -> Response:
    """Events after an id, of records up to `upto`, of some types, or only those the player character learned of."""
    driver = supervisor.host(SCHEDULER.name, world).driver
    begin = views.event_id(after) if after else None
    return json_response(
        await supervisor.recorded(lambda: encode_view(views.events_of(driver, begin, upto, type or (), pc, limit)))
    )


@router.get(
    f"{WORLD}/world_log",
    response_class=Response,
    responses=_LINES | refusals(READ_ERRORS),
    operation_id="actions_world_log",
)
async def world_log(
    world: WorldName,
    supervisor: Supervised,
    _: Viewer,
    after: Annotated[int, Query(ge=-1, le=LARGEST_N)] = -1,
    limit: Annotated[int, Query(ge=1, le=MOST_LINES)] = 10_000,
) -> Response:
    """The world log, one event a line, after the event with the number `after`."""
    driver = supervisor.host(SCHEDULER.name, world).driver
    return _lines(await supervisor.recorded(lambda: views.world_log(driver, after, limit)))


@router.get(
    f"{WORLD}/pc_log",
    response_class=Response,
    responses=_LINES | refusals(READ_ERRORS),
    operation_id="actions_pc_log",
)
async def pc_log(world: WorldName, supervisor: Supervised, _: Viewer, epoch: RecordNumber | None = None) -> Response:
    """The log of the player character for an epoch, by default the current one: a header, then an event a line."""
    driver = supervisor.host(SCHEDULER.name, world).driver
    return _lines(await supervisor.recorded(lambda: views.pc_log(driver, epoch)))


@router.get(f"{WORLD}/carry", responses=_CARRY | refusals((*READ_ERRORS, 409)), operation_id="actions_carry")
async def carry(world: WorldName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None) -> Response:
    """The carry for the next run, at the end of an epoch: now, or after record `at`."""
    return await read_at(supervisor, supervisor.host(SCHEDULER.name, world), at, _carry)


def _accepted(data: bytes, form: Format, limits: DocumentLimits) -> dict[str, Any]:
    """The document of a new world; its submissions are optional."""
    document = read_bytes(data, form, limits=limits)
    if isinstance(document.value, dict):
        document.value = {"actions_submitted": [], **document.value}
    return accept(document)


def _timed(raw: Any, now: int, field: str) -> Any:
    if not isinstance(raw, Mapping) or "t" in raw or field in raw:
        return raw
    return {**raw, "t": now}


async def _minute(host: EngineHost) -> int:
    return await host.ask(lambda driver: driver.engine.now())


def _now(world: World, n: int) -> bytes:
    return encode_view(views.now_of(world.current, n))


def _carry(world: object) -> bytes:
    assert isinstance(world, World)
    now, ends = world.now(), world.current.clock.boundary
    if now != ends:
        raise NotAtTheEnd(f"It is minute {now}; the epoch ends at {ends}", now=now, ends=ends)
    return canonical.encode(world.carry())


def _lines(data: bytes) -> Response:
    return Response(data, media_type="application/x-ndjson")


def _interrupted(event: Facts) -> str:
    return f"{event['action_id']} was interrupted"


SCHEDULER = SchedulerSpec(
    name="actions",
    title="Actions",
    sentence="Actions of actors in a simulated world: what runs when, what waits for what, who learns of it.",
    engine=World,
    demo=DEMO,
    routers=(router,),
    command_routes=COMMANDS,
    lifecycle=LIFECYCLE,
    prefix=BASE,
    bound=check_size,
    became=became,
    incidents={"rejection": event_sentence, "diagnostic": event_sentence, "interrupt": _interrupted},
    choices=views.choices,
)
