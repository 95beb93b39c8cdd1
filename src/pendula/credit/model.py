"""The model of a credit network: participants, trustlines, profiles, events of a timeline, a scenario.

A line goes from the creditor to the debtor: the debtor may owe the creditor up to the limit. Money is in atoms.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

from pendula.credit.money import text
from pendula.kernel.canonical import Json

ID_FORM = r"[A-Za-z0-9_.:-]{1,200}"
CODE_FORM = r"[A-Z0-9_]{1,16}"


class Code(StrEnum):
    """Error codes of `tx.failed` and `last_error`."""

    ROUTING_NO_CAPACITY = "ROUTING_NO_CAPACITY"
    ROUTING_NO_ROUTE = "ROUTING_NO_ROUTE"
    ROUTING_REJECTED = "ROUTING_REJECTED"
    TRUSTLINE_LIMIT_EXCEEDED = "TRUSTLINE_LIMIT_EXCEEDED"
    TRUSTLINE_NOT_ACTIVE = "TRUSTLINE_NOT_ACTIVE"
    TRUSTLINE_REJECTED = "TRUSTLINE_REJECTED"
    EQUIVALENT_NOT_FOUND = "EQUIVALENT_NOT_FOUND"
    PARTICIPANT_NOT_FOUND = "PARTICIPANT_NOT_FOUND"
    TX_NOT_FOUND = "TX_NOT_FOUND"
    INVALID_INPUT = "INVALID_INPUT"
    CONFLICT = "CONFLICT"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
    INVALID_SIGNATURE = "INVALID_SIGNATURE"
    PAYMENT_REJECTED = "PAYMENT_REJECTED"
    PAYMENT_TIMEOUT = "PAYMENT_TIMEOUT"
    INTERNAL_ERROR = "INTERNAL_ERROR"


TECHNICAL = frozenset({Code.PAYMENT_TIMEOUT, Code.INTERNAL_ERROR})


class ParticipantType(StrEnum):
    PERSON = "person"
    BUSINESS = "business"
    HUB = "hub"


class ParticipantStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    LEFT = "left"
    DELETED = "deleted"
    FROZEN = "frozen"


class LineStatus(StrEnum):
    ACTIVE = "active"
    FROZEN = "frozen"
    CLOSED = "closed"


class Participant(Struct, frozen=True):
    id: str
    type: ParticipantType
    name: str | None = None
    status: ParticipantStatus = ParticipantStatus.ACTIVE
    group: str | None = None
    profile: str | None = None


class Policy(Struct, frozen=True):
    """Permissions of a line; `mediates` is false if payments may only end at the creditor."""

    auto_clearing: bool = True
    mediates: bool = True
    blocked: tuple[str, ...] = ()


OPEN_POLICY = Policy()


class Trustline(Struct, frozen=True):
    """`limit` in atoms."""

    equivalent: str
    creditor: str
    debtor: str
    limit: int
    policy: Policy = OPEN_POLICY
    status: LineStatus = LineStatus.ACTIVE


class Profile(Struct, frozen=True):
    """A profile merged with the profile it extends; `props` as in the scenario."""

    id: str
    props: Mapping[str, Json]


class EventType(StrEnum):
    PAYMENT = "payment"
    CLEARING = "clearing"
    STRESS = "stress"
    INJECT = "inject"
    NOTE = "note"


class Multiplier(Struct, frozen=True):
    """`scope` is "all", "group:<id>" or "profile:<id>"."""

    scope: str
    value: float


class AddParticipant(Struct, frozen=True, tag="add_participant"):
    participant: Participant
    lines: tuple[Trustline, ...] = ()


class CreateTrustline(Struct, frozen=True, tag="create_trustline"):
    line: Trustline


class FreezeParticipant(Struct, frozen=True, tag="freeze_participant"):
    participant: str
    freeze_lines: bool = True


class InjectDebt(Struct, frozen=True, tag="inject_debt"):
    """`amount` in atoms, whole cents."""

    creditor: str
    debtor: str
    equivalent: str
    amount: int


Effect = AddParticipant | CreateTrustline | FreezeParticipant | InjectDebt


class DatedPayment(Struct, frozen=True):
    """A payment scheduled by the scenario; `amount` in atoms, whole cents."""

    sender: str
    receiver: str
    equivalent: str
    amount: int


class DatedClearing(Struct, frozen=True):
    """A clearing scheduled by the scenario, of one equivalent or, with None, of all."""

    equivalent: str | None


EFFECTS_MOST = 500  # of one event; the rest is skipped


class TimelineEvent(Struct, frozen=True):
    """`time` is None for a time in words, which is never due. `most` bounds the sum of injected debts, in atoms."""

    index: int
    type: EventType
    time: int | None
    description: str | None = None
    metadata: Mapping[str, Json] = {}
    duration: int = 0
    multipliers: tuple[Multiplier, ...] = ()
    effects: tuple[Effect, ...] = ()
    actions: tuple[DatedPayment | DatedClearing, ...] = ()
    most: int | None = None


Ratio = Annotated[Decimal, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]


class Warmup(Struct, frozen=True, forbid_unknown_fields=True):
    ticks: Annotated[int, Meta(ge=0)] = 0
    floor: Ratio = Decimal("0.1")


class Drift(Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = False
    growth_rate: Ratio = Decimal("0.05")
    decay_rate: Ratio = Decimal("0.02")
    max_growth: Annotated[Decimal, Meta(extra_json_schema={"minimum": 1})] = Decimal(2)
    min_limit_ratio: Ratio = Decimal("0.3")
    overload_threshold: Ratio = Decimal("0.8")


class Flow(Struct, frozen=True, forbid_unknown_fields=True):
    """The bonus is 0.15 where `flow` is given, 0 where it is not."""

    enabled: bool = False
    default_affinity: Ratio = Decimal("0.7")
    reciprocity_bonus: Ratio = Decimal("0.15")


NO_FLOW = Flow(reciprocity_bonus=Decimal(0))


class Scenario(Struct, frozen=True):
    """The start of a run: participants by id, lines by (equivalent, creditor, debtor), codes in order."""

    id: str
    equivalents: tuple[str, ...]
    participants: tuple[Participant, ...]
    lines: tuple[Trustline, ...]
    groups: tuple[str, ...] = ()
    profiles: Mapping[str, Profile] = {}
    events: tuple[TimelineEvent, ...] = ()
    warmup: Warmup = Warmup()
    drift: Drift = Drift()
    flow: Flow = NO_FLOW
    name: str | None = None
    seed: int | None = None


def tx_name(seed: int, tick: int, seq: int | str, content: tuple[str, ...]) -> str:
    """The id of a payment, from seed, tick and content: sender, receiver, equivalent and amount."""
    return "tx_" + sha256("|".join((str(seed), str(tick), str(seq), *content)).encode()).hexdigest()[:24]


def idempotency_key(run_id: str, at_ms: int, sender: str, receiver: str, equivalent: str, amount: int, seq: int) -> str:
    """The key of a planned payment."""
    whole = f"{run_id}|{at_ms}|{sender}|{receiver}|{equivalent}|{text(amount)}|{seq}"
    return "sim:" + sha256(whole.encode()).hexdigest()[:32]


def clearing_key(run_id: str, plan_id: str) -> str:
    """The key of a clearing at an outside service."""
    return "sim:" + sha256(f"{run_id}|{plan_id}".encode()).hexdigest()[:32]


def plan_name(seed: int, tick: int, equivalent: str, ordinal: int) -> str:
    """The id of a clearing."""
    return "plan_" + sha256(f"{seed}:{tick}:{equivalent}:{ordinal}".encode()).hexdigest()[:12]


def headless_name(scenario_digest: str, seed: int) -> str:
    """The id of a run without a server."""
    return "run_" + sha256(f"{scenario_digest}|{seed}".encode()).hexdigest()[:8]
