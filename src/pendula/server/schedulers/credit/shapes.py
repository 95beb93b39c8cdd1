"""The closed forms of the protocol: what answers hold, member by member and nothing besides, and what calls take."""

from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.credit.served.bottlenecks import Bottleneck, Target
from pendula.credit.served.records import ErrorAt, Record
from pendula.credit.served.scenarios import Summary
from pendula.credit.served.series import Series
from pendula.credit.served.store import Artifact
from pendula.credit.served.targets import PaymentTarget

API_VERSION = "simulator-api/1"

Percent = Annotated[int, Meta(ge=0, le=100)]
Seed = Annotated[int, Meta(ge=0)]
Text = Annotated[str, Meta(max_length=200)]


class Control(Struct, frozen=True, kw_only=True):
    """What every answer about runs and scenarios carries."""

    api_version: str = API_VERSION


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """A member nobody knows is refused: a typing error must not be a different wish."""


# Answers


class ScenarioList(Control, frozen=True, kw_only=True):
    items: list[Summary]


class RunName(Control, frozen=True, kw_only=True):
    """A run that was created, or the active one; null if there is none."""

    run_id: str | None


class RunStatusView(Control, frozen=True, kw_only=True):
    """Where a run stands; our own additions are in `RunDetails`."""

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
    told = {"state": record.state.value, "current_phase": current_phase}
    return RunStatusView(**{**facts, **told, "ops_sec": float(record.ops_sec)})


class DemandView(Struct, frozen=True):
    """One equivalent over the whole run: what payers wanted before the ledger capped it, and what was paid.

    `served_share` is how many per cent of what was wanted were paid; null where nothing was wanted.
    """

    wanted: str
    served: str
    volume: str
    served_share: str | None


class RunDetails(Control, frozen=True, kw_only=True):
    """What we know of a run beyond the protocol's own forms.

    `engine` is the payment service that makes the payments, null for the embedded one. `deterministic` says whether the
    same seed, settings and commands give the same run again; an outside service cannot promise it.
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
    """How one of two ways went on: what was tried and made from where they part, and the last values measured."""

    attempts: int
    committed: int
    rejected: int
    metrics: dict[str, dict[str, str | None]]
    clearings: int
    debt_reduction: str
    tried_by_tick: list[int]
    made_by_tick: list[int]


class WhatIfView(Control, frozen=True, kw_only=True):
    """A run that goes on twice: as it is, and with other settings, of which both values are told.

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
    """A line at which payments fail; the score is a share from 0 to 1."""

    target: Target
    score: float
    reason_code: str
    label: str | None
    suggested_action: str | None

    @classmethod
    def of(cls, found: Bottleneck) -> Self:
        return cls(found.target, float(found.score), found.reason_code, found.label, found.suggested_action)


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
    """How an action is refused: one object, without a frame."""

    code: str
    message: str
    details: dict[str, Any] | UnsetType = UNSET


# Bodies


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


VIEWS = (
    ScenarioList,
    RunName,
    RunStatusView,
    RunDetails,
    WhatIfView,
    MetricsView,
    BottlenecksView,
    ArtifactIndex,
    RunList,
    StoppedRuns,
    OwnerView,
    TargetList,
    ParticipantList,
    TrustlineList,
    PaymentDone,
    ClearingDoneView,
    TrustlineCreated,
    TrustlineUpdated,
    TrustlineClosed,
    TxShown,
    ClearingShown,
    ActionRefusal,
    NewRun,
    Intensity,
    WhatIf,
    Payment,
    Clearing,
    TrustlineCreate,
    TrustlineUpdate,
    TrustlineClose,
    TxOnce,
    ClearingOnce,
)
