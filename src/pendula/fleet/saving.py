"""The state of a fleet as canonical JSON and back. An invalid state, or one of another configuration, is rejected."""

from typing import Any

from msgspec import DecodeError, Raw, Struct, ValidationError, convert

from pendula.fleet.commands import Config
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tasks import saving as tasks_saving
from pendula.fleet.tasks.dispatch import Dispatch
from pendula.fleet.tasks.operators import ActionInbox, SavedInbox
from pendula.fleet.tick import saving as traffic_saving
from pendula.fleet.tick.traffic import Traffic
from pendula.kernel.canonical import Json, Reader, decode, encode
from pendula.kernel.errors import InputRefused

FORM = 1


class Saved(Struct, frozen=True, forbid_unknown_fields=True):
    """`trouble`: why the journal is not written; None while it is."""

    desk: Any
    dispatch: Any
    form: int
    traffic: Raw
    trouble: str | None


_read: Reader[Saved] = Reader(Saved)


class BadState(InputRefused):
    """Not the state of a fleet, or of another fleet."""

    code = "bad_fleet_state"


def encoded(traffic: Traffic, dispatch: Dispatch, inbox: ActionInbox, trouble: str | None) -> bytes:
    # Assembled from parts: traffic encodes its own part, which is most of it.
    parts = (encode(inbox.saved()), encode(tasks_saving.saved(dispatch)), FORM, traffic.state(), encode(trouble))
    return b'{"desk":%b,"dispatch":%b,"form":%d,"traffic":%b,"trouble":%b}' % parts


def read(state: bytes) -> Saved:
    """Raises `BadState`."""
    try:
        saved = _read(state)
    except DecodeError as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None
    if saved.form != FORM:
        raise BadState(f"The state has form {saved.form}, this version reads form {FORM}")
    return saved


def with_params(state: Json, params_hash: str) -> Json:
    """The state for a fleet with other traffic parameters. Raises `BadState`."""
    saved = read(encode(state))
    traffic = decode(traffic_saving.with_params(bytes(saved.traffic), params_hash))
    members = {"desk": saved.desk, "dispatch": saved.dispatch, "form": saved.form}
    return {**members, "traffic": traffic, "trouble": saved.trouble}


def traffic_of(saved: Saved, config: Config, site: CompiledMap) -> Traffic:
    """Raises `BadState` or `TrafficRefused`."""
    try:
        return Traffic.from_state(site, config.fleet, config.profiles, config.traffic, bytes(saved.traffic))
    except (LookupError, TypeError, ValueError) as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None


def restore_dispatch(saved: Saved, dispatch: Dispatch) -> None:
    """Raises `BadState`."""
    try:
        tasks_saving.restore(dispatch, saved.dispatch)
    except (LookupError, TypeError, ValueError) as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None


def restore_inbox(saved: Saved, inbox: ActionInbox) -> None:
    """Raises `BadState`."""
    try:
        inbox.restore(convert(saved.desk, SavedInbox))
    except ValidationError as trouble:
        raise BadState(f"This is not a state of a fleet: {trouble}") from None
