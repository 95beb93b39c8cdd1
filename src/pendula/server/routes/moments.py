"""The routes behind the time slider of an engine: the times and incidents of its journal."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from pendula.kernel import canonical
from pendula.server import views
from pendula.server.errors import json_response
from pendula.server.hosting.moments import Moments
from pendula.server.hosting.scheduler_spec import SchedulerSpec
from pendula.server.routes.dependencies import Supervised, Viewer
from pendula.server.routes.engine import LARGEST_N, EngineName, RecordNumber
from pendula.server.routes.openapi import answers

MOST_POINTS = 201

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
