"""The routes of every engine: state now and in the past, journal, commands, reasons, events.

Blocking work runs elsewhere: commands and questions on the engine's thread, reads of the past in their own threads.
"""

from collections.abc import Callable
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Header, Path, Query
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pendula.kernel import canonical
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Engine, Outcome, Reason
from pendula.kernel.limits import MIB
from pendula.kernel.sentences import refusal_sentence, shown_bytes
from pendula.kernel.wording import suggestion
from pendula.server import views
from pendula.server.data_directory import NAME
from pendula.server.errors import InvalidRequest, error_body, json_response
from pendula.server.hosting.choices import ChoicesView
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.hosting.scheduler_spec import SchedulerSpec
from pendula.server.hosting.streams import Reader, engine_framing, type_of
from pendula.server.routes.bodies import read_body
from pendula.server.routes.dependencies import Operator, RequestId, Supervised, Viewer, slot_of
from pendula.server.routes.openapi import (
    CHANGE_ERRORS,
    READ_ERRORS,
    WRITE_ERRORS,
    Responses,
    answers,
    command_name,
    refusals,
    takes,
)

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
        if at is None:
            return json_response(await host.look(_state_now))
        return json_response(await supervisor.replayed(lambda: _state_then(host, at)))

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
        n, outcome = await host.submit(body, caller.name, request_id)
        return command_response(scheduler.kind, n, outcome, scheduler.became(body, outcome))


def _asking(router: APIRouter, scheduler: SchedulerSpec) -> None:
    @router.post(
        "/why",
        responses=answers(Reason, WRITE_ERRORS),
        openapi_extra=takes("Question"),
        operation_id=f"{scheduler.name}_why",
    )
    async def why(
        engine: EngineName, request: Request, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None
    ) -> Response:
        """Why something waits, or was refused, picked or stopped; now, or as of record `at`."""
        host = supervisor.host(scheduler.name, engine)
        asked = await read_body(request, views.Question)
        if at is None:
            return json_response(canonical.encode(await host.why(asked.question)))
        return json_response(await supervisor.replayed(lambda: _why_then(host, at, asked.question)))

    if scheduler.choices is None:
        return

    @router.get("/choices", responses=answers(ChoicesView), operation_id=f"{scheduler.name}_choices")
    async def choices(
        engine: EngineName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None
    ) -> Response:
        """Questions and commands with working examples, for the engine now or as of record `at`."""
        make = scheduler.choices
        assert make is not None
        if at is not None:
            host = supervisor.host(scheduler.name, engine)
            return json_response(await supervisor.replayed(lambda: _choices_then(host, at, make)))
        return json_response(
            views.encode_view(await supervisor.host(scheduler.name, engine).ask(lambda driver: make(driver.engine)))
        )


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


def command_response(kind: type[Engine[Any, Any]], n: int, outcome: Outcome[Any], became: views.Became) -> Response:
    """The response to a command; a refused one is 409 with its reason."""
    if outcome.refusal is not None:
        refusal = outcome.refusal
        return json_response(error_body(refusal.code, refusal_sentence(kind, refusal), refusal.facts), 409)
    events = [Raw(shown_bytes(event, canonical.encode(event))) for event in outcome.events]
    answer = Raw(canonical.encode(outcome.answer))
    result = views.CommandResult(n, events, answer, became.effect, became.complaints)
    return json_response(views.encode_view(result))


def _state_now(driver: Driver[Any, Any]) -> bytes:
    # Earlier commands may not be durable yet; after a flush the state is that of the last record.
    return _state(driver.engine, driver.flush())


def _state_then(host: EngineHost, at: int) -> bytes:
    with host.past.at(at) as engine:
        return _state(engine, at)


def _why_then(host: EngineHost, at: int, question: Json) -> bytes:
    with host.past.at(at) as engine:
        return canonical.encode(engine.why(question))


def _choices_then(host: EngineHost, at: int, make: Callable[[Any], ChoicesView]) -> bytes:
    with host.past.at(at) as engine:
        return views.encode_view(make(engine))


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
