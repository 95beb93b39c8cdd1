"""Who calls the simulator, and what a call says: its owner, and queries read with the refusals of the protocol."""

from collections.abc import Collection
from typing import Annotated

from fastapi import Depends
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.credit.served.records import Owner
from pendula.credit.state.network import Network
from pendula.server.errors import json_response
from pendula.server.routes.dependencies import Operator, Viewer, request_id_of, supervisor_of
from pendula.server.schedulers.credit.errors import BadRequest, UnknownEquivalent
from pendula.server.schedulers.credit.owners import cookie_of, owner_of
from pendula.server.schedulers.credit.running.served_run import ServedRun
from pendula.server.schedulers.credit.service import SimulatorService
from pendula.server.security.identity import Principal, Via
from pendula.server.views import encode_view

NAME = "credit"


class Caller(Struct, frozen=True):
    """Who calls: `by` is what journals remember."""

    service: SimulatorService
    principal: Principal
    owner: Owner
    request_id: str

    @property
    def by(self) -> str:
        return self.owner.id if self.principal.via is Via.LOCAL else self.principal.name

    async def run(self, run_id: str) -> ServedRun:
        """Raises `RunNotFound`."""
        return await self.service.find(self.owner, run_id)


def service_of(request: Request) -> SimulatorService:
    service = supervisor_of(request).service(NAME)
    assert isinstance(service, SimulatorService)
    return service


def _caller(request: Request, principal: Principal) -> Caller:
    service = service_of(request)
    # Nothing is known of owners before the simulator is open.
    _ = service.context
    owner = owner_of(principal, cookie_of(request.headers.get("cookie")), service.cookies)
    return Caller(service, principal, owner, request_id_of(request))


async def looking(request: Request, principal: Viewer) -> Caller:
    return _caller(request, principal)


async def steering(request: Request, principal: Operator) -> Caller:
    return _caller(request, principal)


Looking = Annotated[Caller, Depends(looking)]
Steering = Annotated[Caller, Depends(steering)]


def answer(view: object, status: int = 200) -> Response:
    """A view as a response."""
    return json_response(encode_view(view), status)


def whole(request: Request, name: str, default: int | None, least: int, most: int) -> int:
    """A whole number of the query; raises `BadRequest`."""
    given = request.query_params.get(name)
    if given is None and default is not None:
        return default
    text = given or ""
    if text.isascii() and text.isdigit() and len(text) <= 18 and least <= int(text) <= most:
        return int(text)
    raise BadRequest(
        f"{name} is {text[:100]!r}; it must be a whole number from {least} to {most}",
        errors=[{"path": name, "message": f"must be a whole number from {least} to {most}"}],
    )


def truth(request: Request, name: str) -> bool:
    """A switch of the query, off where it is not given."""
    return request.query_params.get(name, "false").lower() in ("1", "true", "yes")


def known_equivalent(given: str | None, known: Collection[str]) -> str:
    """The code that is meant; without one, the only or first one. Raises `UnknownEquivalent`."""
    if given is None and known:
        return next(iter(known))
    code = (given or "").strip().upper()
    if code not in known:
        raise UnknownEquivalent(f"There is no equivalent {code[:50]!r}", equivalent=code[:50], known=list(known))
    return code


def equivalent_of(request: Request, network: Network) -> str:
    return known_equivalent(request.query_params.get("equivalent"), list(network.ledgers))
