"""The rooms by name, each imported only when it is served; and what the server needs to know of one."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fastapi import APIRouter
from msgspec import Struct
from starlette.types import ASGIApp

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine, Outside
from pendula.kernel.errors import PendulaError
from pendula.server.settings import Settings
from pendula.server.views import State

if TYPE_CHECKING:
    from pendula.server.hosting.engine_host import EngineHost
    from pendula.server.hosting.supervisor import House


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

    async def engine_opened(self, host: "EngineHost") -> None:
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
    store: Callable[["House", Path], Store] | None = None
    advance: Callable[[int], object] | None = None
    service: Callable[["House"], Service] | None = None
    schemas: Mapping[str, Any] = {}
    around: Callable[[ASGIApp, "House"], ASGIApp] | None = None

    @property
    def kind(self) -> type[Engine[Any, Any]]:
        """What the engines of the room are; only for rooms that have some."""
        assert self.engine is not None, self.name
        return self.engine


# Where a room is, or what makes it out of the settings.
ROOMS: Mapping[str, str] = {
    "actions": "pendula.server.rooms.actions.routes:ROOM",
    "jobs": "pendula.server.rooms.jobs.routes:room_for",
    "playback": "pendula.server.rooms.playback.routes:ROOM",
}
# Shown while there is nothing better to show.
DEMO_ROOMS: Mapping[str, str] = {"tally": "pendula.server.rooms.tally:ROOM"}


def rooms_for(settings: Settings) -> tuple[RoomSpec, ...]:
    """The rooms a server with these settings has, in the order they are shown."""
    targets = [*ROOMS.values(), *(DEMO_ROOMS.values() if settings.demo else ())]
    return tuple(_imported(target, settings) for target in targets)


def _imported(target: str, settings: Settings) -> RoomSpec:
    module, name = target.split(":")
    found: RoomSpec | Callable[[Settings], RoomSpec] = getattr(import_module(module), name)
    return found if isinstance(found, RoomSpec) else found(settings)
