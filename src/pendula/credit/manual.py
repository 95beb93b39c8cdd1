"""Manual commands: pay, clear, open, change and close lines, freeze participants.

An invalid command is refused and changes nothing. A payment without a route is not refused: it counts as an attempt
and emits its event like a planned one.
"""

from contextlib import nullcontext

import msgspec

from pendula.credit import saving
from pendula.credit.commands import Clear, CloseLine, Freeze, OpenLine, Pay, SetLimit
from pendula.credit.events import Event, Failure, TopologyChanged, TopologyPayload, TxFailed
from pendula.credit.ledger.book import Book
from pendula.credit.ledger.cycles import Cycle, find_and_clear
from pendula.credit.ledger.payment import Drifted, Refused
from pendula.credit.model import Code, LineStatus, Trustline, tx_name
from pendula.credit.money import InvalidAmount, atoms, text
from pendula.credit.state.clearing_policy import Why
from pendula.credit.state.network import EquivalentLedger
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import event_parts
from pendula.credit.tick.clearing import call
from pendula.credit.tick.payments import payment_event
from pendula.kernel.canonical import Json, digest
from pendula.kernel.engine import Outcome, Refusal

KEYS_MOST = 100_000


class Rejected(Exception):
    """A command that cannot be executed; becomes a refusal."""

    def __init__(self, code: Code | str, **facts: Json) -> None:
        super().__init__(code)
        self.refusal = Refusal(str(code), facts)


def pay(run: RunState, command: Pay) -> Outcome[Event]:
    """Make one payment. With a key it happens at most once; repeating the key returns the same answer."""
    ledger, amount = _payable(run, command)
    fingerprint = digest([command.sender, command.receiver, ledger.book.code, text(amount)])
    known = run.keys.get(command.key) if command.key is not None else None
    if known is not None:
        if known[0] != fingerprint:
            raise Rejected(Code.CONFLICT, kind="key_reused", key=command.key)
        return Outcome(answer=known[1])
    if command.key is not None and len(run.keys) >= KEYS_MOST:
        raise Rejected(Code.CONFLICT, kind="keys_exhausted", limit=KEYS_MOST)
    event, answer = _paid(run, command, ledger, amount)
    if command.key is not None:
        run.keys[command.key] = (fingerprint, answer)
    settle(ledger)
    return Outcome(event, answer)


def _payable(run: RunState, command: Pay) -> tuple[EquivalentLedger, int]:
    _alive(run)
    ledger = _ledger(run, command.equivalent)
    index = run.network.people.index
    for name in (command.sender, command.receiver):
        if name not in index:
            raise Rejected(Code.PARTICIPANT_NOT_FOUND, participant=name)
    if command.sender == command.receiver:
        raise Rejected(Code.INVALID_INPUT, kind="pays_itself", participant=command.sender)
    amount = _amount(command.amount)
    if amount <= 0:
        raise Rejected(Code.INVALID_INPUT, kind="amount_not_positive", amount=command.amount)
    return ledger, amount


def _paid(run: RunState, command: Pay, ledger: EquivalentLedger, amount: int) -> tuple[tuple[Event, ...], Json]:
    index, code = run.network.people.index, ledger.book.code
    ends = index[command.sender], index[command.receiver]
    run.by_hand += 1
    content = command.sender, command.receiver, code, text(amount)
    tx_id = tx_name(run.seed, run.tick, f"hand{run.by_hand}", content)
    names = ("from", "to", "equivalent", "amount")
    answer: dict[str, Json] = {"tx_id": tx_id, **dict(zip(names, content, strict=True))}
    result = ledger.processor.pay(*ends, amount)
    if isinstance(result, Drifted):
        result = Refused(Code.INTERNAL_ERROR, {"kind": "position_check"})
    if isinstance(result, Refused):
        run.counters.count(result.code)
        ledger.hops.failed(result.hops, result.code, result.closed)
        failure = Failure(result.code.value, result.details)
        event = TxFailed(run.tick, None, code, command.sender, command.receiver, text(amount), failure)
        return (event,), {**answer, "status": "ABORTED", "routes": [], "error": msgspec.to_builtins(failure)}
    run.counters.count(None)
    ledger.hops.made(event_parts.hops_of(result))
    ledger.expect(*ends, amount)
    made = payment_event(run, ledger, result, seq=None, tx_id=tx_id, ends=ends, amount=amount)
    return (made,), {**answer, "status": "COMMITTED", "routes": event_parts.routes_json(made.routes)}


def settle(ledger: EquivalentLedger) -> None:
    """Exclude manual changes from the audit of the next tick."""
    for _ in ledger.drifts():
        pass
    ledger.settle()


def clear(run: RunState, command: Clear) -> Outcome[Event]:
    _alive(run)
    codes = list(run.network.ledgers) if command.equivalent is None else [_ledger(run, command.equivalent).book.code]
    with nullcontext() if command.dry_run else saving.undone_if_it_fails(run):
        return _cleared(run, command, codes)


def _cleared(run: RunState, command: Clear, codes: list[str]) -> Outcome[Event]:
    events: list[Event] = []
    cycles: list[Json] = []
    total = count = 0
    for code in codes:
        ledger, settings = run.network.ledgers[code], run.settings
        if command.dry_run:
            limits = (
                settings.clearing_max_cycles_per_call,
                settings.clearing_time_budget_ms * settings.work_units_per_ms,
            )
            cleared = find_and_clear(ledger.book, command.max_depth, *limits, dry_run=True)
        else:
            result = call(run, ledger, Why.MANUAL, command.max_depth, settings.clearing_time_budget_ms)
            cleared = result.cleared
            events += result.events
            settle(ledger)
        cycles += [_cycle(ledger.book, cycle) for cycle in cleared.cycles]
        total += cleared.amount
        count += len(cleared.cycles)
    answer: Json = {"cleared_cycles": count, "total_cleared_amount": text(total), "cycles": cycles}
    return Outcome(tuple(events), answer)


