"""The server of the benchmark: the scheduler `jobs` alone, and a route that decodes, validates and echoes a body.

Run as `python -m bench.jobs_server DATA`; prints its address when it is ready, and serves until it is stopped.
"""

import sys

from fastapi import APIRouter
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from pendula.jobs.messages import Enqueue
from pendula.jobs.model import Policy
from pendula.jobs.request_reading import read
from pendula.server.api.requests import Operator
from pendula.server.errors import json_response
from pendula.server.schedulers.jobs.answering import read_object
from pendula.server.schedulers.jobs.routes import jobs_scheduler
from pendula.server.serving import serve
from pendula.server.settings import LogLevel, Settings
from pendula.server.views import encode_view

ENQUEUE = "/scheduler/jobs"
RETURN = "/scheduler/bench/return"
POLICY = Policy()

router = APIRouter()


@router.post(RETURN, include_in_schema=False)
async def give_back(request: Request, _: Operator) -> Response:
    """An enqueue without the enqueuing."""
    body = await read_object(request)
    assert isinstance(read(Enqueue, body, POLICY), Enqueue)
    return json_response(encode_view(body))


def main(data: str) -> None:
    jobs = jobs_scheduler(POLICY)
    # First, because the last route of the scheduler matches everything else.
    jobs = replace(jobs, routers=(router, *jobs.routers))
    settings = Settings(port=0, data=data, log_level=LogLevel.ERROR)
    serve(settings, (jobs,), lambda address: print(address, flush=True))


if __name__ == "__main__":
    main(sys.argv[1])
