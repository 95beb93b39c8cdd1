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
