"""The routes behind the time slider of an engine: which times its journal holds, and where something went wrong."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from pendula.kernel import canonical
from pendula.server import views
from pendula.server.errors import NotFound, json_response
from pendula.server.hosting.room_spec import RoomSpec
from pendula.server.routes.dependencies import Supervised, Viewer
from pendula.server.routes.engine import LARGEST_N, EngineName, RecordNumber, in_the_past
from pendula.server.routes.openapi import answers

MOST_POINTS = 201

Points = Annotated[int, Query(ge=2, le=MOST_POINTS)]
Time = Annotated[int, Query(ge=0, le=LARGEST_N)]


def moments_router(room: RoomSpec) -> APIRouter:
    """The routes of one room, below its prefix and the name of an engine."""
    router = APIRouter(prefix=f"{room.prefix}/{{engine}}", tags=[room.name])

    @router.get("/moments", responses=answers(views.MomentsView), operation_id=f"{room.name}_moments")
    async def moments(engine: EngineName, supervisor: Supervised, _: Viewer, points: Points = 5) -> Response:
        """The first moment of the journal, the last, and others evenly between them."""
        index = supervisor.host(room.name, engine).moments
        found = await in_the_past(lambda: canonical.encode(views.MomentsView(index.spread(points))))
        return json_response(found)

    @router.get("/moment", responses=answers(views.Moment), operation_id=f"{room.name}_moment")
    async def moment(engine: EngineName, supervisor: Supervised, _: Viewer, t: Time) -> Response:
        """The last moment not after the time `t` of the engine, or the first one."""
        index = supervisor.host(room.name, engine).moments
        return json_response(await in_the_past(lambda: _moment(index.at_time(t))))

    @router.get("/incident", responses=answers(views.IncidentView), operation_id=f"{room.name}_incident")
    async def incident(engine: EngineName, supervisor: Supervised, _: Viewer, after: RecordNumber = 0) -> Response:
        """The first incident after the record `after`: a refused command, or something that went wrong."""
        index = supervisor.host(room.name, engine).moments
        found = await in_the_past(lambda: canonical.encode(views.IncidentView(index.next_incident(after))))
        return json_response(found)

    return router


def _moment(found: views.Moment | None) -> bytes:
    if found is None:
        raise NotFound("Nothing has happened yet")
    return canonical.encode(found)
