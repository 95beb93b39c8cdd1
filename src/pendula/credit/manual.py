"""What is done by hand: one payment, one clearing, lines opened, changed and closed, participants frozen.

A wish that makes no sense is refused and leaves no trace. A payment that finds no way is not refused: it was tried, it
is counted and told like a planned one.
"""

import msgspec

from pendula.credit import saving
from pendula.credit.commands import Clear, CloseLine, Freeze, OpenLine, Pay, SetLimit
from pendula.credit.events import Event, Failure, TopologyChanged, TopologyPayload, TxFailed
from pendula.credit.ids import tx_name
from pendula.credit.ledger.book import Book
from pendula.credit.ledger.cycles import Cycle, find_and_clear
from pendula.credit.ledger.payment import Drifted, Refused
from pendula.credit.model import Code, LineStatus, Trustline
from pendula.credit.money import InvalidAmount, atoms, text
from pendula.credit.state.clearing_policy import Why
from pendula.credit.state.network import EquivalentDesk
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import event_parts
from pendula.credit.tick.clearing import call
from pendula.credit.tick.payments import updated
from pendula.kernel.canonical import Json, digest
from pendula.kernel.engine import Outcome, Refusal

KEYS_MOST = 100_000


class Unfit(Exception):
    """A wish that cannot be granted; becomes a refusal."""

    def __init__(self, code: Code | str, **facts: Json) -> None:
        super().__init__(code)
        self.refusal = Refusal(str(code), facts)


def pay(run: RunState, command: Pay) -> Outcome[Event]:
    """One payment. With a key it happens at most once; the same key again gives the same answer."""
    try:
        desk, amount = _payable(run, command)
        fingerprint = digest([command.sender, command.receiver, desk.book.code, text(amount)])
        known = run.keys.get(command.key) if command.key is not None else None
        if known is not None:
            if known[0] != fingerprint:
                raise Unfit(Code.CONFLICT, kind="key_reused", key=command.key)
            return Outcome(answer=known[1])
        if command.key is not None and len(run.keys) >= KEYS_MOST:
            raise Unfit(Code.CONFLICT, kind="keys_exhausted", limit=KEYS_MOST)
    except Unfit as unfit:
        return Outcome(refusal=unfit.refusal)
    event, answer = _paid(run, command, desk, amount)
    if command.key is not None:
        run.keys[command.key] = (fingerprint, answer)
    settle(desk)
    return Outcome(event, answer)


def _payable(run: RunState, command: Pay) -> tuple[EquivalentDesk, int]:
    _alive(run)
    desk = _desk(run, command.equivalent)
    index = run.network.people.index
    for name in (command.sender, command.receiver):
        if name not in index:
            raise Unfit(Code.PARTICIPANT_NOT_FOUND, participant=name)
    if command.sender == command.receiver:
        raise Unfit(Code.INVALID_INPUT, kind="pays_itself", participant=command.sender)
    amount = _amount(command.amount)
    if amount <= 0:
        raise Unfit(Code.INVALID_INPUT, kind="amount_not_positive", amount=command.amount)
    return desk, amount


def _paid(run: RunState, command: Pay, desk: EquivalentDesk, amount: int) -> tuple[tuple[Event, ...], Json]:
    index, code = run.network.people.index, desk.book.code
    ends = index[command.sender], index[command.receiver]
    run.by_hand += 1
    content = command.sender, command.receiver, code, text(amount)
    tx_id = tx_name(run.seed, run.tick, f"hand{run.by_hand}", content)
    answer: dict[str, Json] = {
        "tx_id": tx_id,
        "from": command.sender,
        "to": command.receiver,
        "equivalent": code,
        "amount": text(amount),
    }
    found = desk.cashier.pay(*ends, amount)
    if isinstance(found, Drifted):
        found = Refused(Code.INTERNAL_ERROR, {"kind": "position_check"})
    if isinstance(found, Refused):
        run.counters.count(found.code)
        desk.hops.failed(found.hops, found.code, found.closed)
        failure = Failure(found.code.value, found.details)
        event = TxFailed(
            tick_index=run.tick,
            seq=None,
            equivalent=code,
            sender=command.sender,
            receiver=command.receiver,
            amount=text(amount),
            error=failure,
        )
        return (event,), {**answer, "status": "ABORTED", "routes": [], "error": msgspec.to_builtins(failure)}
    run.counters.count(None)
    desk.hops.made(event_parts.hops_of(found))
    desk.expect(*ends, amount)
    made = updated(run, desk, found, seq=None, tx_id=tx_id, ends=ends, amount=amount)
    return (made,), {**answer, "status": "COMMITTED", "routes": event_parts.routes_json(made.routes)}


