"""A client that rejects everything outside the protocol; written from the requirements, without code of the server.

An unlisted member fails, and so does a member of another type.
"""

import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], None]

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")
AMOUNT = re.compile(r"-?\d+(\.\d{1,18})?")
STATES = {"idle", "running", "paused", "stopping", "stopped", "error"}
KEYS = {
    "success_rate": "%",
    "avg_route_length": "count",
    "total_debt": "amount",
    "clearing_volume": "amount",
    "bottlenecks_score": "%",
    "active_participants": "count",
    "active_trustlines": "count",
}
REASONS = {
    "TOO_MANY_TIMEOUTS",
    "FREQUENT_ABORTS",
    "HIGH_USED",
    "LOW_AVAILABLE",
    "ROUTING_TOO_DEEP",
    "CLEARING_PRESSURE",
}


class Unlisted(AssertionError):
    """A response that a strict client rejects."""


def need(holds: bool, value: Any, what: str) -> None:
    if not holds:
        raise Unlisted(f"{value!r} is not {what}")


def text(value: Any) -> None:
    need(isinstance(value, str), value, "a text")


def integer(value: Any) -> None:
    need(isinstance(value, int) and not isinstance(value, bool), value, "an integer")


def count(value: Any) -> None:
    integer(value)
    need(value >= 0, value, "a count")


def number(value: Any) -> None:
    need(isinstance(value, int | float) and not isinstance(value, bool), value, "a number")


def boolean(value: Any) -> None:
    need(value is True, value, "true")


def time(value: Any) -> None:
    text(value)
    need(TIME.fullmatch(value) is not None, value, "a time")


def amount(value: Any) -> None:
    text(value)
    need(AMOUNT.fullmatch(value) is not None, value, "an amount")


def one_of(*words: Any) -> Check:
    return lambda value: need(value in words, value, f"one of {words}")


def maybe(check: Check) -> Check:
    """Null or this; a nullable member may be absent."""

    def checked(value: Any) -> None:
        if value is not None:
            check(value)

    checked.optional = True  # type: ignore[attr-defined]
    return checked


def many(check: Check) -> Check:
    def checked(value: Any) -> None:
        need(isinstance(value, list), value, "an array")
        for member in value:
            check(member)

    return checked


def form(**members: Check) -> Check:
    """Exactly these members; the name of a Python keyword ends with an underscore."""
    listed = {name.rstrip("_"): check for name, check in members.items()}

    def checked(value: Any) -> None:
        need(isinstance(value, dict), value, "an object")
        unknown, missing = set(value) - set(listed), set(listed) - set(value)
        need(not unknown, sorted(unknown), "listed")
        missing = {name for name in missing if not getattr(listed[name], "optional", False)}
        need(not missing, value, f"complete: {sorted(missing)}")
        for name, member in value.items():
            listed[name](member)

    return checked


def either(*forms: Check) -> Check:
    def checked(value: Any) -> None:
        for one in forms:
            try:
                one(value)
            except Unlisted:
                continue
            return
        raise Unlisted(f"{value!r} has none of the forms")

    return checked


def palette(value: Any) -> None:
    need(isinstance(value, dict), value, "an object")
    for entry in value.values():
        form(color=text, label=maybe(text))(entry)


