"""Sentences of codes and facts, rendered where they are shown; no journal, state or digest contains one.

Where one code has several meanings, the fact `kind` tells them apart: a sentence belongs to a kind, else to a code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pendula.kernel.canonical import Json
from pendula.kernel.wording import shown

Facts = Mapping[str, Any]

# Why a call of the payment service brought no result: the fact `cause` of `engine`.
CAUSES: Mapping[str, str] = {
    "timeout": "no answer in time",
    "connection_refused": "connection refused",
    "unknown_host": "the host name has no address",
    "invalid_host": "the host name is not valid",
    "untrusted_certificate": "the certificate is not trusted",
    "no_tls": "no TLS connection",
    "connection_lost": "the connection broke",
    "not_http": "the answer is not HTTP",
}

# Why only the default of a setting is accepted.
WITHOUT_EFFECT: Mapping[str, str] = {
    "one_step": "a payment is prepared and committed in one step, and an outside one has a limit for all of it",
    "whole_ticks": "a tick under way is brought to its end, so that a run repeats",
}


def _service(sentence: str) -> Callable[[Facts], str]:
    """A sentence with the cause and the address of the call, if they are known."""

    def render(facts: Facts) -> str:
        engine = facts.get("engine")
        return f"{sentence}: {cause_text(engine)} ({engine['url']})" if engine else sentence

    return render


def cause_text(engine: Facts) -> str:
    if engine["cause"] == "no_result":
        return f"HTTP {engine['status']} without a result"
    return CAUSES.get(engine["cause"]) or f"the call failed ({engine['cause']})"


def _no_capacity(facts: Facts) -> str:
    changes = [facts["bottleneck"], *facts.get("and_also", ())] if "bottleneck" in facts else []
    closed = dict.fromkeys((change["to"], change["from"]) for change in changes if change["change"] != "raise_limit")
    lines = [f"the line of {creditor} to {debtor} does not let this payment pass" for creditor, debtor in closed]
    return f"Only {facts['found']} of {facts['amount']} found a route" + ("; " if lines else "") + ", ".join(lines)


def _unknown_participant(facts: Facts) -> str:
    if "participant" in facts:
        return f"There is no participant {facts['participant']!r}"
    return f"The sender {facts['from']!r} or the receiver {facts['to']!r} does not exist"


def _failed_ticks(facts: Facts) -> str:
    if "failed_ticks" in facts:
        return f"{facts['failed_ticks']} ticks in a row failed; {facts['limit']} end the run"
    return "The ticks of the run fail; see the server log"


def _missing_extra(facts: Facts) -> str:
    modules, extra = " and ".join(facts["modules"]), facts["extra"]
    return f'Optimal clearing needs {modules}; install with: pip install "pendula[{extra}]"'


def allowed_values(facts: Facts) -> str:
    """What a setting accepts, from its `type` and its range or words."""
    match facts["type"]:
        case "integer":
            return f"an integer from {facts['least']} to {facts['most']}"
        case "decimal":
            return f"a decimal number from {facts['least']} to {facts['most']}"
        case "switch":
            return "on or off"
        case "amount":
            return "an amount, or none"
        case _:
            words: Sequence[str] = facts["words"]
            return " or ".join(words)


SENTENCES: Mapping[str, Callable[[Facts], str]] = {
    # Payments
    "EQUIVALENT_NOT_FOUND": lambda facts: f"There is no equivalent {facts['equivalent']!r}",
    "PARTICIPANT_NOT_FOUND": _unknown_participant,
    "INVALID_INPUT": lambda _: "A payment needs two participants and a positive amount in whole cents",
    "ROUTING_NO_ROUTE": lambda facts: (
        f"No chain of at most {facts['max_hops']} active lines leads from {facts['from']} to {facts['to']}"
    ),
    "ROUTING_NO_CAPACITY": _no_capacity,
    "narrow_hop": lambda _: "A hop has too little capacity for all routes together",
    "position_check": lambda _: "The payment moved other positions than it should; it was taken back",
    "route_search_limit": lambda facts: f"The search for routes looked at {facts['work_limit']} hops and had not ended",
    # Payments of an outside service
    "service_timeout": _service("The payment service did not answer in time"),
    "service_failed": _service("The payment service failed"),
    "service_refused": _service("The payment service refused"),
    "invalid_service_answer": _service("The payment service gave an invalid answer"),
    "unknown_line": lambda facts: (
        f"The service paid over a line of {facts['line']['to']} to {facts['line']['from']}, which the run does not have"
    ),
    "line_too_narrow": lambda facts: (
        f"The service moved {facts['expected']} over the line of {facts['line']['to']} to {facts['line']['from']}, "
        f"which has {facts['found']} left in the run"
    ),
    "route_amount": lambda facts: f"A route of the service has no valid amount: {facts['value']!r}",
    "route_ends": lambda facts: (
        f"A route of the service carries nothing or does not lead from {facts['from']} to {facts['to']}"
    ),
    "route_form": lambda _: "A route of the service lacks a path of participants or an amount",
    "route_total": lambda facts: f"The routes of the service carry {facts['found']} instead of {facts['expected']}",
    # Errors that end a run
    "PAYMENT_TIMEOUT": lambda facts: (
        f"{facts['timeouts']} payments of one tick timed out; {facts['limit']} end the run"
    ),
    "REAL_MODE_TOO_MANY_ERRORS": lambda facts: (
        f"There were {facts['errors']} technical errors; {facts['limit']} end the run"
    ),
    "INTERNAL_ERROR": _failed_ticks,
    "SERVER_RESTARTED": lambda _: "The server was restarted while the run was active; it can be continued as a new run",
    "SERVER_RESTARTED_DISK_FULL": lambda _: "The server was restarted while the run was active, and its disk is full",
    "JOURNAL_UNREADABLE": lambda _: "The server was restarted while the run was active, and its journal cannot be read",
    "UNCLEAN_END": lambda _: "The run could not be ended cleanly",
    "NOT_RECORDED": lambda _: "The run could not be recorded any further",
    "disk_low": lambda _: "The disk of the server is full or nearly full; the run can go on when there is space",
    "journal_full": lambda _: "The journal of the run is as long as it may be (journal_bytes)",
    # Refused commands
    "key_reused": lambda facts: f"The key {facts['key']!r} was used for another payment",
    "keys_exhausted": lambda facts: f"A run stores at most {facts['limit']} keys; pay without a key, or in a new run",
    "pays_itself": lambda facts: f"{facts['participant']!r} cannot pay itself",
    "trusts_itself": lambda facts: f"{facts['participant']!r} cannot trust itself",
    "amount_not_positive": lambda facts: f"The amount {facts['amount']} is not above 0",
    "negative_limit": lambda facts: f"The limit {facts['limit']} is below 0",
    "line_exists": lambda facts: f"{facts['from']!r} trusts {facts['to']!r} already",
    "no_line": lambda facts: f"{facts['from']!r} has no line to {facts['to']!r}",
    "TRUSTLINE_LIMIT_EXCEEDED": lambda facts: f"The limit {facts['limit']} is below the debt of {facts['debt']}",
    "TRUSTLINE_REJECTED": lambda facts: f"There is a debt of {facts['debt']} between the two",
    "participant_not_active": lambda facts: f"{facts['participant']!r} is not active",
    "run_not_running": lambda facts: f"The run is {facts['state']}; only a running run has ticks",
    "run_ended": lambda facts: f"The run is {facts['state']}; only a run that is running or paused can be changed",
    "outside_ledger": lambda _: "The ledger of this run is that of an outside service; change it there",
    # Amounts
    "not_an_amount": lambda facts: f"{facts['amount']} is not an amount; give a Decimal, a text or a whole number",
    "not_a_number": lambda facts: f"{facts['amount'][:50]!r} is not a decimal number",
    "exponent_out_of_range": lambda facts: f"{shown(facts['amount'])} has an exponent out of range",
    "not_finite": lambda facts: f"{facts['amount']} is not a finite number",
    "too_many_digits": lambda facts: f"{facts['amount']} has more than 12 digits before the point",
    "too_fine": lambda facts: f"{facts['amount']} has more than 8 digits after the point",
    # Settings
    "unknown_setting": lambda facts: f"No setting is called {facts['variable']!r}",
    "out_of_range": lambda facts: f"{facts['variable']} is {shown(facts['value'])}; allowed is {allowed_values(facts)}",
    "without_effect": lambda facts: (
        f"{facts['variable']} is {facts['value']!r}, which would have no effect: {WITHOUT_EFFECT[facts['reason']]}; "
        f"allowed is {facts['default']}"
    ),
    "crossed_settings": lambda facts: (
        f"{facts['variable']} is {facts['value']} and {facts['other']} is {facts['other_value']}; "
        "the first must not be higher"
    ),
    "fixed_tick_length": lambda _: "The length of a tick cannot change within a run",
    # Answers of a solver
    "missing_extra": _missing_extra,
    "amounts_too_large": lambda facts: (
        f"The debts are too large for optimal clearing: one participant owes or is owed {facts['value']} times "
        f"{facts['unit']} atoms, the largest unit that all debts share; allowed are {facts['allowed']}"
    ),
    "no_flows": lambda _: "The answer to a question for optimal clearing has no flows",
    "number_of_flows": lambda facts: f"There are {facts['debts']} debts and {facts['flows']} flows",
    "flow_out_of_range": lambda facts: (
        f"A flow of {facts['flow']} over the debt of {facts['debtor']} to {facts['creditor']}; "
        f"allowed is 0 to {facts['amount']}"
    ),
    "position_changed": lambda facts: f"The position of {facts['participant']} would change by {facts['change']}",
    "not_the_largest": lambda _: "Another circulation over these debts has a larger volume",
    "solver_failed": lambda facts: (
        f"{facts['solver']} found no circulation, though no flow at all is one: {facts['status']}"
    ),
}

# Notes that become warnings; notes of the events of a scenario have no sentence.
NOTES: Mapping[str, Callable[[int, Facts], str]] = {
    "profile_silenced": lambda _, facts: (
        f"{facts['profile']} never pays in {facts['equivalent']}: "
        f"its least amount {facts['min']} is above the cap of {facts['cap']}."
    ),
    "all_rejected": lambda tick, facts: (
        f"Every payment was refused in {facts['ticks']} ticks in a row, up to tick {tick}."
    ),
    "tick_failed": lambda _, facts: f"The payment service lost tick {facts['tick_index']}; it was taken back.",
    "behaviour_answered_badly": lambda tick, facts: (
        f"At tick {tick} the behaviour {facts['behaviour']} gave wrong answers, {facts['invalid']} in all."
    ),
    "optimal_clearing_failed": lambda tick, facts: (
        f"At tick {tick} the solver had no answer for {facts['equivalent']}: "
        f"{sentence_of(facts['code'], facts['facts'])}"
    ),
    "nothing_cleared": lambda tick, facts: (
        f"At tick {tick} nothing was cleared in {facts['equivalent']}; the search stopped with {facts['stopped']}."
    ),
    "outside_ledger": lambda *_: (
        "The ledger is that of an outside service: no trust drifts and nothing is injected here."
    ),
    "clearing_failed": lambda tick, facts: (
        f"At tick {tick} the payment service cleared nothing in {facts['equivalent']}: {facts['code']}."
    ),
    "inject": lambda tick, facts: f"The injection {facts['event_index']}, due at tick {tick}: {_injected(facts)}.",
}
IGNORED: Mapping[str, str] = {
    "inject_disabled": "injections are switched off (SIMULATOR_REAL_ENABLE_INJECT)",
    "outside_ledger": "the ledger of this run is that of an outside service",
}


def _injected(facts: Facts) -> str:
    if "ignored" in facts:
        return IGNORED[facts["ignored"]]
    return f"{facts['applied']} effects applied, {facts['skipped']} skipped, {facts['total']} in debts"


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence of a refusal, a failed payment or the error of a run; the code if there is none."""
    render = SENTENCES.get(str(facts.get("kind", code))) or SENTENCES.get(code)
    try:
        return code if render is None else render(facts)
    except (KeyError, TypeError):
        return code  # facts in an external answer may be incomplete


def note_sentence(kind: str, tick: int, facts: Mapping[str, Json]) -> str | None:
    """The sentence for a note that is a warning; None for other notes."""
    render = NOTES.get(kind)
    return None if render is None else render(tick, facts)


def no_result_sentence(engine: Facts) -> str:
    """The sentence for a call of the payment service without a result."""
    return f"The payment service {engine['url']} brought no result: {cause_text(engine)}."
