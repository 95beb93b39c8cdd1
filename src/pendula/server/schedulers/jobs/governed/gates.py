"""Gates, rollbacks, state machines and counters of governance over HTTP."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.governance.calls import Governance
from pendula.jobs.model import Code
from pendula.server.api.requests import Operator, Viewer
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.answering import changed, documented, listed, response_of, service_of
from pendula.server.schedulers.jobs.errors import PREFIX
from pendula.server.schedulers.jobs.governed.shapes import USER

router = APIRouter(prefix=PREFIX, tags=["jobs"])


@router.get(
    "/gates",
    responses=shapes.gives("Gates", *shapes.FAULTS, Code.INVALID_LIMIT),
    **documented(
        "gates",
        parameters=[
            shapes.in_query("scope", shapes.TEXT, "memory:m_1; its own and those of *"),
            shapes.in_query("after", shapes.TEXT, "The next_after of the page before"),
            shapes.LIMIT,
        ],
    ),
)
async def gates(request: Request, _: Viewer) -> Response:
    """All gates by scope and name, those for all objects first, or the gates that apply to one scope."""
    return await listed(request, lambda calls, query: Governance(calls).gates(query))


@router.put(
    "/gates",
    responses=shapes.gives("OneGate", Code.USER_REQUIRED, *shapes.FAULTS, body=True),
    **documented("set_gate", "SetGate", [USER]),
)
async def set_gate(request: Request, who: Operator) -> Response:
    """Set the verdict of a gate, for all objects or for one; an override needs a named user."""
    return response_of(
        await changed(request, who, lambda calls, body, caller: Governance(calls).set_gate(body, caller))
    )


@router.get(
    "/rollbacks",
    responses=shapes.gives("Rollbacks", *shapes.FAULTS, Code.INVALID_LIMIT),
    **documented("rollbacks", parameters=[shapes.LIMIT]),
)
async def rollbacks(request: Request, _: Viewer) -> Response:
    """Unfinished rollbacks, the oldest first."""
    return await listed(request, lambda calls, query: Governance(calls).rollbacks(query))


@router.get("/governance", responses=shapes.gives("Governance"), **documented("governance"))
async def figures(request: Request, _: Viewer) -> Response:
    """The number of objects by place, and the counters of governance."""
    return response_of(await service_of(request).look(lambda calls: Governance(calls).figures()))


@router.get("/machines", responses=shapes.gives("Machines"), **documented("machines"))
async def machines(request: Request, _: Viewer) -> Response:
    """The state machine of each object type, and the possible verdicts of each gate."""
    return response_of(await service_of(request).look(lambda calls: Governance(calls).machines()))
