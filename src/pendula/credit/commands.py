"""Input of a run: its configuration and its commands.

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
    """The behaviour that plans payments: a name registered with `register_behaviour`, and its version."""

    name: str
    version: int


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Configuration of a run. `engine` "external" asks another system for each payment; `patches` go into
    events.

    `digest_ledger` false skips the digest of the ledger, which takes most of a tick at a hundred thousand lines.
    `checkpoint` is the state of another run of the same scenario to continue from.
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
    checkpoint: Json | UnsetType = UNSET


class Command(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all commands; unknown fields are rejected."""


class Tick(Command, frozen=True, tag="tick"):
    """Run `count` ticks. The guardrail of clearing checks `in_flight` and `queue_depth`, the load of the caller."""

    count: Annotated[int, Meta(ge=1, le=1000)] = 1
    in_flight: Annotated[int, Meta(ge=0)] = 0
    queue_depth: Annotated[int, Meta(ge=0)] = 0


class SetIntensity(Command, frozen=True, tag="set_intensity"):
    """Takes effect at the next tick."""

    percent: Percent


class Pay(Command, frozen=True, tag="pay", rename=TRANSFER):
    """Make one payment. Repeating a key returns the first answer and pays nothing."""

    sender: str
    receiver: str
    equivalent: str
    amount: str
    key: Key | None = None


class Clear(Command, frozen=True, tag="clear"):
    """Clear one equivalent or all; a dry run changes nothing."""

    equivalent: str | None = None
    max_depth: Annotated[int, Meta(ge=1, le=12)] = 6
    dry_run: bool = False


class OpenLine(Command, frozen=True, tag="open_line", rename=LINE):
    """Open a new line or reopen a closed one."""

    creditor: str
    debtor: str
    equivalent: str
    limit: str


class SetLimit(Command, frozen=True, tag="set_limit", rename=LINE):
    """Change a limit; it cannot go below the debt."""

    creditor: str
    debtor: str
    equivalent: str
    limit: str


class CloseLine(Command, frozen=True, tag="close_line", rename=LINE):
    """Close a line; refused while there is debt in either direction."""

    creditor: str
    debtor: str
    equivalent: str


class Freeze(Command, frozen=True, tag="freeze"):
    """Suspend a participant and, unless `lines` is false, its lines."""

    participant: str
    lines: bool = True


class Configure(Command, frozen=True, tag="configure"):
    """Change settings from the next tick on; values as text, by name or by variable."""

    settings: dict[str, str]


class Pause(Command, frozen=True, tag="pause"):
    pass


class Resume(Command, frozen=True, tag="resume"):
    pass


class Stop(Command, frozen=True, tag="stop"):
    source: str | None = None
    reason: str | None = None


class Restart(Command, frozen=True, tag="restart"):
    """Return to tick 0 with the ledger of the scenario."""


class Abandon(Command, frozen=True, tag="abandon"):
    """End an active run in error because the process that ran it is gone."""


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
    | Abandon
)
