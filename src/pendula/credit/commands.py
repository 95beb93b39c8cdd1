"""What goes into a run: its configuration and its commands.

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
    `checkpoint` is the state of another run of the same scenario, which this one goes on from.
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


class Abandon(Command, frozen=True, tag="abandon"):
    """The process that let the ticks pass is gone: a run that had not ended ends in error."""


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