def settle(desk: EquivalentDesk) -> None:
    """What was done between ticks is not a drift of the next one."""
    for _ in desk.drifts():
        pass
    desk.settle()


def clear(run: RunState, command: Clear) -> Outcome[Event]:
    try:
        _alive(run)
        codes = list(run.network.desks) if command.equivalent is None else [_desk(run, command.equivalent).book.code]
    except Unfit as unfit:
        return Outcome(refusal=unfit.refusal)
    before = None if command.dry_run else saving.mark(run)
    try:
        return _cleared(run, command, codes)
    except Exception:
        # A solver that is not ours has failed: the run stays where it was.
        if before is not None:
            saving.load(run, before)
        raise


def _cleared(run: RunState, command: Clear, codes: list[str]) -> Outcome[Event]:
    events: list[Event] = []
    cycles: list[Json] = []
    total = count = 0
    for code in codes:
        desk, settings = run.network.desks[code], run.settings
        if command.dry_run:
            limits = (
                settings.clearing_max_cycles_per_call,
                settings.clearing_time_budget_ms * settings.work_units_per_ms,
            )
            cleared = find_and_clear(desk.book, command.max_depth, *limits, dry_run=True)
        else:
            result = call(run, desk, Why.MANUAL, command.max_depth, settings.clearing_time_budget_ms)
            cleared = result.cleared
            events += result.events
            settle(desk)
        cycles += [_cycle(desk.book, cycle) for cycle in cleared.cycles]
        total += cleared.amount
        count += len(cleared.cycles)
    answer: Json = {"cleared_cycles": count, "total_cleared_amount": text(total), "cycles": cycles}
    return Outcome(tuple(events), answer)


def _cycle(book: Book, cycle: Cycle) -> Json:
    edges = [msgspec.to_builtins(edge) for edge in event_parts.lit(book, cycle.hops)]
    return {"equivalent": book.code, "cleared_amount": text(cycle.amount), "edges": edges}


def open_line(run: RunState, command: OpenLine) -> Outcome[Event]:
    try:
        desk = _line_desk(run, command)
        limit = _limit(command.limit)
        book, h = desk.book, desk.book.line(command.creditor, command.debtor)
        if h is not None and book.status[h] is not LineStatus.CLOSED:
            raise Unfit(Code.CONFLICT, kind="line_exists", **_ends(command), equivalent=book.code)
    except Unfit as unfit:
        return Outcome(refusal=unfit.refusal)
    if h is None:
        run.network.extend((), [Trustline(book.code, command.creditor, command.debtor, limit)])
        desk = run.network.desks[book.code]
        h = desk.book.line(command.creditor, command.debtor)
    else:
        desk.reopen(h, limit)
    assert h is not None
    payload = TopologyPayload(added_edges=(event_parts.line_view(desk.book, h),))
    settle(desk)
    return _changed(run, desk, h, payload, "line_opened")


def set_limit(run: RunState, command: SetLimit) -> Outcome[Event]:
    try:
        desk = _line_desk(run, command)
        limit, h = _limit(command.limit), _known_line(desk.book, command)
        if limit < desk.book.debt(h):
            raise Unfit(Code.TRUSTLINE_LIMIT_EXCEEDED, limit=text(limit), debt=text(desk.book.debt(h)))
    except Unfit as unfit:
        return Outcome(refusal=unfit.refusal)
    desk.book.set_limit(h, limit)
    settle(desk)
    patch = TopologyPayload(edge_patch=(event_parts.edge_patch(desk.book, h),))
    return _changed(run, desk, h, patch, "limit_set")


