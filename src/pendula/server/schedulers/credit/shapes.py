"""Requests and responses of the protocol, with all their members."""

from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.credit.views import Bottleneck, PaymentTarget, Series, Target
from pendula.server.schedulers.credit.records import ErrorAt, Record
from pendula.server.schedulers.credit.scenarios import Summary
from pendula.server.schedulers.credit.store import Artifact

API_VERSION = "simulator-api/1"

Percent = Annotated[int, Meta(ge=0, le=100)]
Seed = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=200)]


class Control(Struct, frozen=True, kw_only=True):
    """The member of every response about runs and scenarios."""

    api_version: str = API_VERSION


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """A request body. Unknown fields are rejected so that typos cannot change a request."""


# Responses


class ScenarioList(Control, frozen=True, kw_only=True):
    items: list[Summary]


class RunName(Control, frozen=True, kw_only=True):
    """A run that was created, or the active one; null if there is none."""

    run_id: str | None


class RunStatusView(Control, frozen=True, kw_only=True):
    """The status of a run as the protocol defines it; our additions are in `RunDetails`."""

    run_id: str
    scenario_id: str
    mode: str
    state: str
    started_at: str | None
    stopped_at: str | None
    stop_requested_at: str | None
    stop_source: str | None
    stop_reason: str | None
    stop_client: str | None
    sim_time_ms: int
    intensity_percent: int
    ops_sec: float
    queue_depth: int
    errors_total: int
    committed_total: int
    rejected_total: int
    attempts_total: int
    timeouts_total: int
    errors_last_1m: int
    consec_all_rejected_ticks: int
    last_error: ErrorAt | None
    last_event_type: str | None
    current_phase: str | None


def status_view(record: Record, current_phase: str | None = None) -> RunStatusView:
    names = [name for name in RunStatusView.__struct_fields__ if hasattr(record, name)]
    facts: dict[str, Any] = {name: getattr(record, name) for name in names}
    state = {"state": record.state.value, "current_phase": current_phase}
    return RunStatusView(**{**facts, **state, "ops_sec": float(record.ops_sec)})


class DemandView(Struct, frozen=True):
    """One equivalent over the whole run: the planned amounts before the ledger capped them, and the paid ones.

    `served_share` is `served` in per cent of `wanted`; null if that is 0.
    """

    wanted: str
    served: str
    volume: str
    served_share: str | None


class RunDetails(Control, frozen=True, kw_only=True):
    """Details of a run beyond the protocol.

    `engine` is the payment service, null for the embedded one. `deterministic` is true if the same seed, settings and
    commands repeat the run; with an external service it is false.
    """

    run_id: str
    owner: str
    seed: int
    seed_from: str
    deterministic: bool
    engine: str | None
    tick_index: int
    dropped_total: int
    digests: dict[str, str] | None
    settings: dict[str, str] | None
    clearing: dict[str, Any] | None
    demand: dict[str, DemandView] | None
    error_details: dict[str, Any]
    late_beats: int
    dropped_lines: int
    journal_bytes: int | None
    followers: int
    continued_from: str | None


class WhatIfBranch(Struct, frozen=True, kw_only=True):
    """One branch of a fork: payments since the fork, and the last metrics."""

    attempts: int
    committed: int
    rejected: int
    metrics: dict[str, dict[str, str | None]]
    clearings: int
    debt_reduction: str
    tried_by_tick: list[int]
    made_by_tick: list[int]


class WhatIfView(Control, frozen=True, kw_only=True):
    """A run forked into a branch with its own settings and one with changed ones; `settings` has both values.

    `first_difference` is the first tick after which the ledgers differ, null if they never do.
    """

    run_id: str
    tick_index: int
    ticks: int
    settings: dict[str, list[str]]
    first_difference: int | None
    original: WhatIfBranch
    fork: WhatIfBranch


class MetricsView(Control, frozen=True, kw_only=True):
    run_id: str
    equivalent: str
    from_ms: int
    to_ms: int
    step_ms: int
    series: list[Series]


class BottleneckView(Struct, frozen=True):
    """A line over which payments fail; the score is from 0 to 1."""

    target: Target
    score: float
    reason_code: str
    label: str | None
    suggested_action: str | None

    @classmethod
    def of(cls, bottleneck: Bottleneck) -> Self:
        return cls(
            bottleneck.target,
            float(bottleneck.score),
            bottleneck.reason_code,
            bottleneck.label,
            bottleneck.suggested_action,
        )


class BottlenecksView(Control, frozen=True, kw_only=True):
    run_id: str
    equivalent: str
    items: list[BottleneckView]


