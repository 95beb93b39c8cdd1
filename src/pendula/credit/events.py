"""Output of a run: one struct for each kind of event, and the parts they share.

Names in the JSON are those of the requirements, as in `commands`. Amounts are decimal strings.
"""

from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from pendula.credit.commands import TRANSFER
from pendula.credit.sentences import sentence_of
from pendula.kernel.canonical import Json


class Edge(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """A step of value or of debt between two participants."""

    source: str
    target: str


class RouteView(Struct, frozen=True):
    path: tuple[str, ...]
    amount: str


class NodePatch(Struct, frozen=True):
    """The position of a participant: what it is owed less what it owes."""

    id: str
    net_balance: str
    net_balance_atoms: str
    net_sign: int


class EdgePatch(Struct, frozen=True):
    """The current state of a line; `source` is the creditor."""

    source: str
    target: str
    used: str
    available: str
    trust_limit: str


class Failure(Struct, frozen=True):
    """Why a payment failed; `TxFailed.message` is its sentence."""

    code: str
    details: dict[str, Json] = {}


class TxUpdated(Struct, frozen=True, tag="tx.updated", rename=TRANSFER):
    """A payment was made. `seq` is its place in the plan of its tick, None for a manual payment.

    `planned_tick` is set if the payment waited: the tick whose plan it belongs to.
    """

    tick_index: int
    seq: int | None
    tx_id: str
    equivalent: str
    sender: str
    receiver: str
    amount: str
    routes: tuple[RouteView, ...]
    edges: tuple[Edge, ...]
    node_patch: tuple[NodePatch, ...] | UnsetType = UNSET
    edge_patch: tuple[EdgePatch, ...] | UnsetType = UNSET
    planned_tick: int | UnsetType = UNSET


class TxFailed(Struct, frozen=True, tag="tx.failed", rename=TRANSFER):
    tick_index: int
    seq: int | None
    equivalent: str
    sender: str
    receiver: str
    amount: str
    error: Failure
    planned_tick: int | UnsetType = UNSET

    @property
    def message(self) -> str:
        ends = {"from": self.sender, "to": self.receiver, "equivalent": self.equivalent, "amount": self.amount}
        return sentence_of(self.error.code, {**ends, **self.error.details})


class PlanStep(Struct, frozen=True):
    at_ms: int
    highlight_edges: tuple[Edge, ...]


class ClearingPlan(Struct, frozen=True, tag="clearing.plan"):
    tick_index: int
    equivalent: str
    plan_id: str
    steps: tuple[PlanStep, ...]


class ClearingDone(Struct, frozen=True, tag="clearing.done"):
    """`optimum` is the reduction of the best circulation; only with the yardstick switched on."""

    tick_index: int
    equivalent: str
    plan_id: str
    reason: str
    cleared_cycles: int
    cleared_amount: str
    debt_reduction: str
    cycle_edges: tuple[Edge, ...]
    stopped: str
    optimum: str | UnsetType = UNSET
    node_patch: tuple[NodePatch, ...] | UnsetType = UNSET
    edge_patch: tuple[EdgePatch, ...] | UnsetType = UNSET


class ClearingDecision(Struct, frozen=True, tag="clearing.decision"):
    """A decision of the adaptive policy and its inputs; the rate as numerator and denominator.

    `clearing_volume` and `clearing_cost_ms` are those of the previous call, 0 if there was none.
    """

    tick_index: int
    equivalent: str
    should_run: bool
    reason: str
    rate: tuple[int, int]
    max_depth: int
    time_budget_ms: int
    cooldown: int
    clearing_volume: str
    clearing_cost_ms: int
    in_flight: int
    queue_depth: int


class LineView(Struct, frozen=True):
    from_pid: str
    to_pid: str
    equivalent_code: str
    limit: str


class Person(Struct, frozen=True):
    pid: str
    name: str | None
    type: str


class TopologyPayload(Struct, frozen=True):
    added_nodes: tuple[Person, ...] = ()
    removed_nodes: tuple[str, ...] = ()
    frozen_nodes: tuple[str, ...] = ()
    added_edges: tuple[LineView, ...] = ()
    removed_edges: tuple[LineView, ...] = ()
    frozen_edges: tuple[LineView, ...] = ()
    edge_patch: tuple[EdgePatch, ...] | UnsetType = UNSET


class TopologyChanged(Struct, frozen=True, tag="topology.changed"):
    tick_index: int
    equivalent: str
    payload: TopologyPayload
    reason: str


class DriftRow(Struct, frozen=True):
    participant_id: str
    expected_delta: str
    actual_delta: str
    drift: str


class AuditDrift(Struct, frozen=True, tag="audit.drift"):
    """A position differs from the sum of the payments: the ledger and its history disagree."""

    tick_index: int
    equivalent: str
    severity: str
    total_drift: str
    drifts: tuple[DriftRow, ...]
    source: str


class Note(Struct, frozen=True, tag="note"):
    """What an event of the timeline did or would have done, and other remarks."""

    tick_index: int
    sim_time_ms: int
    scenario: dict[str, Json]


class Ticked(Struct, frozen=True, tag="tick"):
    """The end of a tick: its counts, its metrics, the digests of all ticks so far.

    `no_route_at_all` counts rejected payments without an allowed route even if every circle of debt were cleared.
    `waiting` counts payments that were planned and not tried yet.
    """

    tick_index: int
    sim_time_ms: int
    budget: int = 0
    planned: int = 0
    committed: int = 0
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    dropped: int = 0
    metrics: dict[str, dict[str, str | None]] = {}
    digests: dict[str, str] = {}
    no_route_at_all: int = 0
    waiting: int = 0


class LastError(Struct, frozen=True):
    """Why a run ended in error."""

    code: str
    details: dict[str, Json] = {}

    @property
    def message(self) -> str:
        return sentence_of(self.code, self.details)


class RunStatus(Struct, frozen=True, tag="run_status"):
    """The status of a run; emitted at each change and by each accepted command."""

    run_id: str
    scenario_id: str
    state: str
    tick_index: int
    sim_time_ms: int
    intensity_percent: int
    attempts_total: int
    committed_total: int
    rejected_total: int
    errors_total: int
    timeouts_total: int
    dropped_total: int
    queue_depth: int
    consec_all_rejected_ticks: int
    last_error: LastError | None


Event: TypeAlias = (
    TxUpdated
    | TxFailed
    | ClearingPlan
    | ClearingDone
    | ClearingDecision
    | TopologyChanged
    | AuditDrift
    | Note
    | Ticked
    | RunStatus
)
