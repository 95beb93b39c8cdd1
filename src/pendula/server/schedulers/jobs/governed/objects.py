"""Governed objects over HTTP, at `/scheduler/objects`. Verbs come before the id, so that an id may contain slashes."""

from collections.abc import Callable, Sequence

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.governance.calls import Governance
from pendula.jobs.calls import Answer, Body, Caller, Calls, queries
from pendula.jobs.model import Code
from pendula.server.api.requests import Operator, Viewer
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.answering import changed, documented, listed, response_of, service_of
from pendula.server.schedulers.jobs.errors import PREFIX, RouteNotFound
from pendula.server.schedulers.jobs.governed.shapes import USER

OBJECT = "{object_type}/{object_id:path}"
ABOUT = [shapes.in_path("object_type", "The type of the object"), shapes.in_path("object_id", "The id of the object")]
NO_ROUTE = {404: (RouteNotFound.code,)}  # a line break in a path is part of no route
ObjectCall = Callable[[Governance, str, str, Body, Caller], Answer]

router = APIRouter(prefix=PREFIX, tags=["jobs"])


@router.post(
    "/objects",
    status_code=201,
    responses=shapes.gives("Kept", Code.OBJECT_EXISTS, *shapes.FAULTS, body=True, status=201),
    **documented("create_object", "NewObject", [USER]),
)
async def create(request: Request, who: Operator) -> Response:
    """Put an object under governance and enqueue its first job."""
    return response_of(await changed(request, who, lambda calls, body, caller: Governance(calls).create(body, caller)))


@router.get(
    "/objects",
    responses=shapes.gives("ObjectPage", *shapes.FAULTS, Code.INVALID_LIMIT),
    **documented(
        "list_objects",
        parameters=[
            shapes.in_query("object_type", shapes.TEXT) | {"required": True},
            shapes.in_query("place", shapes.TEXT, "A state; of a cognition both axes, as in active/supported"),
            shapes.in_query("after", shapes.TEXT, "The next_after of the page before"),
            shapes.LIMIT,
        ],
    ),
)
async def list_objects(request: Request, _: Viewer) -> Response:
    """Governed objects of a type, by id."""
    return await listed(request, lambda calls, query: Governance(calls).page(query))


def _question(name: str, sentence: str, call: Callable[[Governance, str, str], Answer], gives: str) -> None:
    @router.get(
        f"/objects/{name}/{OBJECT}",
        description=sentence,
        responses=shapes.gives(gives, Code.OBJECT_NOT_FOUND, Code.INVALID_ENUM, also=NO_ROUTE),
        **documented(f"{name}_object", parameters=ABOUT),
    )
    async def question(request: Request, _: Viewer) -> Response:
        kind, name = request.path_params["object_type"], request.path_params["object_id"]
        return response_of(await service_of(request).look(lambda calls: call(Governance(calls), kind, name)))


_question("show", "A governed object, its gates, its latest decisions, its rollbacks.", Governance.show, "ShownObject")
_question("why", "Why it is in this state, what comes next and when, and any obstacle.", Governance.why, "WhyObject")


def _on_an_object(
    name: str, sentence: str, call: ObjectCall, *, takes: str, gives: str = "Kept", codes: Sequence[Code] = ()
) -> None:
    """A route for a change of one object."""

    @router.post(
        f"/objects/{name}/{OBJECT}",
        description=sentence,
        responses=shapes.gives(gives, Code.OBJECT_NOT_FOUND, *codes, *shapes.FAULTS, body=True, also=NO_ROUTE),
        **documented(f"{name.replace('-', '_')}_object", takes, [*ABOUT, USER]),
    )
    async def on_an_object(request: Request, who: Operator) -> Response:
        kind, object_id = request.path_params["object_type"], request.path_params["object_id"]

        def made(calls: Calls, body: Body, caller: Caller) -> Answer:
            return call(Governance(calls), kind, object_id, body, caller)

        return response_of(await changed(request, who, made))


_on_an_object(
    "evidence",
    "Attach references; a new unknown type can reopen an object closed as unknowable.",
    Governance.attach_evidence,
    takes="Evidence",
    codes=[Code.STATE_CONFLICT],
)
_on_an_object(
    "decide",
    "Apply the finding of a named user, through the same machine and gates as a job.",
    Governance.decide,
    takes="Decision",
    gives="Decided",
    codes=[Code.USER_REQUIRED, Code.STATE_CONFLICT, Code.ILLEGAL_TRANSITION, Code.GATE_CLOSED],
)
_on_an_object(
    "amend",
    "Change dates or falsify_if in the name of a user, or raise a tier.",
    Governance.amend,
    takes="Amendment",
    codes=[Code.USER_REQUIRED, Code.STATE_CONFLICT, Code.ILLEGAL_TRANSITION],
)
_on_an_object(
    "refill",
    "Refill the verification budget in the name of a user.",
    Governance.refill,
    takes="Refill",
    codes=[Code.USER_REQUIRED, Code.STATE_CONFLICT],
)
_on_an_object(
    "rollback-finished",
    "Report that the rollback of everything built on the object is finished.",
    Governance.rollback_finished,
    takes="Reason",
    gives="RolledBack",
    codes=[Code.STATE_CONFLICT],
)


# After the routes with a verb before the type: this one matches every path.
@router.get(
    f"/objects/{OBJECT}",
    responses=shapes.gives("Object", Code.OBJECT_NOT_FOUND, also=NO_ROUTE),
    **documented("object", parameters=ABOUT),
)
async def shown_object(request: Request, _: Viewer) -> Response:
    """The stored row of an object."""
    kind, name = request.path_params["object_type"], request.path_params["object_id"]
    return response_of(await service_of(request).look(lambda calls: queries.shown_object(calls.store, kind, name)))
