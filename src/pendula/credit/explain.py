"""Answers of `why`: a payment, a line, clearing, the state of a run."""

from collections.abc import Sequence

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.payment import Refused
from pendula.credit.ledger.routing import FoundRoutes
from pendula.credit.money import InvalidAmount, atoms, text
from pendula.credit.sentences import sentence_of
from pendula.credit.settings import ClearingPolicy
from pendula.credit.state.run_state import RunState
from pendula.credit.tick.event_parts import route_views, routes_json
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason

QUESTIONS = (
    'A run answers {"from", "to", "equivalent", "amount"}, {"line": {"from", "to", "equivalent"}}, '
    '{"clearing": code} and {"run": true}.'
)


def why(run: RunState, question: Json) -> Reason:
    match question:
        case {"from": str(sender), "to": str(receiver), "equivalent": str(code), "amount": str(amount)}:
            return _payment(run, sender, receiver, code.strip().upper(), amount)
        case {"line": {"from": str(creditor), "to": str(debtor), "equivalent": str(code)}}:
            return _line(run, creditor, debtor, code.strip().upper())
        case {"clearing": str(code)}:
            return _clearing(run, code.strip().upper())
        case {"run": True}:
            return _run(run)
    return Reason("unknown_question", QUESTIONS, {"asked": question})


def _unknown(noun: str, name: str) -> Reason:
    return Reason(f"unknown_{noun}", f"There is no {noun} {name!r}.", {noun: name})


def _payment(run: RunState, sender: str, receiver: str, code: str, amount: str) -> Reason:
    """Whether this payment would succeed now, and over which routes; nothing changes."""
    ledger, index = run.network.ledgers.get(code), run.network.people.index
    if ledger is None:
        return _unknown("equivalent", code)
    for name in (sender, receiver):
        if name not in index:
            return _unknown("participant", name)
    try:
        wanted = atoms(amount)
    except InvalidAmount as refused:
        return Reason("invalid_amount", refused.message + ".", {"amount": amount[:200]})
    if wanted <= 0 or sender == receiver:
        return Reason("invalid_payment", "A payment is above 0 and between two participants.", {"amount": amount})
    ends = index[sender], index[receiver]
    payment = ledger.processor.find_routes(*ends, wanted)
    facts: dict[str, Json] = {"from": sender, "to": receiver, "equivalent": code, "amount": text(wanted)}
    if isinstance(payment, FoundRoutes) and payment.amount == wanted:
        routes = routes_json(route_views(ledger.book, payment.routes))
        sentence = f"{sender} can pay {text(wanted)} to {receiver}, over {_routes(len(payment.routes))}."
        return Reason("payable", sentence, {**facts, "routes": routes})
    refused_: Refused = payment if isinstance(payment, Refused) else ledger.processor.refusal(*ends, wanted, payment)
    sentence = sentence_of(refused_.code.value, {**facts, **refused_.details})
    return Reason(refused_.code.value, sentence + ".", facts, _bottleneck(refused_))


def _routes(count: int) -> str:
    return "one route" if count == 1 else f"{count} routes"


def _bottleneck(refused: Refused) -> tuple[Reason, ...]:
    facts = refused.details.get("bottleneck")
    match facts:
        case {"from": str(debtor), "to": str(creditor), "available": str(left), "mediates": bool(mediates)}:
            cures = _cures([facts, *also] if isinstance(also := refused.details.get("and_also", []), list) else [facts])
            sentence = cures or f"On the shortest chain, {debtor} can pay {creditor} {left} more."
            if not mediates and not cures:
                sentence += f" The line lets no payments pass through {creditor}."
            return (Reason("bottleneck", sentence, {"hop": facts}),)
    return ()


def _cures(changes: Sequence[Json]) -> str:
    """What would let the payment pass; empty if no cure was searched for."""
    conditions = []
    for change in changes:
        match change:
            case {"from": str(debtor), "to": str(creditor), "change": "raise_limit", "by": str(by)}:
                conditions.append(f"{creditor} trusted {debtor} with {by} more")
            case {"from": str(debtor), "to": str(creditor), "change": "allow_mediation"}:
                conditions.append(f"the line of {creditor} to {debtor} let payments pass through {creditor}")
            case {"from": str(debtor), "to": str(creditor), "change": "unblock"}:
                conditions.append(f"the line of {creditor} to {debtor} blocked no participant on the way")
    return f"It would pass if {', and '.join(conditions)}." if conditions else ""


def _line(run: RunState, creditor: str, debtor: str, code: str) -> Reason:
    ledger = run.network.ledgers.get(code)
    if ledger is None:
        return _unknown("equivalent", code)
    book: Book = ledger.book
    h = book.line(creditor, debtor)
    if h is None:
        return _unknown("line", f"{creditor} to {debtor}")
    trust, active = ledger.trust, book.people.active
    facts: dict[str, Json] = {
        "limit": text(book.limit[h]),
        "original_limit": text(trust.original[h]),
        "owed": text(book.debt(h)),
        "available": text(max(0, book.capacity[h])),
        "status": book.status[h].value,
        "clearing_count": trust.clearing_count.get(h, 0),
        "last_clearing_tick": trust.last_clearing.get(h, -1),
        "cleared_volume": text(trust.cleared_volume.get(h, 0)),
        "ends_active": active[book.creditor[h]] and active[book.debtor[h]],
    }
    sentence = f"{debtor} owes {creditor} {facts['owed']} of at most {facts['limit']}."
    return Reason("line_is_live" if book.live(h) else "line_is_not_live", sentence, facts)


def _clearing(run: RunState, code: str) -> Reason:
    if code not in run.network.ledgers:
        return _unknown("equivalent", code)
    settings = run.settings
    facts: dict[str, Json] = {"policy": settings.clearing_policy.value, "last": run.last_clearing.get(code)}
    if not settings.clearing_enabled:
        return Reason("clearing_disabled", "Clearing is switched off.", facts)
    if settings.clearing_policy is ClearingPolicy.STATIC:
        every = settings.clearing_every_n_ticks
        sentence = f"Clearing runs every {every} ticks." if every > 0 else "Clearing has no cadence."
        return Reason("static_cadence", sentence, {**facts, "every_n_ticks": every})
    policy = run.policies[code]
    rate = policy.rate()
    facts |= {
        "rate": [rate.numerator, rate.denominator],
        "window": len(policy.window),
        "active": policy.active,
        "last_call": policy.last_call,
        "zero_streak": policy.zero_streak,
    }
    word = "is" if policy.active else "is not"
    sentence = f"{rate.numerator} of {rate.denominator} payments found no capacity; the policy {word} active."
    return Reason("adaptive_policy", sentence, facts)


def _run(run: RunState) -> Reason:
    facts: dict[str, Json] = {"state": run.state_word, "tick_index": run.tick, "stop_reason": run.stop_reason}
    if run.last_error is not None:
        return Reason(run.last_error.code, run.last_error.message + ".", {**facts, **run.last_error.details})
    return Reason(f"run_{run.state_word}", f"The run is {run.state_word} before tick {run.tick}.", facts)
