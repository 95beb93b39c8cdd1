"""The events of a run over HTTP: as a resumable stream, or by polling.

A stream has every `run_status` and the events of one equivalent, in the order of their numbers. It starts with the
events after a given one, then sends the status of the run, and ends with the run.
"""

import asyncio
from collections.abc import Callable

import msgspec
from fastapi import APIRouter
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pendula.server.api.openapi import READ_ERRORS, Responses, refusals
from pendula.server.api.requests import Supervised, slot_of
from pendula.server.errors import json_response
from pendula.server.runtime.streams import Framing, Reader
from pendula.server.schedulers.credit.counters import RunCounters
from pendula.server.schedulers.credit.errors import PREFIX, TooManyRunStreams
from pendula.server.schedulers.credit.output import last_events
from pendula.server.schedulers.credit.routes.caller import Caller, ViewerCaller, read_integer, resolve_equivalent
from pendula.server.schedulers.credit.routes.networks import active_run
from pendula.server.schedulers.credit.run import ServedRun
from pendula.server.schedulers.credit.service import SimulatorService, log
from pendula.server.schedulers.credit.stream import Cursor, Entry

RUN = "/runs/{run_id}"
MOST_LAST = 1000
KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = (("cache-control", "no-cache"), ("connection", "keep-alive"))

router = APIRouter(prefix=PREFIX, tags=["credit"])

_STREAM: Responses = {
    200: {"description": "Server-sent events `simulator.event`", "content": {"text/event-stream": {}}},
    410: {"description": "The events after this one are no longer available"},
}
_ARRAY: Responses = {
    200: {
        "description": "Events",
        "content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}},
    },
    410: {"description": "The events after this one are no longer available"},
}


class _Event(Struct):
    event_id: str


_read_id = msgspec.json.Decoder(_Event).decode


class RunSource:
    """A run as the source of a stream; counts and logs its readers."""

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
                raise TooManyRunStreams(
                    f"{open_now} streams are open, the limit; close one and try again", allowed=most
                )
        unsubscribe = run.listen(wake)
        self._service.streams += 1
        log.info("sim.sse.client_connected", run_id=run.record.run_id)

        def leave() -> None:
            unsubscribe()
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
async def events(run_id: str, request: Request, supervisor: Supervised, caller: ViewerCaller) -> Response:
    """Stream durable events, after the event `after` or `Last-Event-ID` if given."""
    return await _stream(await caller.run(run_id), request, supervisor, caller)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses=_STREAM | refusals(READ_ERRORS),
    operation_id="credit_own_events",
)
async def own_events(request: Request, supervisor: Supervised, caller: ViewerCaller) -> Response:
    """Stream the events of the caller's active run."""
    return await _stream(await active_run(caller), request, supervisor, caller)


@router.get("/events/poll", responses=_ARRAY | refusals(READ_ERRORS), operation_id="credit_poll")
async def own_poll(request: Request, caller: ViewerCaller) -> Response:
    """Events of the caller's active run after the event `after`, as an array; by default all in the buffer."""
    return _poll(await active_run(caller), request)


@router.get(f"{RUN}/events/poll", responses=_ARRAY | refusals(READ_ERRORS), operation_id="credit_poll_run")
async def poll(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """Events of a run after the event `after`, as an array; by default all in the buffer."""
    return _poll(await caller.run(run_id), request)


@router.get(f"{RUN}/events/last", responses=_ARRAY | refusals(READ_ERRORS), operation_id="credit_last_events")
async def last(run_id: str, request: Request, caller: ViewerCaller) -> Response:
    """The newest `limit` events of a run, oldest first; those that left the buffer come from its files."""
    run = await caller.run(run_id)
    code = resolve_equivalent(request.query_params.get("equivalent"), run.record.equivalents)
    most = read_integer(request, "limit", 150, 1, MOST_LAST)
    newest = run.stream.after(code, None)[-most:]
    if len(newest) < most:
        files = caller.service.context.artifacts(run_id)
        known = {_read_id(event).event_id for event in newest}
        older = await caller.service.large_reads.look(lambda: last_events(files, code, most - len(newest), known))
        newest = older + newest
    return json_response(b"[" + b",".join(newest) + b"]")


async def _stream(run: ServedRun, request: Request, supervisor: Supervised, caller: Caller) -> Response:
    code = resolve_equivalent(request.query_params.get("equivalent"), run.record.equivalents)
    run = caller.service.register(run)
    reader = Reader(
        RunSource(caller.service, run, code),
        supervisor.streams,
        caller.principal,
        lambda principal: supervisor.streams.check_once(principal, supervisor.sessions.good),
        framing(run, caller.service.counters),
    )
    # The header wins: a browser that reconnects repeats its first URL.
    response = await reader.open(request.headers.get("last-event-id") or _after(request))
    slot_of(request).release()
    return response


def _poll(run: ServedRun, request: Request) -> Response:
    code = resolve_equivalent(request.query_params.get("equivalent"), run.record.equivalents)
    return json_response(b"[" + b",".join(run.stream.after(code, _after(request))) + b"]")


def _after(request: Request) -> str | None:
    """The id in the query; browsers treat an empty id as none."""
    return request.query_params.get("after") or None
