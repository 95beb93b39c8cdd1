"""Governed objects over HTTP, at `/scheduler/objects`. Verbs stand before the id, so that it may contain a slash."""

from collections.abc import Callable, Sequence

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.jobs.calls import Answer, Body, Caller, Calls, queries
from pendula.jobs.governance import Governance
from pendula.jobs.model import Code
from pendula.server.routes.dependencies import Operator, Viewer
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.answering import changed, documented, listed, response_of, service_of
from pendula.server.schedulers.jobs.errors import PREFIX, RouteNotFound
from pendula.server.schedulers.jobs.governed.shapes import USER

OBJECT = "{object_type}/{object_id:path}"
ABOUT = [shapes.in_path("object_type", "What kind of object"), shapes.in_path("object_id", "Which of them")]
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
    """Put an object under governance; its first job is made with it."""
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
_question("why", "Why it is in this state, what comes next and when, what is in the way.", Governance.why, "WhyObject")


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
    "Attach references; one that makes the unknowable knowable opens it again.",
    Governance.attach_evidence,
    takes="Evidence",
    codes=[Code.STATE_CONFLICT],
)
_on_an_object(
    "decide",
    "What a named user found, through the same machine and gates as a job.",
    Governance.decide,
    takes="Decision",
    gives="Decided",
    codes=[Code.USER_REQUIRED, Code.STATE_CONFLICT, Code.ILLEGAL_TRANSITION, Code.GATE_CLOSED],
)
_on_an_object(
    "amend",
    "A named user says otherwise of its dates, of what would prove it wrong, or gives it a higher tier.",
    Governance.amend,
    takes="Amendment",
    codes=[Code.USER_REQUIRED, Code.STATE_CONFLICT, Code.ILLEGAL_TRANSITION],
)
_on_an_object(
    "refill",
    "A named user gives it a new budget of verifications.",
    Governance.refill,
    takes="Refill",
    codes=[Code.USER_REQUIRED, Code.STATE_CONFLICT],
)
_on_an_object(
    "rollback-finished",
    "The rollback service reports that all built on the object is taken back.",
    Governance.rollback_finished,
    takes="Reason",
    gives="RolledBack",
    codes=[Code.STATE_CONFLICT],
)


# After those with a verb before the type: this one takes every path.
@router.get(
    f"/objects/{OBJECT}",
    responses=shapes.gives("Object", Code.OBJECT_NOT_FOUND, also=NO_ROUTE),
    **documented("object", parameters=ABOUT),
)
async def shown_object(request: Request, _: Viewer) -> Response:
    """What is known of an object."""
    kind, name = request.path_params["object_type"], request.path_params["object_id"]
    return response_of(await service_of(request).look(lambda calls: queries.shown_object(calls.store, kind, name)))
