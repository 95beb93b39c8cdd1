"""What a scheduler is to the server: its words, its engines or its service, its routes, and what it may use of its
host.

A scheduler is described once, as a value; nothing here knows which schedulers there are.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from fastapi import APIRouter
from msgspec import Struct
from msgspec.structs import force_setattr

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine, Outcome, Outside
from pendula.kernel.errors import PendulaError
from pendula.kernel.journal import FileJournal, Journal
from pendula.kernel.limits import ENGINES, JOURNAL_BYTES
from pendula.kernel.wallclock import WallClock
from pendula.server.hosting.choices import ChoicesView
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.hosting.moments import Incidents
from pendula.server.http.envelope import ErrorTranslator
from pendula.server.metrics import Metrics
from pendula.server.settings import Settings
from pendula.server.views import Became, Effect, EngineSummary, State

# Into so many parts the limit of journals is divided at least, where engines come and go.
SHARES = 8


class Demo(Struct, frozen=True):
    """A living example: an engine that is fed for ever, each command chosen by its state and how many there were."""

    engine: str
    config: Json
    next_command: Callable[[Engine[Any, Any], int], object]
    pause_seconds: int = 1


class Store(Protocol):
    """What a scheduler keeps beside its engines, one for each server: opened before them, closed after them."""

    @property
    def outside(self) -> Outside:
        """Who answers the engines of the scheduler."""
        ...

    async def engine_opened(self, host: EngineHost) -> None:
        """Told of each engine that was opened, before its time goes on."""
        ...

    async def close(self) -> None: ...


class Service(Protocol):
    """A scheduler that is not made of engines, while it is served."""

    @property
    def state(self) -> State: ...

    @property
    def failure(self) -> PendulaError | None:
        """Why it could not be opened; None while it is well or starting."""
        ...

    async def open(self, folder: Path) -> None:
        """Open what is kept in `folder`, or elsewhere; a failure is kept, not raised."""
        ...

    async def not_ready(self) -> str | None:
        """The code of what keeps it from working, for good or for now; None when nothing does."""
        ...

    def stop(self) -> None:
        """Take nothing more, and let go whoever waits."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class KeepsTime(Protocol):
    """A service that remembers the time it has handed out, and never goes back behind it."""

    def ahead(self) -> int:
        """By how many microseconds its time is ahead of the clock of the machine; 0 when it is not."""
        ...


@runtime_checkable
class KeepsFile(Protocol):
    """A service whose store is one file, which can be removed or replaced while it is open."""

    def is_file_there(self) -> bool: ...


class Host(Protocol):
    """The server, as far as a scheduler may use it; the `Supervisor` is one."""

    @property
    def settings(self) -> Settings: ...

    @property
    def clock(self) -> WallClock: ...

    @property
    def metrics(self) -> Metrics: ...

    def hosts(self) -> Iterator[EngineHost]:
        """The open engines of all schedulers."""
        ...

    def store(self, scheduler: str) -> Store: ...

    def service(self, scheduler: str) -> Service: ...


class New(Struct, frozen=True):
    """An engine as it is asked for: its name, its configuration, the commands that it begins with, and files that lie
    beside its journal, by their names."""

    name: str
    config: Json
    commands: Sequence[object] = ()
    files: Mapping[str, bytes] = {}


class Made(Protocol):
    """A view of an engine that was just made, told to whoever asked for it."""

    @classmethod
    def of(cls, name: str, outcomes: Sequence[Outcome[Any]]) -> Self:
        """The view, out of what the first commands did."""
        ...


class Sentences(Struct, frozen=True, kw_only=True):
    """What the OpenAPI document says of the routes by which engines come and go."""

    make: str
    close: str
    open: str
    remove: str


class Lifecycle(Struct, frozen=True, kw_only=True):
    """How engines of a scheduler come and go over HTTP (`routes/lifecycle`), up to the limit `engines`.

    `noun` is the parameter in paths, `plural` the member of `listing`. `begin` is a FastAPI dependency: it reads what a
    new engine needs from the request, `takes` documents the body. `made` is the answer, `summary` where there is none.
    """

    noun: str
    plural: str
    begin: Callable[..., Awaitable[New]]
    takes: Mapping[str, Any]
    summary: type[EngineSummary]
    listing: type[Struct]
    sentences: Sentences
    made: type[Made] | None = None


def changed_something(_command: object, outcome: Outcome[Any]) -> Became:
    """A command without an event and without an answer had no effect."""
    return Became(Effect.DONE if outcome.events or outcome.answer is not None else Effect.NONE)


class SchedulerSpec(Struct, frozen=True):
    """One scheduler. `engines` are made, with their configurations, where they do not exist yet; `outside` answers
    them.

    A scheduler with a `lifecycle` gets engines over HTTP while the server runs; `views` are the shapes of the bodies
    that its routes take and give. A scheduler with a `store` keeps something in a directory of its own, and the store
    answers its engines. For a scheduler that keeps time, `advance` makes the command that lets it go on.

    A scheduler without `engine` is one `service`. `schemas` are shapes of bodies that no struct describes. All paths of
    a scheduler begin with its `prefix`, by default `/api/v1/NAME`; what goes wrong there is put into the words of
    `errors`. Engines that are not `commanded` take no commands from outside: their scheduler makes them all. `journal`
    makes the journal of an engine out of the one on the disk, for a scheduler that has reasons of its own to go on
    without a disk; `snapshot_every` is how many commands it has between two snapshots, where it does not leave that to
    the settings. `incidents` names the events that tell of something that went wrong. `bound` looks at a command before
    it is applied, and raises `TooMuchAtOnce` where it would produce more than one command may. `became` says what
    became of a command that was applied. `choices` says what can be asked of an engine as it stands.
    """

    name: str
    title: str
    sentence: str
    engine: type[Engine[Any, Any]] | None = None
    engines: Mapping[str, Json] = {}
    demo: Demo | None = None
    outside: Outside | None = None
    routers: tuple[APIRouter, ...] = ()
    views: tuple[type, ...] = ()
    lifecycle: Lifecycle | None = None
    store: Callable[[Host, Path], Store] | None = None
    advance: Callable[[int], object] | None = None
    service: Callable[[Host], Service] | None = None
    schemas: Mapping[str, Any] = {}
    errors: Callable[[Host], ErrorTranslator] | None = None
    prefix: str = ""
    commanded: bool = True
    journal: Callable[[FileJournal], Journal] | None = None
    snapshot_every: int | None = None
    incidents: Incidents = {}
    bound: Callable[[Any, Any], None] | None = None
    became: Callable[[Any, Outcome[Any]], Became] = changed_something
    choices: Callable[[Any], ChoicesView] | None = None

    def __post_init__(self) -> None:
        if not self.prefix:
            force_setattr(self, "prefix", f"/api/v1/{self.name}")

    @property
    def kind(self) -> type[Engine[Any, Any]]:
        """What the engines of the scheduler are; only for schedulers that have some."""
        assert self.engine is not None, self.name
        return self.engine

    def journal_bytes(self, engines: int, settings: Settings) -> int:
        """How large the journal of each of so many engines may be, open or shut. The limit is the scheduler's: they
        share it
        evenly, so that none can starve another. Where more may come any time there is room for some of them: a long
        journal is slow to open, and is cut when more come than that."""
        least = min(SHARES, settings.allowed(ENGINES)) if self.lifecycle else 1
        return settings.allowed(JOURNAL_BYTES) // max(least, engines)
