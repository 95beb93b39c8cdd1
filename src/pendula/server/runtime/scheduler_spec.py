"""The description of a scheduler for the server: engines or a service, forms, routes, error translation, and its host.

Nothing here depends on a particular scheduler. Examples in the forms of commands fit the present state of the engine:
sent unchanged, they are accepted.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import msgspec
from fastapi import APIRouter
from msgspec import Struct
from msgspec.inspect import BoolType, Field, IntType, NoneType, StrType, StructType, Type, UnionType, type_info
from msgspec.structs import force_setattr

from pendula.demo import Demo
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Ticket
from pendula.kernel.engine import Engine, Outcome, Outside
from pendula.kernel.errors import PendulaError
from pendula.kernel.journal import FileJournal, Journal
from pendula.kernel.limits import ENGINES, JOURNAL_BYTES
from pendula.kernel.wallclock import WallClock
from pendula.server.http.envelope import ErrorTranslator
from pendula.server.monitoring import Metrics
from pendula.server.runtime.engine_host import EngineHost, Timed
from pendula.server.runtime.past import Incidents
from pendula.server.settings import Settings
from pendula.server.views import Became, Effect, EngineSummary, State

KINDS: Mapping[type[Type], str] = {IntType: "integer", StrType: "text", BoolType: "yes_no"}

# How long a probe waits for the check; most probes time out after one or a few seconds.
READY_SECONDS = 1.0
# How long a good result stays valid; longer than a flush takes on a loaded machine.
GOOD_SECONDS = 30.0
# The journal limit of a scheduler whose engines come and go is divided into at least this many shares.
SHARES = 8


class FieldView(Struct, frozen=True):
    """One field of a command; `kind` is integer, text, yes_no, or json for anything else. `choices` are suggestions."""

    name: str
    kind: str
    required: bool
    example: Any = None
    choices: list[str] = []


class FormView(Struct, frozen=True):
    """A command: its `type` with the field values, or with one object of them in the list `inside`."""

    title: str
    type: str
    fields: list[FieldView]
    inside: str | None = None


class QuestionView(Struct, frozen=True):
    title: str
    question: Any


class ChoicesView(Struct, frozen=True):
    """Questions for `why` and commands to send, the most useful first."""

    questions: list[QuestionView] = []
    commands: list[FormView] = []


def form(
    title: str,
    command: type[Struct],
    examples: Mapping[str, Json] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
    only: Sequence[str] | None = None,
) -> FormView:
    """The form of a command. Optional fields without an example stay empty; `only` selects the shown fields."""
    return FormView(title, str(command.__struct_config__.tag), _fields(command, examples, choices, only))


def form_inside(title: str, command: type[Struct], inside: str, fields: Sequence[FieldView]) -> FormView:
    """The form of one element of a list in a command."""
    return FormView(title, str(command.__struct_config__.tag), list(fields), inside)


def fields_of(
    kind: type[Struct],
    examples: Mapping[str, Json],
    choices: Mapping[str, Sequence[str]] | None = None,
) -> list[FieldView]:
    """The fields of a struct that have an example, in the order of the examples."""
    found = {field.name: field for field in _fields(kind, examples, choices, tuple(examples))}
    return [found[name] for name in examples]


def _fields(
    kind: type[Struct],
    examples: Mapping[str, Json] | None,
    choices: Mapping[str, Sequence[str]] | None,
    only: Sequence[str] | None,
) -> list[FieldView]:
    info = type_info(kind)
    assert isinstance(info, StructType)
    return [
        _field(one, (examples or {}).get(one.name), (choices or {}).get(one.name, ()))
        for one in info.fields
        if only is None or one.name in only
    ]


def _field(field: Field, example: Json, choices: Sequence[str]) -> FieldView:
    return FieldView(field.encode_name, _kind(field.type), field.required, msgspec.to_builtins(example), list(choices))


def _kind(type: Type) -> str:
    if isinstance(type, UnionType):
        given = [one for one in type.types if not isinstance(one, NoneType)]
        return _kind(given[0]) if len(given) == 1 else "json"
    return next((name for kind, name in KINDS.items() if isinstance(type, kind)), "json")


class ReadinessProbe:
    """The last good result of `look`, which raises an error, and the running check.

    `slow` is the code for a store that does not answer in time.
    """

    def __init__(self, look: Callable[[], None], *, slow: str) -> None:
        self._look = look
        self._slow = slow
        # A separate thread: a full shared pool says nothing about the store.
        self._thread = ThreadPoolExecutor(1, "pendula-ready")
        self._under_way: asyncio.Future[str | None] | None = None
        self._good_until = 0.0

    async def trouble(self) -> str | None:
        """The error code; None if the store is ready, or was ready recently and is slow."""
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.get_running_loop().run_in_executor(self._thread, self._found)
        try:
            async with asyncio.timeout(READY_SECONDS):
                found = await asyncio.shield(self._under_way)
        except TimeoutError:
            found = self._slow
        if found == self._slow and time.monotonic() < self._good_until:
            return None
        return found

    def _found(self) -> str | None:
        try:
            self._look()
        except PendulaError as error:
            return error.code
        self._good_until = time.monotonic() + GOOD_SECONDS
        return None

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)


class Store(Protocol):
    """State that a scheduler shares between its engines; opened before them and closed after them."""

    @property
    def outside(self) -> Outside:
        """The outside that answers the engines of the scheduler."""
        ...

    async def engine_opened(self, host: EngineHost) -> None:
        """Called for each opened engine, before its clock starts."""
        ...

    async def engine_closed(self, host: EngineHost) -> None:
        """Called for each engine that is closed while others continue."""
        ...

    async def close(self) -> None: ...


class Service(Protocol):
    """A served scheduler without engines."""

    @property
    def state(self) -> State: ...

    @property
    def failure(self) -> PendulaError | None:
        """Why it could not be opened; None while it is ready or starting."""
        ...

    async def open(self, folder: Path) -> None:
        """Open the data in `folder`, or elsewhere; a failure is stored, not raised."""
        ...

    async def not_ready(self) -> str | None:
        """The code of what prevents work, permanently or temporarily; None if ready."""
        ...

    def stop(self) -> None:
        """Accept no more work and release waiting callers."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class KeepsTime(Protocol):
    """A service with a stored time that never goes back."""

    def ahead(self) -> int:
        """How many microseconds its time is ahead of the system clock; 0 if it is not."""
        ...


