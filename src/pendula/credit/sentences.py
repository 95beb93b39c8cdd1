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


SENTENCES: Mapping[str, str | Callable[[Facts], str]] = {
    # Payments
    "EQUIVALENT_NOT_FOUND": "There is no equivalent {equivalent!r}",
    "PARTICIPANT_NOT_FOUND": _unknown_participant,
    "INVALID_INPUT": "A payment needs two participants and a positive amount in whole cents",
    "ROUTING_NO_ROUTE": "No chain of at most {max_hops} active lines leads from {from} to {to}",
    "ROUTING_NO_CAPACITY": _no_capacity,
    "narrow_hop": "A hop has too little capacity for all routes together",
    "position_check": "The payment moved other positions than it should; it was taken back",
    "route_search_limit": "The search for routes looked at {work_limit} hops and had not ended",
    # Payments of an outside service
    "service_timeout": _service("The payment service did not answer in time"),
    "service_failed": _service("The payment service failed"),
    "service_refused": _service("The payment service refused"),
    "invalid_service_answer": _service("The payment service gave an invalid answer"),
    "unknown_line": "The service paid over a line of {line[to]} to {line[from]}, which the run does not have",
    "line_too_narrow": (
        "The service moved {expected} over the line of {line[to]} to {line[from]}, which has {found} left in the run"
    ),
    "route_amount": "A route of the service has no valid amount: {value!r}",
    "route_ends": "A route of the service carries nothing or does not lead from {from} to {to}",
    "route_form": "A route of the service lacks a path of participants or an amount",
    "route_total": "The routes of the service carry {found} instead of {expected}",
    # Errors that end a run
    "PAYMENT_TIMEOUT": "{timeouts} payments of one tick timed out; {limit} end the run",
    "REAL_MODE_TOO_MANY_ERRORS": "There were {errors} technical errors; {limit} end the run",
    "INTERNAL_ERROR": _failed_ticks,
    "SERVER_RESTARTED": "The server was restarted while the run was active; it can be continued as a new run",
    "SERVER_RESTARTED_DISK_FULL": "The server was restarted while the run was active, and its disk is full",
    "JOURNAL_UNREADABLE": "The server was restarted while the run was active, and its journal cannot be read",
    "UNCLEAN_END": "The run could not be ended cleanly",
    "NOT_RECORDED": "The run could not be recorded any further",
    "disk_low": "The disk of the server is full or nearly full; the run can go on when there is space",
    "journal_full": "The journal of the run is as long as it may be (journal_bytes)",
    # Refused commands
    "key_reused": "The key {key!r} was used for another payment",
    "keys_exhausted": "A run stores at most {limit} keys; pay without a key, or in a new run",
    "pays_itself": "{participant!r} cannot pay itself",
    "trusts_itself": "{participant!r} cannot trust itself",
    "amount_not_positive": "The amount {amount} is not above 0",
    "negative_limit": "The limit {limit} is below 0",
    "line_exists": "{from!r} trusts {to!r} already",
    "no_line": "{from!r} has no line to {to!r}",
    "TRUSTLINE_LIMIT_EXCEEDED": "The limit {limit} is below the debt of {debt}",
    "TRUSTLINE_REJECTED": "There is a debt of {debt} between the two",
    "participant_not_active": "{participant!r} is not active",
    "run_not_running": "The run is {state}; only a running run has ticks",
    "run_ended": "The run is {state}; only a run that is running or paused can be changed",
    "outside_ledger": "The ledger of this run is that of an outside service; change it there",
    # Amounts
    "not_an_amount": "{amount} is not an amount; give a Decimal, a text or a whole number",
    "not_a_number": lambda facts: f"{facts['amount'][:50]!r} is not a decimal number",
    "exponent_out_of_range": lambda facts: f"{shown(facts['amount'])} has an exponent out of range",
    "not_finite": "{amount} is not a finite number",
    "too_many_digits": "{amount} has more than 12 digits before the point",
    "too_fine": "{amount} has more than 8 digits after the point",
    # Settings
    "unknown_setting": "No setting is called {variable!r}",
    "out_of_range": lambda facts: f"{facts['variable']} is {shown(facts['value'])}; allowed is {allowed_values(facts)}",
    "without_effect": lambda facts: (
        f"{facts['variable']} is {facts['value']!r}, which would have no effect: {WITHOUT_EFFECT[facts['reason']]}; "
        f"allowed is {facts['default']}"
    ),
    "crossed_settings": "{variable} is {value} and {other} is {other_value}; the first must not be higher",
    "fixed_tick_length": "The length of a tick cannot change within a run",
    # Answers of a solver
    "missing_extra": _missing_extra,
    "amounts_too_large": (
        "The debts are too large for optimal clearing: one participant owes or is owed {value} times {unit} "
        "atoms, the largest unit that all debts share; allowed are {allowed}"
    ),
    "no_flows": "The answer to a question for optimal clearing has no flows",
    "number_of_flows": "There are {debts} debts and {flows} flows",
    "flow_out_of_range": "A flow of {flow} over the debt of {debtor} to {creditor}; allowed is 0 to {amount}",
    "position_changed": "The position of {participant} would change by {change}",
    "not_the_largest": "Another circulation over these debts has a larger volume",
    "solver_failed": "{solver} found no circulation, though no flow at all is one: {status}",
}

