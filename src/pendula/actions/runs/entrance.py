"""What comes into a live world, checked at the door; and what it says when it cannot let somebody in."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from pendula.actions.configuration import InvalidSetting
from pendula.actions.engine import World
from pendula.actions.runs.user_code import Hook, Modifiers
from pendula.kernel.disk import Disk, RealDisk
from pendula.kernel.errors import InputRefused, WorldBroken
from pendula.kernel.journal import FileJournal
from pendula.kernel.recording import claimed
from pendula.kernel.wording import shown


class Refused(InputRefused):
    """A wish of a game loop that cannot be granted; facts: `reason`."""

    code = "refused"


class WorldUnusable(WorldBroken):
    """A command was broken off in the middle, and nobody can tell what holds: make the world anew, or recover it."""

    code = "world_unusable"


def with_user_code(config: Mapping[str, Any], hook: Hook | None, modifiers: Modifiers | None) -> dict[str, Any]:
    """The configuration with the options that say who is asked."""
    if not isinstance(config, Mapping):
        message = f"A world needs an object with at least `epoch` and `action_defs`, not {shown(config)}"
        raise InvalidSetting(message, path="$")
    given = config.get("options")
    if given is not None and not isinstance(given, Mapping):
        raise InvalidSetting(f"options is {shown(given)}; it must be an object", path="$.options")
    options = {**(given or {})}
    options |= {"follow_ups": True} if hook else {}
    options |= {"ask_modifiers": True} if modifiers else {}
    return {**config, "options": options}


def missing_user_code(engine: World, hook: Hook | None, modifiers: Modifiers | None) -> Refused | None:
    """Why a world cannot go on without the user code that it asks; None where all of it is there."""
    options = engine.current.setting.options
    for asked, given, name in (
        (options.follow_ups, hook, "hook"),
        (options.ask_modifiers, modifiers, "modifiers"),
    ):
        if asked and given is None:
            message = f"This world can only be read: to go on it asks its {name}; recover it with {name}=..."
            return Refused(message, reason=f"no {name}")
    return None


def disk_at(place: Disk | str | PathLike[str]) -> Disk:
    """The disk of a journal; a folder is taken for this world alone. Raises `JournalInUse`, `JournalBroken`."""
    return claimed(place) if isinstance(place, str | PathLike) else place


def opened_at(disk: Disk) -> FileJournal:
    """The journal on a disk, which is closed where there is none."""
    try:
        return FileJournal.open(disk)
    except BaseException:
        disk.close()
        raise


def let_go(disk: Disk | None) -> None:
    """Who finds a world again that cannot be used any more need not wait until this one is closed."""
    if isinstance(disk, RealDisk):
        disk.release()


def whole(name: str, value: Any) -> int:
    """A number that decides is a whole one: neither a fraction, nor a float that happens to be whole, nor true."""
    if type(value) is not int:
        shows = repr(value) if isinstance(value, float) else shown(value)
        raise Refused(f"{name} is {shows}; it must be a whole number", reason="not_a_minute")
    return value
