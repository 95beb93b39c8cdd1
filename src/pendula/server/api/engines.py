"""The routes of every engine: state now and in the past, journal, commands, reasons, events, moments; its lifecycle.

Blocking work runs elsewhere: commands and questions on the engine's thread, reads of the past in their own threads. The
`Lifecycle` of a scheduler defines the names, and how a new engine is read from a request.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Header, Path, Query
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pendula.kernel import canonical
from pendula.kernel.driver import Driver, Ticket
from pendula.kernel.engine import Engine, Reason, refusal_sentence, shown_bytes
from pendula.kernel.errors import InputRefused
from pendula.kernel.limits import MIB
from pendula.kernel.time import format_utc
from pendula.kernel.wording import suggestion
from pendula.server import views
from pendula.server.api.openapi import (
    CHANGE_ERRORS,
    READ_ERRORS,
    WRITE_ERRORS,
    Responses,
    answers,
    command_name,
    refusals,
    takes,
)
from pendula.server.api.requests import Admin, Operator, RequestId, Supervised, Viewer, read_body, slot_of
from pendula.server.data_directory import NAME, NAMES_ALLOWED, Beginning
from pendula.server.errors import HttpRefused, InvalidRequest, error_body, json_response
from pendula.server.runtime.engine_host import EngineHost, Question
from pendula.server.runtime.past import Moments
from pendula.server.runtime.scheduler_spec import ChoicesView, CommandRoute, Lifecycle, New, SchedulerSpec
from pendula.server.runtime.streams import Reader, engine_framing, type_of
from pendula.server.runtime.supervisor import Supervisor
from pendula.server.security.identity import Principal
from pendula.server.views import EngineSummary, encode_view

MOST_RECORDS = 1000
MOST_BYTES = 8 * MIB
LARGEST_N = 2**63 - 1

EngineName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]
RecordNumber = Annotated[int, Query(ge=0, le=LARGEST_N)]
EventId = Annotated[str | None, Query(max_length=64)]
EventTypes = Annotated[str | None, Query(max_length=1000)]
LastEventId = Annotated[str | None, Header(max_length=64)]

_STREAM: Responses = {
    200: {"description": "Server-sent events: `event` with an id, `gap` without", "content": {"text/event-stream": {}}}
}

MOST_POINTS = 201
CLOSED = "closed"


def engine_router(scheduler: SchedulerSpec) -> APIRouter:
    """The generic routes of one scheduler, below its prefix and the name of an engine."""
    router = APIRouter(prefix=f"{scheduler.prefix}/{{engine}}", tags=[scheduler.name])
    _reading(router, scheduler)
    if scheduler.commanded:
        _commanding(router, scheduler)
    _asking(router, scheduler)
    _streaming(router, scheduler)
    return router


def _reading(router: APIRouter, scheduler: SchedulerSpec) -> None:
    @router.get("/state", responses=answers(views.StateView), operation_id=f"{scheduler.name}_state")
    async def state(engine: EngineName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None) -> Response:
        """The state of the engine now, or as of record `at`."""
        host = supervisor.host(scheduler.name, engine)
        return await look_at(supervisor, host, at, _state)

    @router.get("/journal", responses=answers(views.JournalView), operation_id=f"{scheduler.name}_journal")
    async def journal(
        engine: EngineName,
        supervisor: Supervised,
        _: Viewer,
        start: RecordNumber = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_RECORDS)] = 100,
    ) -> Response:
        """Records from `start` on, and the range of existing records."""
        driver = supervisor.host(scheduler.name, engine).driver
        return json_response(await supervisor.recorded(lambda: _records(driver, start, limit)))


def _commanding(router: APIRouter, scheduler: SchedulerSpec) -> None:
    @router.post(
        "/commands",
        responses=answers(views.CommandResult, CHANGE_ERRORS),
        openapi_extra=takes(command_name(scheduler.name)),
        operation_id=f"{scheduler.name}_command",
    )
    async def command(
        engine: EngineName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
    ) -> Response:
        """Apply a command. The response is sent once it is durable; a refused command is 409 with its reason."""
        host = supervisor.host(scheduler.name, engine)
        body = await read_body(request, scheduler.kind.commands)
        return await submitted(scheduler, host, body, caller, request_id)


def command_router(scheduler: SchedulerSpec) -> APIRouter:
    """The routes of single kinds of commands, below the prefix of a scheduler and the name of an engine."""
    assert scheduler.lifecycle is not None
    router, noun = APIRouter(prefix=scheduler.prefix, tags=[scheduler.name]), scheduler.lifecycle.noun
    for route in scheduler.command_routes:
        _command_route(router, scheduler, route, noun)
    return router


def _command_route(router: APIRouter, scheduler: SchedulerSpec, route: CommandRoute, noun: str) -> None:
    @router.post(
        f"/{{{noun}}}/{route.name}",
        summary=route.title or route.name.replace("-", " ").title(),
        description=route.sentence,
        responses=answers(views.CommandResult, CHANGE_ERRORS),
        openapi_extra=None if route.body is None else takes(route.body),
        operation_id=f"{scheduler.name}_{route.name.replace('-', '_')}",
    )
    async def command(
        request: Request,
        supervisor: Supervised,
        caller: Operator,
        request_id: RequestId,
        name: Annotated[str, Path(alias=noun, pattern=PATTERN)],
    ) -> Response:
        host = supervisor.host(scheduler.name, name)
        body: Any = None
        if route.body is not None:
            body = await read_body(request, route.body, yaml=route.yaml)
        return await submitted(scheduler, host, await route.command(host, body), caller, request_id)


async def submitted(
    scheduler: SchedulerSpec, host: EngineHost, command: object, caller: Principal, request_id: str
) -> Response:
    """The response to a command, once it is durable."""
    ticket = await host.submit(command, caller.name, request_id)
    return command_response(host.kind, ticket, scheduler.became(command, ticket.outcome))


async def read_at(supervisor: Supervisor, host: EngineHost, at: int | None, read: Callable[[Any], bytes]) -> Response:
    """What `read` says of the engine now, or as of record `at`."""
    if at is None:
        return json_response(await host.ask(lambda driver: read(driver.engine)))
    return await look_at(supervisor, host, at, lambda engine, _: read(engine))


async def look_at(supervisor: Supervisor, host: EngineHost, at: int | None, question: Question) -> Response:
    """What `question` says of the engine and its last record, or record `at`."""
    if at is None:
        return json_response(await host.look(question))

    def then() -> bytes:
        with host.past.at(at) as engine:
            return question(engine, at)

    return json_response(await supervisor.replayed(then))


def _asking(router: APIRouter, scheduler: SchedulerSpec) -> None:
    @router.post(
        "/why",
        responses=answers(Reason, WRITE_ERRORS),
        openapi_extra=takes(views.Question),
        operation_id=f"{scheduler.name}_why",
    )
    async def why(
        engine: EngineName, request: Request, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None
    ) -> Response:
        """Why something waits, or was refused, picked or stopped; now, or as of record `at`."""
        host = supervisor.host(scheduler.name, engine)
        question = (await read_body(request, views.Question)).question
        return await read_at(supervisor, host, at, lambda engine: canonical.encode(engine.why(question)))

    if scheduler.choices is None:
        return

    @router.get("/choices", responses=answers(ChoicesView), operation_id=f"{scheduler.name}_choices")
    async def choices(
        engine: EngineName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None
    ) -> Response:
        """Questions and commands with working examples, for the engine now or as of record `at`."""
        make = scheduler.choices
        assert make is not None
        host = supervisor.host(scheduler.name, engine)
        return await read_at(supervisor, host, at, lambda engine: encode_view(make(engine)))


def _streaming(router: APIRouter, scheduler: SchedulerSpec) -> None:
    @router.get(
        "/stream",
        response_class=StreamingResponse,
        responses=_STREAM | refusals(READ_ERRORS),
        operation_id=f"{scheduler.name}_stream",
    )
    async def stream(
        engine: EngineName,
        request: Request,
        supervisor: Supervised,
        caller: Viewer,
        after: EventId = None,
        types: EventTypes = None,
        last_event_id: LastEventId = None,
    ) -> Response:
        """Events as they become durable: new ones, or those after the event `after` or `Last-Event-ID`. `types`,
        separated by commas, selects event types; by default all are sent."""
        host = supervisor.host(scheduler.name, engine)
        reader = Reader(
            host,
            supervisor.streams,
            caller,
            lambda who: not host.closed and supervisor.sessions.good(who),
            engine_framing(host, _wanted(scheduler, types)),
        )
        # A reconnecting browser repeats its first address; the header has its last event.
        response = await reader.open(last_event_id or after)
        slot_of(request).release()
        return response


def _wanted(scheduler: SchedulerSpec, types: str | None) -> frozenset[str]:
    """The requested event types; raises `InvalidRequest` for an unknown one."""
    assert scheduler.engine is not None
    events = get_args(scheduler.engine.events) or (scheduler.engine.events,)
    known = sorted(type_of(one) for one in events)
    wanted = frozenset() if types is None else frozenset(types.split(","))
    for name in sorted(wanted.difference(known)):
        near = suggestion(name, known)
        raise InvalidRequest(f"There are no events of the type {name!r}{near}", types=known)
    return wanted


def command_response(kind: type[Engine[Any, Any]], ticket: Ticket[Any], became: views.Became) -> Response:
    """The response to a command; a refused one is 409 with its reason."""
    outcome = ticket.outcome
    if outcome.refusal is not None:
        refusal = outcome.refusal
        return json_response(error_body(refusal.code, refusal_sentence(kind, refusal), refusal.facts), 409)
    result = views.CommandResult(
        ticket.n, shown_events(ticket), Raw(ticket.encoded.answer), became.effect, became.complaints
    )
    return json_response(views.encode_view(result))


def shown_events(ticket: Ticket[Any]) -> list[Raw]:
    """The events of a command, with their sentences."""
    return [Raw(shown_bytes(*pair)) for pair in zip(ticket.outcome.events, ticket.encoded.events, strict=True)]


def _state(engine: Engine[Any, Any], n: int) -> bytes:
    view = views.StateView(n, engine.now(), Raw(engine.state()), engine.next_due(), list(engine.broken()))
    return views.encode_view(view)


def _records(driver: Driver[Any, Any], start: int, limit: int) -> bytes:
    journal = driver.journal
    found: list[views.RecordView] = []
    size = 0
    for record in journal.read(start):
        body = bytes(record.body)
        size += len(body)
        if found and size > MOST_BYTES:
            break
        found.append(views.RecordView(record.n, record.t, record.kind, Raw(body)))
        if len(found) == limit:
            break
    return views.encode_view(views.JournalView(found, journal.first_n, journal.durable_n, list(journal.snapshots())))


Points = Annotated[int, Query(ge=2, le=MOST_POINTS)]
Time = Annotated[int, Query(ge=0, le=LARGEST_N)]


def moments_router(scheduler: SchedulerSpec) -> APIRouter:
    """The routes of one scheduler, below its prefix and the name of an engine."""
    router = APIRouter(prefix=f"{scheduler.prefix}/{{engine}}", tags=[scheduler.name])

    @router.get("/moments", responses=answers(views.MomentsView), operation_id=f"{scheduler.name}_moments")
    async def moments(engine: EngineName, supervisor: Supervised, _: Viewer, points: Points = 5) -> Response:
        """The first and last moment of the journal, and others evenly between them."""
        index = supervisor.host(scheduler.name, engine).moments
        found = await supervisor.replayed(lambda: canonical.encode(views.MomentsView(index.spread(points))))
        return json_response(found)

    @router.get("/moment", responses=answers(views.MomentView), operation_id=f"{scheduler.name}_moment")
    async def moment(
        engine: EngineName,
        supervisor: Supervised,
        _: Viewer,
        n: Annotated[RecordNumber | None, Query(description="A record of the journal")] = None,
        t: Annotated[Time | None, Query(description="A time of the engine, in its unit")] = None,
        utc_ms: Annotated[Time | None, Query(description="A wall-clock time: milliseconds since 1970")] = None,
    ) -> Response:
        """The moment of a record, or the last one not after a time, or the first; and the next one."""
        index = supervisor.host(scheduler.name, engine).moments
        return json_response(await supervisor.replayed(lambda: canonical.encode(found_moment(index, n, t, utc_ms))))

    @router.get("/incident", responses=answers(views.IncidentView), operation_id=f"{scheduler.name}_incident")
    async def incident(
        engine: EngineName,
        supervisor: Supervised,
        _: Viewer,
        after: RecordNumber | None = None,
        before: RecordNumber | None = None,
    ) -> Response:
        """The first incident, the next after a record, or the last before one: a refused command, or worse."""
        index = supervisor.host(scheduler.name, engine).moments
        return json_response(await supervisor.replayed(lambda: canonical.encode(found_incident(index, after, before))))

    return router


def found_moment(index: Moments, n: int | None, t: int | None, utc_ms: int | None) -> views.MomentView:
    """By record, else by engine time, else by wall-clock time."""
    if n is not None:
        return index.at_record(n)
    return index.at_wall_time((utc_ms or 0) * 1000) if t is None else index.at_time(t)


def found_incident(index: Moments, after: int | None, before: int | None) -> views.IncidentView:
    """The last incident before a record, else the next after one, else the first."""
    if before is not None:
        return views.IncidentView(index.incident_before(before))
    return views.IncidentView(index.next_incident(-1 if after is None else after))


PATTERN = f"^{NAME.pattern}$"

Change = Callable[[Supervisor, SchedulerSpec, str], Awaitable[None]]


class InvalidName(HttpRefused):
    """An invalid engine name. Facts: `name`, `allowed`."""

    code = "invalid_name"
    status = 422


class ReservedName(HttpRefused):
    """The name is a path segment of the scheduler itself. Facts: `name`."""

    code = "reserved_name"
    status = 422


def check_name(name: str, noun: str, reserved: Collection[str] = ()) -> None:
    """Check a name from a body; raises `InvalidName` or `ReservedName`."""
    if not NAME.fullmatch(name):
        shown = name[:100]
        raise InvalidName(
            f"{shown!r} is not a name for a {noun}; a name has {NAMES_ALLOWED}", name=shown, allowed=NAMES_ALLOWED
        )
    if name in reserved:
        raise ReservedName(f"{name!r} cannot be the name of a {noun}: the scheduler uses that path itself", name=name)


def lifecycle_router(scheduler: SchedulerSpec, lifecycle: Lifecycle) -> APIRouter:
    """The lifecycle routes of a scheduler, below its prefix."""
    router = APIRouter(prefix=scheduler.prefix, tags=[scheduler.name])
    _listing(router, scheduler, lifecycle)
    _making(router, scheduler, lifecycle)
    _removing(router, scheduler, lifecycle)
    _closing(router, scheduler, lifecycle)
    return router


def _listing(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    @router.get(
        "",
        summary=f"List {lifecycle.plural.title()}",
        description=f"All {lifecycle.plural}, open and closed.",
        responses=answers(lifecycle.listing),
        operation_id=f"{scheduler.name}_{lifecycle.plural}",
    )
    async def list_engines(supervisor: Supervised, _: Viewer) -> Response:
        return _listed(supervisor, scheduler, lifecycle)


def _making(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    @router.post(
        "",
        status_code=201,
        description=lifecycle.sentences.make,
        responses=answers(lifecycle.made or lifecycle.summary, CHANGE_ERRORS, 201),
        openapi_extra=dict(lifecycle.takes),
        operation_id=f"{scheduler.name}_create",
    )
    async def create(
        supervisor: Supervised, caller: Operator, request_id: RequestId, new: Annotated[New, Depends(lifecycle.begin)]
    ) -> Response:
        wall_time = format_utc(supervisor.clock.now())
        beginning = Beginning(new.config, new.commands, caller.name, request_id, wall_time, new.files)
        try:
            tickets = await supervisor.make(scheduler, new.name, beginning)
        except InputRefused as refused:
            # The message is enough; the details would repeat the whole configuration.
            refused.details.pop("config", None)
            raise
        if lifecycle.made is not None:
            return json_response(encode_view(lifecycle.made.of(new.name, tickets)), 201)
        summary = _summary(new.name, supervisor.host(scheduler.name, new.name), lifecycle)
        return json_response(encode_view(summary), 201)


def _removing(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    gone: Responses = {204: {"description": f"The {lifecycle.noun} is removed"}}

    @router.delete(
        f"/{{{lifecycle.noun}}}",
        status_code=204,
        response_class=Response,
        description=lifecycle.sentences.remove,
        responses=gone | refusals(WRITE_ERRORS),
        operation_id=f"{scheduler.name}_delete",
    )
    async def delete(
        supervisor: Supervised, _: Admin, name: Annotated[str, Path(alias=lifecycle.noun, pattern=PATTERN)]
    ) -> Response:
        await supervisor.remove(scheduler, name)
        return Response(status_code=204)


def _closing(router: APIRouter, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> None:
    def add(verb: str, summary: str, sentence: str, change: Change) -> None:
        @router.post(
            f"/{{{lifecycle.noun}}}/{verb}",
            summary=summary,
            description=sentence,
            responses=answers(lifecycle.listing, WRITE_ERRORS),
            operation_id=f"{scheduler.name}_{verb}",
        )
        async def changed(
            supervisor: Supervised, _: Operator, name: Annotated[str, Path(alias=lifecycle.noun, pattern=PATTERN)]
        ) -> Response:
            await change(supervisor, scheduler, name)
            return _listed(supervisor, scheduler, lifecycle)

    add("close", "Close", lifecycle.sentences.close, Supervisor.shut)
    add("open", "Open Again", lifecycle.sentences.open, Supervisor.reopen)


def _listed(supervisor: Supervisor, scheduler: SchedulerSpec, lifecycle: Lifecycle) -> Response:
    hosts = {host.name: host for host in supervisor.hosts() if host.scheduler == scheduler.name}
    found = [_summary(name, hosts.get(name), lifecycle) for name in supervisor.known(scheduler.name)]
    return json_response(encode_view(lifecycle.listing(found)))


def _summary(name: str, host: EngineHost | None, lifecycle: Lifecycle) -> EngineSummary:
    if host is None:
        return lifecycle.summary(name, CLOSED, None, None)
    view = host.view()
    return lifecycle.summary(name, host.state, view.now, view.broken)
