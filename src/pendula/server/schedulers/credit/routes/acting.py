"""What a person does to a run: pay, clear, open, change and close lines; and demonstrations, which only show something.

An action with an id of the caller's happens once: the same call again gets the first answer. Each goes through the
engine of the run and its journal, with who did it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from msgspec import Struct

from pendula.credit.commands import Clear, CloseLine, Commands, OpenLine, Pay, SetLimit
from pendula.credit.engine import Run
from pendula.credit.model import Code, LineStatus
from pendula.credit.money import InvalidAmount, atoms, text
from pendula.credit.sentences import sentence_of
from pendula.credit.served.event_forms import EDGE_STYLE
from pendula.credit.served.lifecycle import ENDED
from pendula.credit.served.ring import StreamEvent
from pendula.kernel.canonical import digest, encode
from pendula.kernel.engine import Refusal
from pendula.server.schedulers.credit import shapes
from pendula.server.schedulers.credit.errors import BadRequest
from pendula.server.schedulers.credit.routes.calling import Caller
from pendula.server.schedulers.credit.running.served_run import ServedRun

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


class Refused(Struct, frozen=True):
    """An action that was not carried out, and its status."""

    status: int
    code: str
    message: str
    details: dict[str, Any]


Done = shapes.ActionDone | Refused


def refused(refusal: Refusal) -> Refused:
    known = refusal.code in Code.__members__
    status = STATUSES.get(Code(refusal.code), 409) if known else 409
    return Refused(status, refusal.code.upper(), sentence_of(refusal.code, refusal.facts), dict(refusal.facts))


async def once(run: ServedRun, name: str, action: shapes.Action, act: Callable[[], Awaitable[Done]]) -> Done:
    """Act, or give the answer of the first call with this id; another action under the same id is a conflict."""
    key = action.client_action_id
    if key is None:
        return await act()
    fingerprint = digest([name, encode(action).decode()])
    known = run.actions.get(key)
    if known is not None:
        if known[0] != fingerprint:
            message = f"The client_action_id {key!r} was used for another action"
            return Refused(409, Code.CONFLICT.value, message, {"client_action_id": key})
        first: Done = await asyncio.shield(known[1])
        return first
    future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
    run.actions[key] = (fingerprint, future)
    while len(run.actions) > REMEMBERED:
        run.actions.pop(next(iter(run.actions)))
    try:
        done = await act()
    except BaseException as trouble:
        # Whether it happened is not known to the caller; a second call may find out.
        run.actions.pop(key, None)
        future.set_exception(trouble)
        future.exception()
        raise
    future.set_result(done)
    return done


async def apply(run: ServedRun, caller: Caller, command: Commands) -> Any | Refused:
    """What the engine answers to a command of a person; its answer, or why it is refused."""
    if run.record.state in ENDED or not run.is_open:
        message = f"The run is {run.record.state}; only a run that is running or paused can be acted upon"
        return Refused(409, "RUN_CONFLICT", message, {"state": run.record.state.value})
    outcome = await run.do(command, caller.by, caller.request_id)
    return refused(outcome.refusal) if outcome.refusal is not None else outcome.answer


async def pay(run: ServedRun, caller: Caller, wish: shapes.Payment) -> Done:
    found = await apply(run, caller, Pay(wish.from_pid, wish.to_pid, wish.equivalent, wish.amount))
    if isinstance(found, Refused):
        return found
    if found["status"] != "COMMITTED":
        error = found["error"]
        status = STATUSES.get(Code(error["code"]), 409)
        message = sentence_of(error["code"], {**found, **error["details"]})
        return Refused(status, error["code"], message, error["details"])
    return shapes.PaymentDone(
        payment_id=found["tx_id"],
        from_pid=found["from"],
        to_pid=found["to"],
        equivalent=found["equivalent"],
        amount=found["amount"],
        status=found["status"],
        client_action_id=wish.client_action_id,
    )


async def clear(run: ServedRun, caller: Caller, wish: shapes.Clearing) -> Done:
    found = await apply(run, caller, Clear(wish.equivalent, wish.max_depth))
    if isinstance(found, Refused):
        return found
    cycles = [
        shapes.ClearedCycle(one["cleared_amount"], [shapes.EdgeView(edge["from"], edge["to"]) for edge in one["edges"]])
        for one in found["cycles"]
    ]
    return shapes.ClearingDoneView(
        equivalent=wish.equivalent.strip().upper(),
        cleared_cycles=found["cleared_cycles"],
        total_cleared_amount=found["total_cleared_amount"],
        cycles=cycles,
        client_action_id=wish.client_action_id,
    )


async def open_line(run: ServedRun, caller: Caller, wish: shapes.TrustlineCreate) -> Done:
    found = await apply(run, caller, OpenLine(wish.from_pid, wish.to_pid, wish.equivalent, wish.limit))
    if isinstance(found, Refused):
        return found
    return shapes.TrustlineCreated(
        trustline_id=line_name(wish.from_pid, wish.to_pid, wish.equivalent),
        from_pid=found["source"],
        to_pid=found["target"],
        equivalent=wish.equivalent.strip().upper(),
        limit=found["trust_limit"],
        client_action_id=wish.client_action_id,
    )


async def set_limit(run: ServedRun, caller: Caller, wish: shapes.TrustlineUpdate) -> Done:
    before = None
    if run.is_open:
        before = await run.ask(lambda engine: _limit(engine, wish))
    found = await apply(run, caller, SetLimit(wish.from_pid, wish.to_pid, wish.equivalent, wish.new_limit))
    if isinstance(found, Refused):
        return found
    return shapes.TrustlineUpdated(
        trustline_id=line_name(wish.from_pid, wish.to_pid, wish.equivalent),
        old_limit=before or found["trust_limit"],
        new_limit=found["trust_limit"],
        client_action_id=wish.client_action_id,
    )


async def close_line(run: ServedRun, caller: Caller, wish: shapes.TrustlineClose) -> Done:
    found = await apply(run, caller, CloseLine(wish.from_pid, wish.to_pid, wish.equivalent))
    if isinstance(found, Refused):
        return found
    name = line_name(wish.from_pid, wish.to_pid, wish.equivalent)
    return shapes.TrustlineClosed(trustline_id=name, client_action_id=wish.client_action_id)


def line_name(creditor: str, debtor: str, equivalent: str) -> str:
    """A line has no name of its own: its ends and its equivalent are it."""
    return f"tl_{digest([equivalent.strip().upper(), creditor, debtor])[:24]}"


def _limit(run: Run, wish: shapes.TrustlineUpdate) -> str | None:
    ledger = run.network.ledgers.get(wish.equivalent.strip().upper())
    h = None if ledger is None else ledger.book.line(wish.from_pid, wish.to_pid)
    return None if ledger is None or h is None else text(ledger.book.limit[h])


# Demonstrations: events that nothing in the ledger stands behind


async def show_payment(run: ServedRun, caller: Caller, wish: shapes.TxOnce) -> Done:
    found = await _shown(run, caller, wish.equivalent)
    if isinstance(found, Refused):
        return found
    code, lines = found
    draw = Random(0 if wish.seed is None else wish.seed)
    ends = draw.choice(lines) if lines else ("", "")
    sender, receiver = wish.sender or ends[1], wish.receiver or ends[0]
    form = {
        "type": "tx.updated",
        "equivalent": code,
        "from": sender,
        "to": receiver,
        "amount": _amount(wish.amount, "1.00"),
        "amount_flyout": True,
        "ttl_ms": wish.ttl_ms,
        "intensity_key": wish.intensity_key or "active",
        "edges": [{"from": sender, "to": receiver, "style": EDGE_STYLE}],
        "demonstration": True,
    }
    name = run.tell(StreamEvent("tx.updated", code, encode(form)))
    return shapes.TxShown(emitted_event_id=name, client_action_id=wish.client_action_id)


async def show_clearing(run: ServedRun, caller: Caller, wish: shapes.ClearingOnce) -> Done:
    found = await _shown(run, caller, wish.equivalent)
    if isinstance(found, Refused):
        return found
    code, lines = found
    draw = Random(0 if wish.seed is None else wish.seed)
    drawn = draw.sample(lines, min(3, len(lines)))
    ends = [(one.source, one.target) for one in wish.cycle_edges] if wish.cycle_edges else drawn
    edges = [{"from": source, "to": target} for source, target in ends]
    plan = f"plan_{digest([run.record.run_id, run.ring.last_seq, edges])[:12]}"
    amount = _amount(wish.cleared_amount, "1.00")
    shared = {"equivalent": code, "plan_id": plan, "demonstration": True}
    steps = [{"at_ms": 0, "highlight_edges": edges}]
    run.tell(StreamEvent("clearing.plan", code, encode({"type": "clearing.plan", **shared, "steps": steps})))
    form = {"type": "clearing.done", **shared, "cleared_cycles": 1, "cleared_amount": amount, "cycle_edges": edges}
    name = run.tell(StreamEvent("clearing.done", code, encode(form)))
    return shapes.ClearingShown(plan_id=plan, done_event_id=name, client_action_id=wish.client_action_id)


async def _shown(run: ServedRun, caller: Caller, equivalent: str) -> tuple[str, list[tuple[str, str]]] | Refused:
    """The equivalent and the ends of its lines, which a demonstration may light."""
    code = equivalent.strip().upper()
    if code not in run.record.equivalents:
        known = list(run.record.equivalents)
        return Refused(404, Code.EQUIVALENT_NOT_FOUND.value, f"There is no equivalent {equivalent!r}", {"known": known})
    if run.record.state in ENDED:
        return Refused(409, "RUN_CONFLICT", f"The run is {run.record.state}", {"state": run.record.state.value})

    def lines(engine: Run) -> list[tuple[str, str]]:
        book = engine.network.ledgers[code].book
        names = book.people.names
        active = [h for h in range(len(book)) if book.status[h] is LineStatus.ACTIVE]
        return [(names[book.creditor[h]], names[book.debtor[h]]) for h in active]

    return code, await caller.service.ask(run, lines)


def _amount(given: str | None, default: str) -> str:
    try:
        return default if given is None else text(atoms(given))
    except InvalidAmount as trouble:
        raise BadRequest(trouble.message, errors=[{"path": "amount", "message": trouble.message}]) from None
