"""Manual actions over HTTP; refusals are one object without an `error` member around it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from pendula.server.api.openapi import WRITE_ERRORS, Responses, answers, takes
from pendula.server.api.requests import read_body
from pendula.server.errors import json_response
from pendula.server.schedulers.credit import shapes
from pendula.server.schedulers.credit.errors import PREFIX, ActionsDisabled, action_refusal
from pendula.server.schedulers.credit.routes import action_handlers
from pendula.server.schedulers.credit.routes.action_handlers import Refused, Result, perform_once
from pendula.server.schedulers.credit.routes.caller import Caller, OperatorCaller, answer
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


def _add_route(
    name: str,
    description: str,
    body: type[A],
    response: type[shapes.ActionDone],
    act: Callable[[ServedRun, Caller, A], Awaitable[Result]],
) -> None:
    @router.post(
        f"/{name}",
        description=description,
        responses=answers(response, ()) | _REFUSED,
        openapi_extra=takes(body.__name__),
        operation_id=f"credit_{name.replace('-', '_')}",
    )
    async def handle(run_id: str, request: Request, caller: OperatorCaller) -> Response:
        run = await caller.run(run_id)
        if not caller.service.defaults.actions_enable:
            raise ActionsDisabled("Manual actions are disabled; set SIMULATOR_ACTIONS_ENABLE=1 to allow them")
        action: Any = await read_body(request, body)
        with caller.service.counters.action_seconds.labels(name).time():
            result = await perform_once(run, name, action, lambda: act(run, caller, action))
        if isinstance(result, Refused):
            return json_response(action_refusal(result.code, result.message, result.details), result.status)
        return answer(result)


_add_route(
    "payment-real", "Make a payment in the ledger of the run.", shapes.Payment, shapes.PaymentDone, action_handlers.pay
)
_add_route(
    "clearing-real", "Clear debts in one equivalent.", shapes.Clearing, shapes.ClearingDoneView, action_handlers.clear
)
_add_route(
    "trustline-create",
    "Open a line from a creditor to a debtor, or reopen a closed one.",
    shapes.TrustlineCreate,
    shapes.TrustlineCreated,
    action_handlers.open_line,
)
_add_route(
    "trustline-update",
    "Change the limit of a line; not below the debt.",
    shapes.TrustlineUpdate,
    shapes.TrustlineUpdated,
    action_handlers.set_limit,
)
_add_route(
    "trustline-close",
    "Close a line without debts in either direction.",
    shapes.TrustlineClose,
    shapes.TrustlineClosed,
    action_handlers.close_line,
)
_add_route(
    "tx-once",
    "Stream a payment event without making a payment, to demonstrate a page.",
    shapes.TxOnce,
    shapes.TxShown,
    action_handlers.show_payment,
)
_add_route(
    "clearing-once",
    "Stream clearing events without clearing anything, to demonstrate a page.",
    shapes.ClearingOnce,
    shapes.ClearingShown,
    action_handlers.show_clearing,
)