def close_line(run: RunState, command: CloseLine) -> Outcome[Event]:
    try:
        desk = _line_desk(run, command)
        h = _known_line(desk.book, command)
        if desk.book.owed[h]:
            raise Unfit(Code.TRUSTLINE_REJECTED, debt=text(abs(desk.book.owed[h])))
    except Unfit as unfit:
        return Outcome(refusal=unfit.refusal)
    desk.book.set_status([h], LineStatus.CLOSED)
    settle(desk)
    payload = TopologyPayload(removed_edges=(event_parts.line_view(desk.book, h),))
    return _changed(run, desk, h, payload, "line_closed")


def freeze(run: RunState, command: Freeze) -> Outcome[Event]:
    people = run.network.people
    try:
        _alive(run)
        if command.participant not in people.index:
            raise Unfit(Code.PARTICIPANT_NOT_FOUND, participant=command.participant)
        if not people.active[people.index[command.participant]]:
            raise Unfit(Code.CONFLICT, kind="participant_not_active", participant=command.participant)
    except Unfit as unfit:
        return Outcome(refusal=unfit.refusal)
    events: list[Event] = []
    for code, lines in run.network.freeze(command.participant, command.lines).items():
        desk = run.network.desks[code]
        frozen = tuple(event_parts.line_view(desk.book, h) for h in lines)
        payload = TopologyPayload(frozen_nodes=(command.participant,), frozen_edges=frozen)
        events.append(TopologyChanged(run.tick, code, payload, "participant_frozen"))
        settle(desk)
    return Outcome(tuple(events), {"participant": command.participant, "status": "suspended"})


def _changed(run: RunState, desk: EquivalentDesk, h: int, payload: TopologyPayload, reason: str) -> Outcome[Event]:
    book = desk.book
    answer = {**msgspec.to_builtins(event_parts.edge_patch(book, h)), "status": book.status[h].value}
    return Outcome((TopologyChanged(run.tick, book.code, payload, reason),), answer)


def _alive(run: RunState) -> None:
    if not run.active:
        raise Unfit("run_conflict", kind="run_ended", state=run.state_word)
    if run.config.engine == "external":
        raise Unfit("run_conflict", kind="outside_ledger")


def _desk(run: RunState, equivalent: str) -> EquivalentDesk:
    code = equivalent.strip().upper()
    if code not in run.network.desks:
        known: list[Json] = list(run.network.desks)
        raise Unfit(Code.EQUIVALENT_NOT_FOUND, equivalent=equivalent, known=known)
    return run.network.desks[code]


def _line_desk(run: RunState, command: OpenLine | SetLimit | CloseLine) -> EquivalentDesk:
    _alive(run)
    desk = _desk(run, command.equivalent)
    for name in (command.creditor, command.debtor):
        if name not in run.network.people.index:
            raise Unfit(Code.PARTICIPANT_NOT_FOUND, participant=name)
    if command.creditor == command.debtor:
        raise Unfit(Code.INVALID_INPUT, kind="trusts_itself", participant=command.creditor)
    return desk


def _ends(command: OpenLine | SetLimit | CloseLine) -> dict[str, Json]:
    return {"from": command.creditor, "to": command.debtor}


def _known_line(book: Book, command: SetLimit | CloseLine) -> int:
    h = book.line(command.creditor, command.debtor)
    if h is None or book.status[h] is LineStatus.CLOSED:
        raise Unfit(Code.TRUSTLINE_NOT_ACTIVE, kind="no_line", **_ends(command), equivalent=book.code)
    return h


def _amount(given: str) -> int:
    try:
        return atoms(given)
    except InvalidAmount as refused:
        raise Unfit(Code.INVALID_INPUT, **refused.details) from None


def _limit(given: str) -> int:
    limit = _amount(given)
    if limit < 0:
        raise Unfit(Code.INVALID_INPUT, kind="negative_limit", limit=given)
    return limit
