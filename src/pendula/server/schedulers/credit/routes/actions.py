"""Manual actions over HTTP: pay, clear, open, change and close lines; and demonstrations, which change nothing.

An action with an id of the caller is applied once: repeating the request gives the first answer. Each is a command of
the run's engine, journalled with its caller. Refusals are one object without an `error` member around it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, get_type_hints

from fastapi import APIRouter
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.credit.commands import Clear, CloseLine, Commands, OpenLine, Pay, SetLimit
from pendula.credit.engine import Run
from pendula.credit.model import Code, LineStatus
from pendula.credit.money import InvalidAmount, atoms, text
from pendula.credit.sentences import sentence_of
from pendula.kernel.canonical import digest, encode
from pendula.kernel.engine import Refusal
from pendula.server.api.openapi import WRITE_ERRORS, Responses, answers, content_of, takes
from pendula.server.api.requests import read_body
from pendula.server.errors import json_response
from pendula.server.schedulers.credit import shapes
from pendula.server.schedulers.credit.errors import PREFIX, ActionsDisabled, BadRequest, action_refusal
from pendula.server.schedulers.credit.records import ENDED
from pendula.server.schedulers.credit.routes.caller import Caller, OperatorCaller, answer
from pendula.server.schedulers.credit.run import ServedRun
from pendula.server.schedulers.credit.stream import EDGE_STYLE, StreamEvent

REMEMBERED = 10_000
STATUSES = {
    Code.INVALID_INPUT: 400,
    Code.EQUIVALENT_NOT_FOUND: 404,
    Code.PARTICIPANT_NOT_FOUND: 404,
    Code.TX_NOT_FOUND: 404,
    Code.FORBIDDEN: 403,
    Code.UNAUTHORIZED: 401,
    Code.PAYMENT_TIMEOUT: 504,
    Code.INTERNAL_ERROR: 500,
}

router = APIRouter(prefix=f"{PREFIX}/runs/{{run_id}}/actions", tags=["credit"])

_REFUSED: Responses = {
    status: {
        "description": "The action is refused",
        "content": content_of(shapes.ActionRefusal),
    }
    for status in (*WRITE_ERRORS, 409)
}


class Refused(Struct, frozen=True):
    """A refused action and its HTTP status."""

    status: int
    code: str
    message: str
    details: dict[str, Any]


Result = shapes.ActionDone | Refused
Act = Callable[[ServedRun, Caller, Any], Awaitable[Result]]


def refuse(refusal: Refusal) -> Refused:
    is_known = refusal.code in Code.__members__
    status = STATUSES.get(Code(refusal.code), 409) if is_known else 409
    return Refused(status, refusal.code.upper(), sentence_of(refusal.code, refusal.facts), dict(refusal.facts))


async def perform_once(
    run: ServedRun, name: str, action: shapes.Action, act: Callable[[], Awaitable[Result]]
) -> Result:
    """Act, or return the answer to the first request with this id; another action under this id is a conflict."""
    key = action.client_action_id
    if key is None:
        return await act()
    fingerprint = digest([name, encode(action).decode()])
    earlier = run.actions.get(key)
    if earlier is not None:
        if earlier[0] != fingerprint:
            message = f"The client_action_id {key!r} is already used for another action"
            return Refused(409, Code.CONFLICT.value, message, {"client_action_id": key})
        first: Result = await asyncio.shield(earlier[1])
        return first
    future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    run.actions[key] = (fingerprint, future)
    while len(run.actions) > REMEMBERED:
        run.actions.pop(next(iter(run.actions)))
    try:
        result = await act()
    except BaseException as error:
        # The outcome is unknown; the caller may repeat the request.
        run.actions.pop(key, None)
        future.set_exception(error)
        future.exception()
        raise
    future.set_result(result)
    return result


async def apply(run: ServedRun, caller: Caller, command: Commands) -> Any | Refused:
    """Apply a command; returns its answer or its refusal."""
    if run.record.state in ENDED or not run.is_open:
        message = f"The run is {run.record.state}; manual actions need a run that is running or paused"
        return Refused(409, "RUN_CONFLICT", message, {"state": run.record.state.value})
    outcome = await run.submit(command, caller.by, caller.request_id)
    return refuse(outcome.refusal) if outcome.refusal is not None else outcome.answer


def _route(name: str, response: type[shapes.ActionDone]) -> Callable[[Act], Act]:
    """The route of an action: its docstring is the description, the type of `action` the body."""

    def add(act: Act) -> Act:
        body = get_type_hints(act)["action"]

        @router.post(
            f"/{name}",
            description=act.__doc__,
            responses=answers(response, ()) | _REFUSED,
            openapi_extra=takes(body),
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

        return act

    return add


@_route("payment-real", shapes.PaymentDone)
async def pay(run: ServedRun, caller: Caller, action: shapes.Payment) -> Result:
    """Make a payment in the ledger of the run."""
    answer = await apply(run, caller, Pay(action.from_pid, action.to_pid, action.equivalent, action.amount))
    if isinstance(answer, Refused):
        return answer
    if answer["status"] != "COMMITTED":
        error = answer["error"]
        status = STATUSES.get(Code(error["code"]), 409)
        message = sentence_of(error["code"], {**answer, **error["details"]})
        return Refused(status, error["code"], message, error["details"])
    return shapes.PaymentDone(
        payment_id=answer["tx_id"],
        from_pid=answer["from"],
        to_pid=answer["to"],
        equivalent=answer["equivalent"],
        amount=answer["amount"],
        status=answer["status"],
        client_action_id=action.client_action_id,
    )


@_route("clearing-real", shapes.ClearingDoneView)
async def clear(run: ServedRun, caller: Caller, action: shapes.Clearing) -> Result:
    """Clear debts in one equivalent."""
    answer = await apply(run, caller, Clear(action.equivalent, action.max_depth))
    if isinstance(answer, Refused):
        return answer
    cycles = [
        shapes.ClearedCycle(
            cycle["cleared_amount"], [shapes.EdgeView(edge["from"], edge["to"]) for edge in cycle["edges"]]
        )
        for cycle in answer["cycles"]
    ]
    return shapes.ClearingDoneView(
        equivalent=action.equivalent.strip().upper(),
        cleared_cycles=answer["cleared_cycles"],
        total_cleared_amount=answer["total_cleared_amount"],
        cycles=cycles,
        client_action_id=action.client_action_id,
    )


@_route("trustline-create", shapes.TrustlineCreated)
async def open_line(run: ServedRun, caller: Caller, action: shapes.TrustlineCreate) -> Result:
    """Open a line from a creditor to a debtor, or reopen a closed one."""
    answer = await apply(run, caller, OpenLine(action.from_pid, action.to_pid, action.equivalent, action.limit))
    if isinstance(answer, Refused):
        return answer
    return shapes.TrustlineCreated(
        trustline_id=line_name(action.from_pid, action.to_pid, action.equivalent),
        from_pid=answer["source"],
        to_pid=answer["target"],
        equivalent=action.equivalent.strip().upper(),
        limit=answer["trust_limit"],
        client_action_id=action.client_action_id,
    )


@_route("trustline-update", shapes.TrustlineUpdated)
async def set_limit(run: ServedRun, caller: Caller, action: shapes.TrustlineUpdate) -> Result:
    """Change the limit of a line; not below the debt."""
    before = None
    if run.is_open:
        before = await run.ask(lambda engine: _limit(engine, action))
    answer = await apply(run, caller, SetLimit(action.from_pid, action.to_pid, action.equivalent, action.new_limit))
    if isinstance(answer, Refused):
        return answer
    return shapes.TrustlineUpdated(
        trustline_id=line_name(action.from_pid, action.to_pid, action.equivalent),
        old_limit=before or answer["trust_limit"],
        new_limit=answer["trust_limit"],
        client_action_id=action.client_action_id,
    )


@_route("trustline-close", shapes.TrustlineClosed)
async def close_line(run: ServedRun, caller: Caller, action: shapes.TrustlineClose) -> Result:
    """Close a line without debts in either direction."""
    answer = await apply(run, caller, CloseLine(action.from_pid, action.to_pid, action.equivalent))
    if isinstance(answer, Refused):
        return answer
    name = line_name(action.from_pid, action.to_pid, action.equivalent)
    return shapes.TrustlineClosed(trustline_id=name, client_action_id=action.client_action_id)


def line_name(creditor: str, debtor: str, equivalent: str) -> str:
    """The id of a line, derived from its ends and its equivalent."""
    return f"tl_{digest([equivalent.strip().upper(), creditor, debtor])[:24]}"


def _limit(run: Run, action: shapes.TrustlineUpdate) -> str | None:
    ledger = run.network.ledgers.get(action.equivalent.strip().upper())
    h = None if ledger is None else ledger.book.line(action.from_pid, action.to_pid)
    return None if ledger is None or h is None else text(ledger.book.limit[h])


# Demonstrations: events without any change of the ledger


@_route("tx-once", shapes.TxShown)
async def show_payment(run: ServedRun, caller: Caller, action: shapes.TxOnce) -> Result:
    """Stream a payment event without making a payment, to demonstrate a page."""
    answer = await _find_lines(run, caller, action.equivalent)
    if isinstance(answer, Refused):
        return answer
    code, lines = answer
    draw = Random(0 if action.seed is None else action.seed)
    ends = draw.choice(lines) if lines else ("", "")
    sender, receiver = action.sender or ends[1], action.receiver or ends[0]
    form = {
        "type": "tx.updated",
        "equivalent": code,
        "from": sender,
        "to": receiver,
        "amount": _normalize_amount(action.amount, "1.00"),
        "amount_flyout": True,
        "ttl_ms": action.ttl_ms,
        "intensity_key": action.intensity_key or "active",
        "edges": [{"from": sender, "to": receiver, "style": EDGE_STYLE}],
        "demonstration": True,
    }
    name = run.demonstrate(StreamEvent("tx.updated", code, encode(form)))
    return shapes.TxShown(emitted_event_id=name, client_action_id=action.client_action_id)


@_route("clearing-once", shapes.ClearingShown)
async def show_clearing(run: ServedRun, caller: Caller, action: shapes.ClearingOnce) -> Result:
    """Stream clearing events without clearing anything, to demonstrate a page."""
    answer = await _find_lines(run, caller, action.equivalent)
    if isinstance(answer, Refused):
        return answer
    code, lines = answer
    draw = Random(0 if action.seed is None else action.seed)
    drawn = draw.sample(lines, min(3, len(lines)))
    ends = [(edge.source, edge.target) for edge in action.cycle_edges] if action.cycle_edges else drawn
    edges = [{"from": source, "to": target} for source, target in ends]
    plan = f"plan_{digest([run.record.run_id, run.stream.last_seq, edges])[:12]}"
    amount = _normalize_amount(action.cleared_amount, "1.00")
    shared = {"equivalent": code, "plan_id": plan, "demonstration": True}
    steps = [{"at_ms": 0, "highlight_edges": edges}]
    run.demonstrate(StreamEvent("clearing.plan", code, encode({"type": "clearing.plan", **shared, "steps": steps})))
    form = {"type": "clearing.done", **shared, "cleared_cycles": 1, "cleared_amount": amount, "cycle_edges": edges}
    name = run.demonstrate(StreamEvent("clearing.done", code, encode(form)))
    return shapes.ClearingShown(plan_id=plan, done_event_id=name, client_action_id=action.client_action_id)


async def _find_lines(run: ServedRun, caller: Caller, equivalent: str) -> tuple[str, list[tuple[str, str]]] | Refused:
    """The equivalent, and the ends of its active lines."""
    code = equivalent.strip().upper()
    if code not in run.record.equivalents:
        known = list(run.record.equivalents)
        return Refused(404, Code.EQUIVALENT_NOT_FOUND.value, f"Unknown equivalent {equivalent!r}", {"known": known})
    if run.record.state in ENDED:
        return Refused(409, "RUN_CONFLICT", f"The run is {run.record.state}", {"state": run.record.state.value})

    def lines(engine: Run) -> list[tuple[str, str]]:
        book = engine.network.ledgers[code].book
        names = book.people.names
        active = [h for h in range(len(book)) if book.status[h] is LineStatus.ACTIVE]
        return [(names[book.creditor[h]], names[book.debtor[h]]) for h in active]

    return code, await caller.service.ask(run, lines)


def _normalize_amount(amount: str | None, default: str) -> str:
    try:
        return default if amount is None else text(atoms(amount))
    except InvalidAmount as error:
        raise BadRequest(error.message, errors=[{"path": "amount", "message": error.message}]) from None