# Notes that become warnings; notes of the events of a scenario have no sentence.
NOTES: Mapping[str, str | Callable[[Facts], str]] = {
    "profile_silenced": ("{profile} never pays in {equivalent}: its least amount {min} is above the cap of {cap}."),
    "all_rejected": "Every payment was refused in {ticks} ticks in a row, up to tick {tick}.",
    "tick_failed": "The payment service lost tick {tick_index}; it was taken back.",
    "behaviour_answered_badly": "At tick {tick} the behaviour {behaviour} gave wrong answers, {invalid} in all.",
    "optimal_clearing_failed": lambda facts: (
        f"At tick {facts['tick']} the solver had no answer for {facts['equivalent']}: "
        f"{sentence_of(facts['code'], facts['facts'])}"
    ),
    "nothing_cleared": "At tick {tick} nothing was cleared in {equivalent}; the search stopped with {stopped}.",
    "outside_ledger": "The ledger is that of an outside service: no trust drifts and nothing is injected here.",
    "clearing_failed": "At tick {tick} the payment service cleared nothing in {equivalent}: {code}.",
    "inject": lambda facts: f"The injection {facts['event_index']}, due at tick {facts['tick']}: {_injected(facts)}.",
}
IGNORED: Mapping[str, str] = {
    "inject_disabled": "injections are switched off (SIMULATOR_REAL_ENABLE_INJECT)",
    "outside_ledger": "the ledger of this run is that of an outside service",
}


def _injected(facts: Facts) -> str:
    if "ignored" in facts:
        return IGNORED[facts["ignored"]]
    return f"{facts['applied']} effects applied, {facts['skipped']} skipped, {facts['total']} in debts"


def _rendered(form: str | Callable[[Facts], str], facts: Facts) -> str:
    return form.format_map(facts) if isinstance(form, str) else form(facts)


def sentence_of(code: str, facts: Mapping[str, Json]) -> str:
    """The sentence of a refusal, a failed payment or the error of a run; the code if there is none."""
    form = SENTENCES.get(str(facts.get("kind", code))) or SENTENCES.get(code)
    try:
        return code if form is None else _rendered(form, facts)
    except (KeyError, TypeError):
        return code  # facts in an external answer may be incomplete


def note_sentence(kind: str, tick: int, facts: Mapping[str, Json]) -> str | None:
    """The sentence for a note that is a warning; None for other notes."""
    form = NOTES.get(kind)
    return None if form is None else _rendered(form, {**facts, "tick": tick})


def no_result_sentence(engine: Facts) -> str:
    """The sentence for a call of the payment service without a result."""
    return f"The payment service {engine['url']} brought no result: {cause_text(engine)}."
