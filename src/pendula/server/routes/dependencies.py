"""FastAPI dependencies: the caller, the supervisor, the request id.

Every route that is not public declares the role it needs; a test checks all routes.
"""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from pendula.server.errors import NotIdentified, RoleTooLow
from pendula.server.hosting.supervisor import Supervisor
from pendula.server.security.gates import Slot, principal_of
from pendula.server.security.identity import Principal, Role, Via


class Needs:
    """A dependency that returns the caller if the role suffices; raises `RoleTooLow` or `NotIdentified`."""

    def __init__(self, role: Role) -> None:
        self.role = role

    # A coroutine: FastAPI would run a plain function in a thread, which takes longer than the check.
    async def __call__(self, request: Request) -> Principal:
        principal = principal_of(request.scope)
        if principal is None:
            raise NotIdentified("Sign in: send a bearer token or a session cookie")
        if not principal.role.covers(self.role):
            how = "; without a token this machine is operator at most: make one with pendula token new"
            raise RoleTooLow(
                f"This needs the role {self.role}; {principal.name} is {principal.role}"
                + (how if principal.via is Via.LOCAL else ""),
                needed=self.role,
                role=principal.role,
            )
        return principal


Viewer = Annotated[Principal, Depends(Needs(Role.VIEWER))]
Operator = Annotated[Principal, Depends(Needs(Role.OPERATOR))]
Admin = Annotated[Principal, Depends(Needs(Role.ADMIN))]


def supervisor_of(request: Request) -> Supervisor:
    """The supervisor of the app."""
    supervisor: Supervisor = request.app.state.supervisor
    return supervisor


def request_id_of(request: Request) -> str:
    found: str = request.state.request_id
    return found


def slot_of(request: Request) -> Slot:
    """The request's slot; a stream releases it when it begins."""
    found: Slot = request.state.slot
    return found


Supervised = Annotated[Supervisor, Depends(supervisor_of)]
RequestId = Annotated[str, Depends(request_id_of)]
