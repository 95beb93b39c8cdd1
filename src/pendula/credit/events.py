"""What goes into a run and what comes out of it: configuration, commands, events.

Names in the JSON are those of the requirements: a line goes `from` its creditor `to` its debtor, a payment `from` its
sender `to` its receiver. Amounts are decimal strings.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.credit.settings import Settings
from pendula.kernel.canonical import Json

LINE = {"creditor": "from", "debtor": "to"}
TRANSFER = {"sender": "from", "receiver": "to"}
Percent = Annotated[int, Meta(ge=0, le=100)]
Key = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:-]{1,64}\Z")]


class BehaviourName(Struct, frozen=True, forbid_unknown_fields=True):
    """Who plans: a name registered with `register_behaviour`, and its version."""

    name: str
    version: int


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A run as it is made. `engine` "external" asks another system for each payment; `patches` go into events.

    `digest_ledger` false spares the digest of the ledger, which at a hundred thousand lines is most of a tick.
    """

    scenario: Json
    seed: Annotated[int, Meta(ge=0)]
    run_id: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{1,80}\Z")]
    intensity_percent: Percent = 100
    settings: Settings = Settings()
    mode: Literal["real", "fixtures"] = "real"
    engine: Literal["embedded", "external"] = "embedded"
    behaviour: BehaviourName | None = None
    lenient: bool = False
    patches: bool = True
    digest_ledger: bool = True


class Command(Struct, frozen=True, forbid_unknown_fields=True):
    """What all commands share: a member nobody knows is refused."""


class Tick(Command, frozen=True, tag="tick"):
    """Let `count` ticks pass. The other two say how busy the caller is: the guardrail of clearing looks at them."""

    count: Annotated[int, Meta(ge=1, le=1000)] = 1
    in_flight: Annotated[int, Meta(ge=0)] = 0
    queue_depth: Annotated[int, Meta(ge=0)] = 0


class SetIntensity(Command, frozen=True, tag="set_intensity"):
    """From the next tick on."""

    percent: Percent


class Pay(Command, frozen=True, tag="pay", rename=TRANSFER):
    """One payment by hand. The same key again gives the same answer and no second effect."""

    sender: str
    receiver: str
    equivalent: str
    amount: str
    key: Key | None = None


class Clear(Command, frozen=True, tag="clear"):
    """One clearing by hand, of one equivalent or of all; a dry run changes nothing."""

    equivalent: str | None = None
    max_depth: Annotated[int, Meta(ge=1, le=12)] = 6
    dry_run: bool = False


class OpenLine(Command, frozen=True, tag="open_line", rename=LINE):
    """A new line, or a closed one opened again."""

    creditor: str
    debtor: str
    equivalent: str
    limit: str


class SetLimit(Command, frozen=True, tag="set_limit", rename=LINE):
    """Not below the debt."""

    creditor: str
    debtor: str
    equivalent: str
    limit: str


class CloseLine(Command, frozen=True, tag="close_line", rename=LINE):
    """Refused while there is debt in either direction."""

    creditor: str
    debtor: str
    equivalent: str


class Freeze(Command, frozen=True, tag="freeze"):
    """Suspend a participant and, unless told otherwise, its lines."""

    participant: str
    lines: bool = True


class Configure(Command, frozen=True, tag="configure"):
    """Change settings from the next tick on; values as texts, by name or by variable."""

    settings: dict[str, str]


class Pause(Command, frozen=True, tag="pause"):
    pass


class Resume(Command, frozen=True, tag="resume"):
    pass


class Stop(Command, frozen=True, tag="stop"):
    source: str | None = None
    reason: str | None = None


class Restart(Command, frozen=True, tag="restart"):
    """Tick 0 again, with the ledger of the scenario."""


Commands: TypeAlias = (
    Tick
    | SetIntensity
    | Pay
    | Clear
    | OpenLine
    | SetLimit
    | CloseLine
    | Freeze
    | Configure
    | Pause
    | Resume
    | Stop
    | Restart
)


class Edge(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """A step of value or of debt between two participants."""

    source: str
    target: str


class RouteView(Struct, frozen=True):
    path: tuple[str, ...]
    amount: str


class NodePatch(Struct, frozen=True):
    """Where a participant stands: what it is owed less what it owes."""

    id: str
    net_balance: str
    net_balance_atoms: str
    net_sign: int


class EdgePatch(Struct, frozen=True):
    """A line as it stands; `source` is the creditor."""

    source: str
    target: str
    used: str
    available: str
    trust_limit: str


class Failure(Struct, frozen=True):
    code: str
    message: str
    details: dict[str, Json] = {}


class TxUpdated(Struct, frozen=True, tag="tx.updated", rename=TRANSFER):
    """A payment was made. `seq` is its place in the plan of the tick, None for one by hand."""

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


class TxFailed(Struct, frozen=True, tag="tx.failed", rename=TRANSFER):
    tick_index: int
    seq: int | None
    equivalent: str
    sender: str
    receiver: str
    amount: str
    error: Failure


class PlanStep(Struct, frozen=True):
    at_ms: int
    highlight_edges: tuple[Edge, ...]


class ClearingPlan(Struct, frozen=True, tag="clearing.plan"):
    tick_index: int
    equivalent: str
    plan_id: str
    steps: tuple[PlanStep, ...]


class ClearingDone(Struct, frozen=True, tag="clearing.done"):
    """`optimum` is the reduction that the best circulation would have reached; only where it was asked for."""

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
    """What the adaptive policy decided and from what; the rate as numerator and denominator."""

    tick_index: int
    equivalent: str
    should_run: bool
    reason: str
    rate: tuple[int, int]
    max_depth: int
    time_budget_ms: int
    cooldown: int


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
    """A position is not where the payments say; the ledger and its history disagree."""

    tick_index: int
    equivalent: str
    severity: str
    total_drift: str
    drifts: tuple[DriftRow, ...]
    source: str


class Note(Struct, frozen=True, tag="note"):
    """What an event of the timeline did or would have done, and other things worth writing down."""

    tick_index: int
    sim_time_ms: int
    scenario: dict[str, Json]


class Ticked(Struct, frozen=True, tag="tick"):
    """A tick is over: what it did, the values measured in it, the digests of all ticks so far."""

    tick_index: int
    sim_time_ms: int
    budget: int
    planned: int
    committed: int
    rejected: int
    errors: int
    timeouts: int
    dropped: int
    metrics: dict[str, dict[str, str | None]]
    digests: dict[str, str]


class LastError(Struct, frozen=True):
    code: str
    message: str
    details: dict[str, Json] = {}


class RunStatus(Struct, frozen=True, tag="run_status"):
    """Where a run stands; told at each change and by each accepted command."""

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
