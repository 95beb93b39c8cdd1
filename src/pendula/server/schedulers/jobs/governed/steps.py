"""A governed job over HTTP, in two steps: `begin` and `finish`, or `settle` where the object itself decides."""

from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.governance.calls import Governance
from pendula.jobs.calls import Answer, Body, Caller
from pendula.jobs.model import Code
from pendula.server.api.requests import Operator
from pendula.server.schedulers.jobs import shapes
from pendula.server.schedulers.jobs.answering import changed, documented, response_of
from pendula.server.schedulers.jobs.errors import PREFIX

JOB_ID = shapes.in_path("job_id", "The id of a job")
STEP_CODES = (*shapes.HELD, Code.OBJECT_NOT_FOUND)

router = APIRouter(prefix=PREFIX, tags=["jobs"])


def _step(
    name: str, sentence: str, call: Callable[[Governance, str, Body, Caller], Answer], takes: str, *codes: Code
) -> None:
    @router.post(
        f"/jobs/{{job_id}}/{name}",
        description=sentence,
        responses=shapes.gives("Step", *STEP_CODES, *codes, body=True),
        **documented(name, takes, [JOB_ID]),
    )
    async def step(request: Request, who: Operator) -> Response:
        job_id = request.path_params["job_id"]
        answer = await changed(request, who, lambda calls, body, caller: call(Governance(calls), job_id, body, caller))
        return response_of(answer)


_step(
    "begin",
    "Begin a verification: check the gates and take the budget; `entered` is whether to run it.",
    Governance.begin,
    "Proof",
)
_step(
    "finish",
    "End a governed job with a verdict: transition, trail, follow-up and ack in one transaction.",
    Governance.finish,
    "Finish",
    Code.NOT_BEGUN,
)
_step(
    "settle",
    "End a decay or an archive, which the object itself decides.",
    Governance.settle,
    "Proof",
    Code.NOT_BEGUN,
)
