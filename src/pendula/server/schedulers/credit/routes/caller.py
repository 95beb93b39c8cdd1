"""The owner of a request to the simulator, and its query parameters, with the errors of the protocol."""

from collections.abc import Collection
from typing import Annotated

from fastapi import Depends
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.credit.state.network import Network
from pendula.server.api.requests import Operator, Viewer, request_id_of, supervisor_of
from pendula.server.errors import json_response
from pendula.server.schedulers.credit.errors import BadRequest, UnknownEquivalent
from pendula.server.schedulers.credit.owners import cookie_of, owner_of
from pendula.server.schedulers.credit.records import Owner
from pendula.server.schedulers.credit.run import ServedRun
from pendula.server.schedulers.credit.service import SimulatorService
from pendula.server.security.identity import Principal, Via
from pendula.server.views import encode_view

NAME = "credit"


class Caller(Struct, frozen=True):
    """The caller of a request; `by` is its name in journals."""

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


def _make_caller(request: Request, principal: Principal) -> Caller:
    service = supervisor_of(request).service(NAME)
    assert isinstance(service, SimulatorService)
    # Raises if the simulator is not open: before that no cookie can be read.
    _ = service.context
    owner = owner_of(principal, cookie_of(request.headers.get("cookie")), service.cookies)
    return Caller(service, principal, owner, request_id_of(request))


async def viewer_caller(request: Request, principal: Viewer) -> Caller:
    return _make_caller(request, principal)


async def operator_caller(request: Request, principal: Operator) -> Caller:
    return _make_caller(request, principal)


ViewerCaller = Annotated[Caller, Depends(viewer_caller)]
OperatorCaller = Annotated[Caller, Depends(operator_caller)]


def answer(view: object, status: int = 200) -> Response:
    return json_response(encode_view(view), status)


def read_integer(request: Request, name: str, default: int | None, least: int, most: int) -> int:
    """An integer parameter; raises `BadRequest`."""
    value = request.query_params.get(name)
    if value is None and default is not None:
        return default
    text = value or ""
    if text.isascii() and text.isdigit() and len(text) <= 18 and least <= int(text) <= most:
        return int(text)
    raise BadRequest(
        f"{name} is {text[:100]!r}; it must be a whole number from {least} to {most}",
        errors=[{"path": name, "message": f"must be a whole number from {least} to {most}"}],
    )


def read_flag(request: Request, name: str) -> bool:
    """A boolean parameter; false if it is missing."""
    return request.query_params.get(name, "false").lower() in ("1", "true", "yes")


def resolve_equivalent(name: str | None, known: Collection[str]) -> str:
    """The code of an equivalent, by default the first one; raises `UnknownEquivalent`."""
    if name is None and known:
        return next(iter(known))
    code = (name or "").strip().upper()
    if code not in known:
        raise UnknownEquivalent(f"Unknown equivalent {code[:50]!r}", equivalent=code[:50], known=list(known))
    return code


def requested_equivalent(request: Request, network: Network) -> str:
    return resolve_equivalent(request.query_params.get("equivalent"), list(network.ledgers))
