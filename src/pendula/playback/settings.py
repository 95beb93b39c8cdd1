"""Settings changed in part: each member that is given replaces that member, the others stay."""

from collections.abc import Mapping

import msgspec

from pendula.kernel.canonical import Json
from pendula.playback.model import InvalidParameter, Settings, unfit
from pendula.playback.programme import checked


def merged(settings: Settings, changes: Json) -> Settings:
    """The settings with these changes in them; raises `InvalidParameter` and `InvalidWeight`."""
    if not isinstance(changes, Mapping):
        raise unfit("settings", changes, "an object of settings")
    whole: dict[str, Json] = msgspec.to_builtins(settings)
    for name, value in changes.items():
        there = whole.get(name)
        if isinstance(there, dict) and isinstance(value, Mapping):
            whole[name] = {**there, **value}
        else:
            whole[name] = value
    try:
        return checked(msgspec.convert(whole, Settings))
    except msgspec.ValidationError as trouble:
        raise InvalidParameter(
            f"The settings cannot be so: {trouble}", parameter="settings", value=str(trouble)
        ) from None
