"""Actions of a person over HTTP, each with its own form; refusals are one object without a frame."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.server.errors import json_response
from pendula.server.routes.bodies import read_body
from pendula.server.routes.openapi import WRITE_ERRORS, Responses, answers, takes
from pendula.server.schedulers.credit import shapes
from pendula.server.schedulers.credit.errors import PREFIX, ActionsDisabled, action_refusal
from pendula.server.schedulers.credit.routes import acting
from pendula.server.schedulers.credit.routes.acting import Done, Refused, once
from pendula.server.schedulers.credit.routes.calling import Caller, Steering, answer
from pendula.server.schedulers.credit.running.served_run import ServedRun

ACTIONS = "/runs/{run_id}/actions"

A = TypeVar("A", bound=shapes.Action)

router = APIRouter(prefix=f"{PREFIX}{ACTIONS}", tags=["credit"])

_REFUSED: Responses = {
    status: {
        "description": "The action is refused",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ActionRefusal"}}},
    }
    for status in (*WRITE_ERRORS, 409)
}


def _acts(
    name: str,
    sentence: str,
    takes_a: type[A],
    gives: type[shapes.ActionDone],
    act: Callable[[ServedRun, Caller, A], Awaitable[Done]],
) -> None:
    @router.post(
        f"/{name}",
        description=sentence,
        responses=answers(gives, ()) | _REFUSED,
        openapi_extra=takes(takes_a.__name__),
        operation_id=f"credit_{name.replace('-', '_')}",
    )
    async def acted(run_id: str, request: Request, caller: Steering) -> Response:
        run = await caller.run(run_id)
        if not caller.service.defaults.actions_enable:
            raise ActionsDisabled("Actions of a person are switched off; SIMULATOR_ACTIONS_ENABLE=1 allows them")
        wish: Any = await read_body(request, takes_a)
        with caller.service.counters.action_seconds.labels(name).time():
            done = await once(run, name, wish, lambda: act(run, caller, wish))
        if isinstance(done, Refused):
            return json_response(action_refusal(done.code, done.message, done.details), done.status)
        return answer(done)


_acts("payment-real", "Pay by hand, through the ledger of the run.", shapes.Payment, shapes.PaymentDone, acting.pay)
_acts("clearing-real", "Clear by hand.", shapes.Clearing, shapes.ClearingDoneView, acting.clear)
_acts(
    "trustline-create",
    "Open a line from its creditor to its debtor, or open a closed one again.",
    shapes.TrustlineCreate,
    shapes.TrustlineCreated,
    acting.open_line,
)
_acts(
    "trustline-update",
    "Another limit; not below what is owed.",
    shapes.TrustlineUpdate,
    shapes.TrustlineUpdated,
    acting.set_limit,
)
_acts(
    "trustline-close",
    "Close a line over which nothing is owed either way.",
    shapes.TrustlineClose,
    shapes.TrustlineClosed,
    acting.close_line,
)
_acts(
    "tx-once",
    "Show a payment that nobody makes: for pages that want something to light.",
    shapes.TxOnce,
    shapes.TxShown,
    acting.show_payment,
)
_acts(
    "clearing-once",
    "Show a clearing that clears nothing.",
    shapes.ClearingOnce,
    shapes.ClearingShown,
    acting.show_clearing,
)
