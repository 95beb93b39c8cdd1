"""Checks of the arguments of a live world, and its errors."""

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
    """A rejected call of a game loop. Facts: `reason`."""

    code = "refused"


class WorldUnusable(WorldBroken):
    """A command failed half-way, and the state is unknown: create the world again, or recover it from its journal."""

    code = "world_unusable"


def with_user_code(config: Mapping[str, Any], hook: Hook | None, modifiers: Modifiers | None) -> dict[str, Any]:
    """The configuration with the options for the given user code."""
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
    """The error of a recovered world whose user code is missing; None if it is complete."""
    options = engine.current.setting.options
    for is_asked, given, name in (
        (options.follow_ups, hook, "hook"),
        (options.ask_modifiers, modifiers, "modifiers"),
    ):
        if is_asked and given is None:
            message = f"This world is read-only without its {name}; recover it with {name}=..."
            return Refused(message, reason=f"no {name}")
    return None


def claim_disk(place: Disk | str | PathLike[str]) -> Disk:
    """The disk of a journal; a folder is locked for this world. Raises `JournalInUse`, `JournalBroken`."""
    return claimed(place) if isinstance(place, str | PathLike) else place


def open_journal(disk: Disk) -> FileJournal:
    """Open the journal on a disk; the disk is closed on failure."""
    try:
        return FileJournal.open(disk)
    except BaseException:
        disk.close()
        raise


def release_claim(disk: Disk | None) -> None:
    """Release the lock of the folder, so that an unusable world can be recovered before it is closed."""
    if isinstance(disk, RealDisk):
        disk.release()


def whole_number(name: str, value: Any) -> int:
    """The value if it is an int; floats and booleans are refused, too."""
    if type(value) is not int:
        text = repr(value) if isinstance(value, float) else shown(value)
        raise Refused(f"{name} is {text}; it must be a whole number", reason="not_a_minute")
    return value