class ArtifactIndex(Control, frozen=True, kw_only=True):
    run_id: str
    artifact_path: str | None
    items: list[Artifact]
    bundle_url: str | None


class RunList(Control, frozen=True, kw_only=True):
    items: list[RunStatusView]


class StoppedRuns(Control, frozen=True, kw_only=True):
    stopped: list[str]


class OwnerView(Struct, frozen=True):
    actor_kind: str
    owner_id: str


class TargetList(Struct, frozen=True):
    items: list[PaymentTarget]


class ParticipantView(Struct, frozen=True):
    pid: str
    name: str | None
    type: str
    status: str


class ParticipantList(Struct, frozen=True):
    items: list[ParticipantView]


class TrustlineView(Struct, frozen=True):
    """A line from its creditor to its debtor."""

    from_pid: str
    from_name: str | None
    to_pid: str
    to_name: str | None
    equivalent: str
    limit: str
    used: str
    reverse_used: str
    available: str
    status: str


class TrustlineList(Struct, frozen=True):
    items: list[TrustlineView]


class ActionDone(Struct, frozen=True, kw_only=True):
    ok: bool = True
    client_action_id: str | None = None


class PaymentDone(ActionDone, frozen=True, kw_only=True):
    payment_id: str
    from_pid: str
    to_pid: str
    equivalent: str
    amount: str
    status: str


class EdgeView(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    source: str
    target: str


class ClearedCycle(Struct, frozen=True):
    cleared_amount: str
    edges: list[EdgeView]


class ClearingDoneView(ActionDone, frozen=True, kw_only=True):
    equivalent: str
    cleared_cycles: int
    total_cleared_amount: str
    cycles: list[ClearedCycle]


class TrustlineCreated(ActionDone, frozen=True, kw_only=True):
    trustline_id: str
    from_pid: str
    to_pid: str
    equivalent: str
    limit: str


class TrustlineUpdated(ActionDone, frozen=True, kw_only=True):
    trustline_id: str
    old_limit: str
    new_limit: str


class TrustlineClosed(ActionDone, frozen=True, kw_only=True):
    trustline_id: str


class TxShown(ActionDone, frozen=True, kw_only=True):
    emitted_event_id: str


class ClearingShown(ActionDone, frozen=True, kw_only=True):
    plan_id: str
    done_event_id: str


class ActionRefusal(Struct, frozen=True):
    """A refused manual action, without an `error` member around it."""

    code: str
    message: str
    details: dict[str, Any] | UnsetType = UNSET


# Requests


class NewRun(Body, frozen=True):
    scenario_id: str
    mode: Literal["real", "fixtures"]
    intensity_percent: Percent
    seed: Seed | None = None
    deterministic: bool = False
    settings: dict[str, str] = {}
    engine: Text | None = None


class Intensity(Body, frozen=True):
    intensity_percent: Percent


class WhatIf(Body, frozen=True):
    settings: dict[str, str]
    ticks: Annotated[int, Meta(ge=1, le=500)] = 60


class Action(Body, frozen=True, kw_only=True):
    client_action_id: Text | None = None


class Payment(Action, frozen=True, kw_only=True):
    from_pid: str
    to_pid: str
    equivalent: str
    amount: str


class Clearing(Action, frozen=True, kw_only=True):
    equivalent: str
    max_depth: Annotated[int, Meta(ge=1, le=12)] = 6


class TrustlineCreate(Action, frozen=True, kw_only=True):
    from_pid: str
    to_pid: str
    equivalent: str
    limit: str


class TrustlineUpdate(Action, frozen=True, kw_only=True):
    from_pid: str
    to_pid: str
    equivalent: str
    new_limit: str


class TrustlineClose(Action, frozen=True, kw_only=True):
    from_pid: str
    to_pid: str
    equivalent: str


class ShownEdge(Body, frozen=True, rename={"source": "from", "target": "to"}):
    source: str
    target: str


class TxOnce(Action, frozen=True, kw_only=True, rename={"sender": "from", "receiver": "to"}):
    equivalent: str
    sender: str | None = None
    receiver: str | None = None
    amount: str | None = None
    ttl_ms: Annotated[int, Meta(ge=1, le=60_000)] = 1200
    intensity_key: Text | None = None
    seed: Seed | None = None


class ClearingOnce(Action, frozen=True, kw_only=True):
    equivalent: str
    cycle_edges: list[ShownEdge] | None = None
    cleared_amount: str | None = None
    seed: Seed | None = None
