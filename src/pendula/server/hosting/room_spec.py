"""What a room is to the server: its words, its engines or its service, its routes, and what it may use of its host.

A room is described once, as a value; nothing here knows which rooms there are.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from fastapi import APIRouter
from msgspec import Struct
from starlette.types import ASGIApp

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine, Outside
from pendula.kernel.errors import PendulaError
from pendula.kernel.wallclock import WallClock
from pendula.server.hosting.engine_host import EngineHost
from pendula.server.metrics import Metrics
from pendula.server.settings import Settings
from pendula.server.views import State


class Demo(Struct, frozen=True):
    """A living example: an engine that is fed for ever, each command chosen by its state and how many there were."""

    engine: str
    config: Json
    next_command: Callable[[Engine[Any, Any], int], object]
    pause_seconds: int = 1


class Store(Protocol):
    """What a room keeps beside its engines, one for each server: opened before them, closed after them."""

    @property
    def outside(self) -> Outside:
        """Who answers the engines of the room."""
        ...

    async def engine_opened(self, host: EngineHost) -> None:
        """Told of each engine that was opened, before its time goes on."""
        ...

    async def close(self) -> None: ...


class Service(Protocol):
    """A room that is not made of engines, while it is served."""

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


class Host(Protocol):
    """The server, as far as a room may use it; the `Supervisor` is one."""

    @property
    def settings(self) -> Settings: ...

    @property
    def clock(self) -> WallClock: ...

    @property
    def metrics(self) -> Metrics: ...

    def hosts(self) -> Iterator[EngineHost]:
        """The open engines of all rooms."""
        ...

    def store(self, room: str) -> Store: ...

    def service(self, room: str) -> Service: ...


class RoomSpec(Struct, frozen=True):
    """One room. `engines` are made, with their configurations, where they do not exist yet; `outside` answers them.

    A room that `grows` gets engines by its own routes while the server runs, up to the limit `engines`; `views` are the
    shapes of the bodies that its routes take and give. A room with a `store` keeps something in a directory of its own,
    and the store answers its engines. For a room that keeps time, `advance` makes the command that lets it go on.

    A room without `engine` is one `service`. `schemas` are shapes of bodies that no struct describes; `around` is what
    stands around the gates, for the room's own paths.
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
    grows: bool = False
    store: Callable[[Host, Path], Store] | None = None
    advance: Callable[[int], object] | None = None
    service: Callable[[Host], Service] | None = None
    schemas: Mapping[str, Any] = {}
    around: Callable[[ASGIApp, Host], ASGIApp] | None = None

    @property
    def kind(self) -> type[Engine[Any, Any]]:
        """What the engines of the room are; only for rooms that have some."""
        assert self.engine is not None, self.name
        return self.engine