api = one_of("simulator-api/1")
SUMMARY = form(
    api_version=api,
    scenario_id=text,
    name=maybe(text),
    created_at=maybe(time),
    participants_count=count,
    trustlines_count=count,
    equivalents=many(text),
    clusters_count=maybe(count),
    hubs_count=maybe(count),
    tags=maybe(many(text)),
)
SCENARIOS = form(api_version=api, items=many(SUMMARY))
CREATED = form(api_version=api, run_id=text)
ACTIVE = form(api_version=api, run_id=maybe(text))
LAST_ERROR = form(code=text, message=text, at=time)
STATUS = form(
    api_version=api,
    run_id=text,
    scenario_id=text,
    mode=one_of("real", "fixtures"),
    state=one_of(*sorted(STATES)),
    started_at=maybe(time),
    stopped_at=maybe(time),
    stop_requested_at=maybe(time),
    stop_source=maybe(text),
    stop_reason=maybe(text),
    stop_client=maybe(text),
    sim_time_ms=maybe(count),
    intensity_percent=maybe(count),
    ops_sec=maybe(number),
    queue_depth=maybe(count),
    errors_total=count,
    committed_total=count,
    rejected_total=count,
    attempts_total=count,
    timeouts_total=count,
    errors_last_1m=count,
    consec_all_rejected_ticks=maybe(count),
    last_error=maybe(LAST_ERROR),
    last_event_type=maybe(text),
    current_phase=maybe(one_of("payments", "clearing")),
)
NODE = form(
    id=text,
    name=maybe(text),
    type=maybe(text),
    status=maybe(text),
    links_count=maybe(count),
    net_balance=maybe(amount),
    net_balance_atoms=maybe(amount),
    net_sign=maybe(one_of(-1, 0, 1)),
    viz_color_key=maybe(text),
    viz_shape_key=maybe(text),
    viz_size=maybe(form(w=number, h=number)),
    viz_badge_key=maybe(text),
)
LINK = form(
    source=text,
    target=text,
    trust_limit=amount,
    used=amount,
    available=amount,
    status=text,
    viz_color_key=maybe(text),
    viz_width_key=maybe(text),
    viz_alpha_key=maybe(text),
)
SNAPSHOT = form(
    equivalent=text,
    generated_at=time,
    nodes=many(NODE),
    links=many(LINK),
    palette=maybe(palette),
    limits=maybe(form(max_nodes=maybe(count), max_links=maybe(count), max_particles=maybe(count))),
)
METRICS = form(
    api_version=api,
    run_id=text,
    equivalent=text,
    from_ms=count,
    to_ms=count,
    step_ms=count,
    series=many(
        form(
            key=one_of(*KEYS),
            unit=one_of("%", "count", "amount", None),
            points=many(either(form(t_ms=count, v=amount), form(t_ms=count, v=one_of(None)))),
        )
    ),
)
BOTTLENECKS = form(
    api_version=api,
    run_id=text,
    equivalent=text,
    items=many(
        form(
            target=either(
                form(kind=one_of("edge"), from_=text, to=text),
                form(kind=one_of("node"), id=text),
            ),
            score=number,
            reason_code=one_of(*sorted(REASONS)),
            label=maybe(text),
            suggested_action=maybe(text),
        )
    ),
)
ARTIFACTS = form(
    api_version=api,
    run_id=text,
    artifact_path=maybe(text),
    items=many(
        form(name=text, url=text, content_type=maybe(text), size_bytes=maybe(count), sha256=maybe(text)),
    ),
    bundle_url=maybe(text),
)
OWNER = form(actor_kind=text, owner_id=text)
TARGETS = form(items=many(form(to_pid=text, hops=count, max_available=maybe(amount))))
PARTICIPANTS = form(items=many(form(pid=text, name=maybe(text), type=text, status=text)))
TRUSTLINES = form(
    items=many(
        form(
            from_pid=text,
            from_name=maybe(text),
            to_pid=text,
            to_name=maybe(text),
            equivalent=text,
            limit=amount,
            used=amount,
            reverse_used=maybe(amount),
            available=amount,
            status=text,
        )
    )
)
ECHO = maybe(text)
EDGE = form(from_=text, to=text)
PAID = form(
    ok=boolean,
    payment_id=text,
    from_pid=text,
    to_pid=text,
    equivalent=text,
    amount=amount,
    status=text,
    client_action_id=ECHO,
)
CLEARED = form(
    ok=boolean,
    equivalent=text,
    cleared_cycles=count,
    total_cleared_amount=amount,
    cycles=many(form(cleared_amount=amount, edges=many(EDGE))),
    client_action_id=ECHO,
)
LINE_CREATED = form(
    ok=boolean, trustline_id=text, from_pid=text, to_pid=text, equivalent=text, limit=amount, client_action_id=ECHO
)
LINE_UPDATED = form(ok=boolean, trustline_id=text, old_limit=amount, new_limit=amount, client_action_id=ECHO)
LINE_CLOSED = form(ok=boolean, trustline_id=text, client_action_id=ECHO)
TX_SHOWN = form(ok=boolean, emitted_event_id=text, client_action_id=ECHO)
CLEARING_SHOWN = form(ok=boolean, plan_id=text, done_event_id=text, client_action_id=ECHO)


def anything(value: Any) -> None:
    need(isinstance(value, dict), value, "an object")


REFUSED = form(code=text, message=text, details=maybe(anything))
ERROR = form(error=form(code=text, message=text, details=maybe(anything)))

PAYLOAD_NODE = form(pid=text, name=maybe(text), type=maybe(text))
PAYLOAD_EDGE = form(from_pid=text, to_pid=text, equivalent_code=text, limit=maybe(amount))
PAYLOAD = form(
    added_nodes=many(PAYLOAD_NODE),
    removed_nodes=many(text),
    frozen_nodes=many(text),
    added_edges=many(PAYLOAD_EDGE),
    removed_edges=many(PAYLOAD_EDGE),
    frozen_edges=many(PAYLOAD_EDGE),
    node_patch=maybe(many(anything)),
    edge_patch=maybe(many(anything)),
)
# Required members; events may have more.
EVENTS: dict[str, dict[str, Check]] = {
    "run_status": {"run_id": text, "scenario_id": text, "state": one_of(*sorted(STATES))},
    "tx.updated": {"equivalent": text, "from": text, "to": text, "amount": amount, "edges": many(anything)},
    "tx.failed": {"equivalent": text, "error": anything},
    "clearing.plan": {
        "equivalent": text,
        "plan_id": text,
        "steps": many(form(at_ms=count, highlight_edges=many(EDGE), particles_edges=maybe(many(EDGE)))),
    },
    "clearing.done": {"equivalent": text, "plan_id": text},
    "audit.drift": {
        "equivalent": text,
        "tick_index": count,
        "severity": one_of("warning", "critical"),
        "total_drift": amount,
        "drifts": many(anything),
        "source": one_of("post_tick_audit", "delta_check"),
    },
    "topology.changed": {"equivalent": text, "payload": PAYLOAD},
}


def event(value: Any) -> None:
    anything(value)
    required = {"event_id": text, "ts": time, **EVENTS[value["type"]]}
    for name, check in required.items():
        need(name in value, value, f"complete: {name}")
        check(value[name])
    if "last_error" in value:
        maybe(LAST_ERROR)(value["last_error"])
    if value["type"] == "tx.failed":
        for name, check in {"code": text, "message": text, "at": time}.items():
            check(value["error"][name])
    if value.get("amount_flyout"):
        need(bool(value["amount"]) and ("from" in value or len(value["edges"]) == 1), value, "able to fly out")
    for patch in value.get("edge_patch", ()):
        for name in ("used", "available"):
            amount(patch[name])
    for patch in value.get("node_patch", ()):
        amount(patch["net_balance"])
        one_of(-1, 0, 1)(patch["net_sign"])
