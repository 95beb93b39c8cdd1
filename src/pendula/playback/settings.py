"""Settings changed in part: each member that is given replaces that member, the others stay."""

from collections.abc import Mapping

import msgspec

from pendula.kernel.canonical import Json
from pendula.playback.choosing.programme import checked
from pendula.playback.model import InvalidParameter, Settings, unfit


def _joined(there: Json, value: Json) -> Json:
    """Objects member by member, by channel too; a member that is null goes."""
    if not isinstance(there, Mapping) or not isinstance(value, Mapping):
        return value
    joined = {**there, **{name: _joined(there.get(name), one) for name, one in value.items()}}
    return {name: one for name, one in joined.items() if one is not None}


def merged(settings: Settings, changes: Json) -> Settings:
    """The settings with these changes in them; raises `InvalidParameter` and `InvalidWeight`."""
    if not isinstance(changes, Mapping):
        raise unfit("settings", changes, "an object of settings")
    whole: dict[str, Json] = msgspec.to_builtins(settings)
    for name, value in changes.items():
        whole[name] = _joined(whole.get(name), value)
    try:
        return checked(msgspec.convert(whole, Settings))
    except msgspec.ValidationError as trouble:
        raise InvalidParameter(
            f"The settings cannot be so: {trouble}", parameter="settings", value=str(trouble)
        ) from None
