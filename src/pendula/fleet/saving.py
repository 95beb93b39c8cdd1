"""A fleet as canonical JSON and back. A state that is not one, or not of this configuration, is refused whole."""

from msgspec import DecodeError, Raw, Struct

from pendula.fleet.commands import Config
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.tick.traffic import Traffic
from pendula.kernel.canonical import Reader
from pendula.kernel.errors import InputRefused

FORM = 1


class Saved(Struct, frozen=True, forbid_unknown_fields=True):
    form: int
    traffic: Raw


_read: Reader[Saved] = Reader(Saved)


class BadState(InputRefused):
    """This is not the state of a fleet, or of another one."""

    code = "bad_fleet_state"


def encoded(traffic: Traffic) -> bytes:
    return b'{"form":%d,"traffic":%b}' % (FORM, traffic.state())


def restored(config: Config, site: CompiledMap, state: bytes) -> Traffic:
    """Raises `BadState` or `TrafficRefused`."""
    try:
        saved = _read(state)
        if saved.form != FORM:
            raise BadState(f"The state has form {saved.form}, this version reads form {FORM}")
        return Traffic.from_state(site, config.fleet, config.profiles, config.traffic, bytes(saved.traffic))
    except (DecodeError, LookupError, TypeError, ValueError) as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None