def _cycle(book: Book, cycle: Cycle) -> Json:
    edges = [msgspec.to_builtins(edge) for edge in event_parts.highlighted_edges(book, cycle.hops)]
    return {"equivalent": book.code, "cleared_amount": text(cycle.amount), "edges": edges}


def open_line(run: RunState, command: OpenLine) -> Outcome[Event]:
    ledger = _line_ledger(run, command)
    limit = _limit(command.limit)
    book, h = ledger.book, ledger.book.line(command.creditor, command.debtor)
    if h is not None and book.status[h] is not LineStatus.CLOSED:
        raise Rejected(Code.CONFLICT, kind="line_exists", **_ends(command), equivalent=book.code)
    if h is None:
        run.network.extend((), [Trustline(book.code, command.creditor, command.debtor, limit)])
        ledger = run.network.ledgers[book.code]
        h = ledger.book.line(command.creditor, command.debtor)
    else:
        ledger.reopen(h, limit)
    assert h is not None
    payload = TopologyPayload(added_edges=(event_parts.line_view(ledger.book, h),))
    settle(ledger)
    return _changed(run, ledger, h, payload, "line_opened")


def set_limit(run: RunState, command: SetLimit) -> Outcome[Event]:
    ledger = _line_ledger(run, command)
    limit, h = _limit(command.limit), _known_line(ledger.book, command)
    if limit < ledger.book.debt(h):
        raise Rejected(Code.TRUSTLINE_LIMIT_EXCEEDED, limit=text(limit), debt=text(ledger.book.debt(h)))
    ledger.book.set_limit(h, limit)
    settle(ledger)
    patch = TopologyPayload(edge_patch=(event_parts.edge_patch(ledger.book, h),))
    return _changed(run, ledger, h, patch, "limit_set")


def close_line(run: RunState, command: CloseLine) -> Outcome[Event]:
    ledger = _line_ledger(run, command)
    h = _known_line(ledger.book, command)
    if ledger.book.owed[h]:
        raise Rejected(Code.TRUSTLINE_REJECTED, debt=text(abs(ledger.book.owed[h])))
    ledger.book.set_status([h], LineStatus.CLOSED)
    settle(ledger)
    payload = TopologyPayload(removed_edges=(event_parts.line_view(ledger.book, h),))
    return _changed(run, ledger, h, payload, "line_closed")


def freeze(run: RunState, command: Freeze) -> Outcome[Event]:
    people = run.network.people
    _alive(run)
    if command.participant not in people.index:
        raise Rejected(Code.PARTICIPANT_NOT_FOUND, participant=command.participant)
    if not people.active[people.index[command.participant]]:
        raise Rejected(Code.CONFLICT, kind="participant_not_active", participant=command.participant)
    events: list[Event] = []
    for code, lines in run.network.freeze(command.participant, command.lines).items():
        ledger = run.network.ledgers[code]
        frozen = tuple(event_parts.line_view(ledger.book, h) for h in lines)
        payload = TopologyPayload(frozen_nodes=(command.participant,), frozen_edges=frozen)
        events.append(TopologyChanged(run.tick, code, payload, "participant_frozen"))
        settle(ledger)
    return Outcome(tuple(events), {"participant": command.participant, "status": "suspended"})


def _changed(run: RunState, ledger: EquivalentLedger, h: int, payload: TopologyPayload, reason: str) -> Outcome[Event]:
    book = ledger.book
    answer = {**msgspec.to_builtins(event_parts.edge_patch(book, h)), "status": book.status[h].value}
    return Outcome((TopologyChanged(run.tick, book.code, payload, reason),), answer)


def _alive(run: RunState) -> None:
    if not run.active:
        raise Rejected("run_conflict", kind="run_ended", state=run.state_word)
    if run.config.engine == "external":
        raise Rejected("run_conflict", kind="outside_ledger")


def _ledger(run: RunState, equivalent: str) -> EquivalentLedger:
    code = equivalent.strip().upper()
    if code not in run.network.ledgers:
        known: list[Json] = list(run.network.ledgers)
        raise Rejected(Code.EQUIVALENT_NOT_FOUND, equivalent=equivalent, known=known)
    return run.network.ledgers[code]


def _line_ledger(run: RunState, command: OpenLine | SetLimit | CloseLine) -> EquivalentLedger:
    _alive(run)
    ledger = _ledger(run, command.equivalent)
    for name in (command.creditor, command.debtor):
        if name not in run.network.people.index:
            raise Rejected(Code.PARTICIPANT_NOT_FOUND, participant=name)
    if command.creditor == command.debtor:
        raise Rejected(Code.INVALID_INPUT, kind="trusts_itself", participant=command.creditor)
    return ledger


def _ends(command: OpenLine | SetLimit | CloseLine) -> dict[str, Json]:
    return {"from": command.creditor, "to": command.debtor}


def _known_line(book: Book, command: SetLimit | CloseLine) -> int:
    h = book.line(command.creditor, command.debtor)
    if h is None or book.status[h] is LineStatus.CLOSED:
        raise Rejected(Code.TRUSTLINE_NOT_ACTIVE, kind="no_line", **_ends(command), equivalent=book.code)
    return h


def _amount(given: str) -> int:
    try:
        return atoms(given)
    except InvalidAmount as refused:
        raise Rejected(Code.INVALID_INPUT, **refused.details) from None


def _limit(given: str) -> int:
    limit = _amount(given)
    if limit < 0:
        raise Rejected(Code.INVALID_INPUT, kind="negative_limit", limit=given)
    return limit
