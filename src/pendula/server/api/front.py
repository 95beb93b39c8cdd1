"""The routes of the server: page, health, readiness, metrics, sessions, and the list of schedulers."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pendula.kernel import canonical
from pendula.server import views
from pendula.server.api.openapi import READ_ERRORS, WRITE_ERRORS, Responses, answers, refusals, takes
from pendula.server.api.requests import Supervised, Viewer, read_body
from pendula.server.errors import NotIdentified, json_response
from pendula.server.http.page import INDEX, Page
from pendula.server.runtime.supervisor import Supervisor
from pendula.server.security.gates import principal_of, unauthenticated
from pendula.server.security.identity import SESSION_SECONDS, Principal, cookie_value, set_cookie

router = APIRouter()
STORE_UNUSABLE = "store_unusable"


@router.get("/", include_in_schema=False)
@router.get("/favicon.svg", include_in_schema=False)
@router.get("/assets/{name:path}", include_in_schema=False)
async def page(request: Request) -> Response:
    """The control room."""
    files: Page = request.app.state.page
    return files.respond(request.url.path.removeprefix("/") or INDEX, request)


@router.get("/docs", include_in_schema=False)
async def docs_folder() -> Response:
    """Redirect to the address from which relative links work."""
    return RedirectResponse("docs/")


@router.get("/docs/{name:path}", include_in_schema=False)
async def docs(request: Request, name: str) -> Response:
    """The documentation pages, built with the control room."""
    files: Page = request.app.state.page
    return files.respond_with_docs(name, request)


_UNHEALTHY: Responses = {
    503: {"description": "The file of a store is missing", "content": answers(views.Health)[200]["content"]}
}
_UNREADY: Responses = {
    503: {"description": "Something is not ready", "content": answers(views.Readiness)[200]["content"]}
}


@router.get("/healthz", tags=["server"], responses=answers(views.Health, (400, 401, 421, 429, 500)) | _UNHEALTHY)
async def healthz(supervisor: Supervised) -> Response:
    """200 if the process answers and no store file was removed or replaced; otherwise 503.

    /readyz checks whether stores and engines accept work.
    """
    lost = supervisor.stores_without_file()
    status = STORE_UNUSABLE if lost else "ok"
    return json_response(canonical.encode(views.Health(status)), 503 if lost else 200)


@router.get("/readyz", tags=["server"], responses=answers(views.Readiness, (400, 401, 421, 429, 500)) | _UNREADY)
async def readyz(request: Request, supervisor: Supervised) -> Response:
    """200 if every engine and store accepts work; otherwise 503 with the error codes.

    Only signed-in callers see the names of engines; others see schedulers.
    """
    found = await supervisor.readiness()
    if principal_of(request.scope) is None:
        found = found.by_scheduler()
    return json_response(canonical.encode(found), 200 if found.status == "ready" else 503)


_TEXT: Responses = {200: {"description": "Prometheus text", "content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/metrics", tags=["server"], response_class=Response, responses=_TEXT | refusals(READ_ERRORS))
async def metrics(supervisor: Supervised, _: Viewer) -> Response:
    """Counters for Prometheus."""
    # In a thread: some values are read from a disk.
    text, media_type = await asyncio.to_thread(supervisor.metrics.text)
    return Response(text, headers={"content-type": media_type})


@router.get("/api/v1/schedulers", tags=["server"], responses=answers(views.SchedulerList))
async def schedulers(supervisor: Supervised, _: Viewer) -> Response:
    """The schedulers and their state."""
    return json_response(canonical.encode(supervisor.scheduler_list()))


@router.get("/api/v1/session", tags=["session"], responses=answers(views.SessionView))
async def session(request: Request, supervisor: Supervised) -> Response:
    """The identity of the caller."""
    principal = principal_of(request.scope)
    if principal is None:
        raise unauthenticated(request.scope, supervisor.settings)
    return json_response(_session(supervisor, principal))


@router.post(
    "/api/v1/session",
    tags=["session"],
    responses=answers(views.SessionView, WRITE_ERRORS),
    openapi_extra=takes(views.SignIn),
)
async def begin_session(request: Request, supervisor: Supervised) -> Response:
    """Exchange a token for a session cookie, which a browser can send with an event stream."""
    offered = await read_body(request, views.SignIn)
    token = supervisor.tokens.check(offered.token)
    if token is None:
        refusal = NotIdentified("This token is not valid: it is mistyped, revoked or expired")
        raise supervisor.wrong_tokens.wrong(request.scope, refusal)
    supervisor.wrong_tokens.right(request.scope)
    # In a thread: the session is written to disk.
    value, principal = await asyncio.to_thread(supervisor.sessions.start, token)
    assert principal.expires_at is not None
    cookie = set_cookie(value, SESSION_SECONDS, _secure(request))
    return json_response(_session(supervisor, principal), headers={"set-cookie": cookie})


_GONE: Responses = {204: {"description": "The session has ended"}}


@router.delete(
    "/api/v1/session",
    tags=["session"],
    status_code=204,
    response_class=Response,
    responses=_GONE | refusals(WRITE_ERRORS),
)
async def end_session(request: Request, supervisor: Supervised) -> Response:
    """End the session, if there is one."""
    value = cookie_value(request.headers.get("cookie"))
    if value is not None:
        await asyncio.to_thread(supervisor.sessions.end, value)
    return Response(status_code=204, headers={"set-cookie": set_cookie("", 0, _secure(request))})


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"


def _session(supervisor: Supervisor, principal: Principal) -> bytes:
    return canonical.encode(views.SessionView(principal.name, principal.role, supervisor.tokens.configured))
