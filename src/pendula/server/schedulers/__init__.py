"""The schedulers by name, each imported only when it is served; no scheduler knows another.

actions     worlds at `/api/v1/actions`
credit      scenarios and runs at `/api/v1/simulator`
fleet       fleets at `/api/v1/fleet`
jobs        the scheduler at `/scheduler`
playback    players and the library of channels at `/api/v1/playback`
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec

from pendula.kernel.errors import MissingExtra
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.settings import Settings

# Where a scheduler is, or what makes it out of the settings.
SCHEDULERS: Mapping[str, str] = {
    "actions": "pendula.server.schedulers.actions.routes:SCHEDULER",
    "credit": "pendula.server.schedulers.credit.scheduler:scheduler_for",
    "fleet": "pendula.server.schedulers.fleet.routes:scheduler_for",
    "jobs": "pendula.server.schedulers.jobs.routes:scheduler_for",
    "playback": "pendula.server.schedulers.playback.routes:SCHEDULER",
}
# The schedulers that need more than a plain installation brings: their extra has the name of the scheduler.
NEEDS: Mapping[str, tuple[str, ...]] = {"fleet": ("numpy", "shapely")}


def schedulers_for(settings: Settings) -> tuple[SchedulerSpec, ...]:
    """The schedulers a server with these settings has, in the order they are shown."""
    missing = left_out()
    wanted = [target for name, target in SCHEDULERS.items() if name not in missing]
    return tuple(_imported(target, settings) for target in wanted)


def left_out() -> dict[str, str]:
    """The schedulers that cannot be served here, each with a sentence that says what to install."""
    absent = {name: [module for module in modules if find_spec(module) is None] for name, modules in NEEDS.items()}
    return {
        name: MissingExtra.of(name, f"The scheduler {name} is left out: it", modules).message
        for name, modules in absent.items()
        if modules
    }


def _imported(target: str, settings: Settings) -> SchedulerSpec:
    module, name = target.split(":")
    found: SchedulerSpec | Callable[[Settings], SchedulerSpec] = getattr(import_module(module), name)
    return found if isinstance(found, SchedulerSpec) else found(settings)
