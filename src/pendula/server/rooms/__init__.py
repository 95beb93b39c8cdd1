"""The rooms by name, each imported only when it is served; no room knows another.

actions     worlds at `/api/v1/actions`
credit      scenarios and runs at `/api/v1/simulator`
fleet       fleets at `/api/v1/fleet`
jobs        the scheduler at `/scheduler`
playback    players and the library of channels at `/api/v1/playback`
tally       the counting room of the demo
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec

from pendula.kernel.errors import MissingExtra
from pendula.server.hosting.room_spec import RoomSpec
from pendula.server.settings import Settings

# Where a room is, or what makes it out of the settings.
ROOMS: Mapping[str, str] = {
    "actions": "pendula.server.rooms.actions.routes:ROOM",
    "credit": "pendula.server.rooms.credit.room:room_for",
    "fleet": "pendula.server.rooms.fleet.routes:room_for",
    "jobs": "pendula.server.rooms.jobs.routes:room_for",
    "playback": "pendula.server.rooms.playback.routes:ROOM",
}
# The rooms that need more than a plain installation brings: their extra has the name of the room.
NEEDS: Mapping[str, tuple[str, ...]] = {"fleet": ("numpy", "shapely")}
# Shown while there is nothing better to show.
DEMO_ROOMS: Mapping[str, str] = {"tally": "pendula.server.rooms.tally:ROOM"}


def rooms_for(settings: Settings) -> tuple[RoomSpec, ...]:
    """The rooms a server with these settings has, in the order they are shown."""
    missing = left_out()
    wanted = [target for name, target in ROOMS.items() if name not in missing]
    return tuple(_imported(target, settings) for target in [*wanted, *(DEMO_ROOMS.values() if settings.demo else ())])


def left_out() -> dict[str, str]:
    """The rooms that cannot be served here, each with a sentence that says what to install."""
    absent = {name: [module for module in modules if find_spec(module) is None] for name, modules in NEEDS.items()}
    return {
        name: MissingExtra.of(name, f"The room {name} is left out: it", modules).message
        for name, modules in absent.items()
        if modules
    }


def _imported(target: str, settings: Settings) -> RoomSpec:
    module, name = target.split(":")
    found: RoomSpec | Callable[[Settings], RoomSpec] = getattr(import_module(module), name)
    return found if isinstance(found, RoomSpec) else found(settings)
