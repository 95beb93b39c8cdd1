"""The events of a run over HTTP: as a stream that can be resumed, or asked for now and then.

A stream is bound to one equivalent: it has every `run_status` and the events of that equivalent, in the order of their
numbers. It begins with what was missed, if that is asked for, goes on with where the run stands, and ends with the run.
"""

import asyncio
from collections.abc import Callable

import msgspec
from fastapi import APIRouter
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pendula.credit.served.artifacts import last_events
from pendula.credit.served.ring import Cursor, Entry
from pendula.server.errors import json_response
from pendula.server.hosting.streams import Framing, Reader
from pendula.server.routes.dependencies import Supervised, slot_of
from pendula.server.routes.openapi import READ_ERRORS, Responses, refusals
from pendula.server.schedulers.credit.errors import PREFIX, TooManyRunStreams
from pendula.server.schedulers.credit.routes.calling import Caller, Looking, known_equivalent, whole
from pendula.server.schedulers.credit.routes.networks import active_run
from pendula.server.schedulers.credit.running.counters import RunCounters
from pendula.server.schedulers.credit.running.served_run import ServedRun
from pendula.server.schedulers.credit.service import SimulatorService, log

RUN = "/runs/{run_id}"
MOST_LAST = 1000
KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = (("cache-control", "no-cache"), ("connection", "keep-alive"))

router = APIRouter(prefix=PREFIX, tags=["credit"])

_STREAM: Responses = {
    200: {"description": "Server-sent events `simulator.event`", "content": {"text/event-stream": {}}},
    410: {"description": "What came after the event cannot be told any more"},
}
_ARRAY: Responses = {
    200: {
        "description": "Events",
        "content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}},
    },
    410: {"description": "What came after the event cannot be told any more"},
}


class _Event(Struct):
    event_id: str


_read_id = msgspec.json.Decoder(_Event).decode


class RunSource:
    """A run as a source of streams: counted while it is followed, logged when that begins and ends."""

    def __init__(self, service: SimulatorService, run: ServedRun, equivalent: str) -> None:
        self._service = service
        self._run = run
        self._equivalent = equivalent

    def listen(self, wake: asyncio.Event) -> Callable[[], None]:
        """Raises `TooManyRunStreams`."""
        settings, run = self._service.settings, self._run
        for most, open_now in (
            (settings.sse_max_connections, self._service.streams),
            (settings.sse_max_connections_per_run, run.followers),
        ):
            if 0 < most <= open_now:
                raise TooManyRunStreams(f"{open_now} streams are open, which is the limit", allowed=most)
        deaf = run.listen(wake)
        self._service.streams += 1
        log.info("sim.sse.client_connected", run_id=run.record.run_id)

        def leave() -> None:
            deaf()
            self._service.streams -= 1
            self._service.counters.disconnects.labels("ended" if not run.record.active else "left").inc()
            log.info("sim.sse.client_disconnected", run_id=run.record.run_id)

        return leave

    async def subscribe(self, after: str | None) -> Cursor:
        return self._run.follow(self._equivalent, after)


def framing(run: ServedRun, counters: RunCounters) -> Framing[Entry]:
    return Framing(lambda items: run.frames.write(items, counters), keep_alive=KEEP_ALIVE, headers=HEADERS)


@router.get(
    f"{RUN}/events",
    response_class=StreamingResponse,
    responses=_STREAM | refusals(READ_ERRORS),
    operation_id="credit_events",
)
async def events(run_id: str, request: Request, supervisor: Supervised, caller: Looking) -> Response:
    """Events as they become durable, after the event `after` or `Last-Event-ID` where one is given."""
    return await _stream(await caller.run(run_id), request, supervisor, caller)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses=_STREAM | refusals(READ_ERRORS),
    operation_id="credit_own_events",
)
async def own_events(request: Request, supervisor: Supervised, caller: Looking) -> Response:
    """The events of the caller's active run."""
    return await _stream(await active_run(caller), request, supervisor, caller)


@router.get("/events/poll", responses=_ARRAY | refusals(READ_ERRORS), operation_id="credit_poll")
async def own_poll(request: Request, caller: Looking) -> Response:
    """Events of the caller's active run after the event `after`, as an array; without it, all that are kept."""
    return _poll(await active_run(caller), request)


@router.get(f"{RUN}/events/poll", responses=_ARRAY | refusals(READ_ERRORS), operation_id="credit_poll_run")
async def poll(run_id: str, request: Request, caller: Looking) -> Response:
    """The same of any run of the caller."""
    return _poll(await caller.run(run_id), request)


@router.get(f"{RUN}/events/last", responses=_ARRAY | refusals(READ_ERRORS), operation_id="credit_last_events")
async def last(run_id: str, request: Request, caller: Looking) -> Response:
    """The newest `limit` events of a run, oldest first. Those that streams keep no longer come from its files."""
    run = await caller.run(run_id)
    code = known_equivalent(request.query_params.get("equivalent"), run.record.equivalents)
    most = whole(request, "limit", 150, 1, MOST_LAST)
    kept = run.ring.after(code, None)[-most:]
    if len(kept) < most:
        files = caller.service.context.artifacts(run_id)
        known = {_read_id(event).event_id for event in kept}
        older = await caller.service.looking.look(lambda: last_events(files, code, most - len(kept), known))
        kept = older + kept
    return json_response(b"[" + b",".join(kept) + b"]")


async def _stream(run: ServedRun, request: Request, supervisor: Supervised, caller: Caller) -> Response:
    code = known_equivalent(request.query_params.get("equivalent"), run.record.equivalents)
    run = caller.service.keep(run)
    reader = Reader(
        RunSource(caller.service, run, code),
        supervisor.streams,
        caller.principal,
        lambda who: supervisor.streams.check_once(who, supervisor.sessions.good),
        framing(run, caller.service.counters),
    )
    # A browser that reconnects repeats the address it began with; the header says how far it came since.
    response = await reader.open(request.headers.get("last-event-id") or _after(request))
    slot_of(request).release()
    return response


def _poll(run: ServedRun, request: Request) -> Response:
    code = known_equivalent(request.query_params.get("equivalent"), run.record.equivalents)
    return json_response(b"[" + b",".join(run.ring.after(code, _after(request))) + b"]")


def _after(request: Request) -> str | None:
    """The event after which is asked; an empty one is none, as browsers have it."""
    return request.query_params.get("after") or None