@runtime_checkable
class KeepsFile(Protocol):
    """A service whose store is one file, which may be removed or replaced while open."""

    def is_file_there(self) -> bool: ...


class Host(Protocol):
    """The server as a scheduler uses it, implemented by `Supervisor`."""

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
    """A requested engine: its name, configuration, first commands, and files to store beside its journal, by name."""

    name: str
    config: Json
    commands: Sequence[object] = ()
    files: Mapping[str, bytes] = {}


class Made(Protocol):
    """The response to the creation of an engine."""

    @classmethod
    def of(cls, name: str, tickets: Sequence[Ticket[Any]]) -> Self:
        """The response for the first commands."""
        ...


class Sentences(Struct, frozen=True, kw_only=True):
    """OpenAPI descriptions of the lifecycle routes."""

    make: str
    close: str
    open: str
    remove: str


class Lifecycle(Struct, frozen=True, kw_only=True):
    """Creation and removal of engines over HTTP (`routes/lifecycle`), up to the limit `engines`.

    `noun` is the path parameter, `plural` the member of `listing`. `begin` is a FastAPI dependency that reads a new
    engine from the request, `takes` documents the body. `made` is the response, or else `summary`.
    """

    noun: str
    plural: str
    begin: Callable[..., Awaitable[New]]
    takes: Mapping[str, Any]
    summary: type[EngineSummary]
    listing: type[Struct]
    sentences: Sentences
    made: type[Made] | None = None


class CommandRoute(Struct, frozen=True):
    """A route `POST …/ENGINE/name` for one kind of command, which `command` makes of the engine and the body."""

    name: str
    sentence: str
    command: Callable[[EngineHost, Any], Awaitable[object]]
    body: type | None = None
    yaml: bool = False
    title: str = ""


def changed_something(_command: object, outcome: Outcome[Any]) -> Became:
    """A command without an event and without an answer had no effect."""
    return Became(Effect.DONE if outcome.events or outcome.answer is not None else Effect.NONE)


class SchedulerSpec(Struct, frozen=True):
    """One scheduler.

    `engines`: configurations of engines that are created if missing. `outside`: answers their questions.
    `lifecycle`: engines can be created over HTTP. `schemas`: shapes of bodies without a struct. `store`: shared state
    in its own directory, which then answers the engines.
    `timed`: of an engine in real time, creates the command that advances it to a time and then does a command, if any.
    `service`: replaces engines for a scheduler without `engine`.
    `prefix`: of all its paths, by default `/api/v1/NAME`; `errors` translates errors below it.
    `commanded`: whether engines accept commands over HTTP.
    `journal`: wraps the journal on disk, for a scheduler that must continue without a disk.
    `snapshot_every`: commands between two snapshots, instead of the setting.
    `incidents`: the events that report an incident. `bound`: raises `TooMuchAtOnce` for a command that would produce
    too much. `became`: the effect of an applied command. `choices`: questions and command forms for the present state.
    """

    name: str
    title: str
    sentence: str
    engine: type[Engine[Any, Any]] | None = None
    engines: Mapping[str, Json] = {}
    demo: Demo | None = None
    outside: Outside | None = None
    routers: tuple[APIRouter, ...] = ()
    command_routes: tuple[CommandRoute, ...] = ()
    lifecycle: Lifecycle | None = None
    store: Callable[[Host, Path], Store] | None = None
    timed: Timed | None = None
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
        """The engine class; only for schedulers with engines."""
        assert self.engine is not None, self.name
        return self.engine

    def journal_bytes(self, engines: int, settings: Settings) -> int:
        """The journal size limit of each of `engines` engines, open or closed: an equal share of the scheduler's limit,
        so that none can starve another. If engines can be created, some shares are reserved for new ones, because
        cutting a long journal when more arrive is slow."""
        least = min(SHARES, settings.allowed(ENGINES)) if self.lifecycle else 1
        return settings.allowed(JOURNAL_BYTES) // max(least, engines)
