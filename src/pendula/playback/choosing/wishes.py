"""What somebody before the screen asks for, besides what the channels give: an item that is not to come again."""

from pendula.kernel.errors import WrongUsage
from pendula.playback.choosing.generator import Channel
from pendula.playback.choosing.records import unmasked
from pendula.playback.choosing.snapshot import Snapshot
from pendula.playback.model import Item, said


class NotShown(WrongUsage):
    """Only an item of the present epoch can be banned. Facts: `epoch_id`, `ordinal`."""

    code = "not_shown"


def place_of(item: Item, snapshot: Snapshot, epoch_id: int, *, held: bool, waiting: bool) -> int | None:
    """The place on its shelf of an item of this epoch, None for a new artwork; raises `NotShown` for any other.

    `held` says that history or lookahead have the item, `waiting` that its artwork may come up again.
    """
    if not isinstance(item, Item):
        raise NotShown(f"Only what `next` gave can be banned, not {said(item)}", epoch_id=epoch_id)
    facts = {"epoch_id": item.epoch_id, "ordinal": item.ordinal}
    if item.epoch_id != epoch_id:
        raise NotShown(f"The item is of epoch {item.epoch_id}, and it is epoch {epoch_id}", **facts)
    if item.channel is None or item.at is None:
        if waiting:
            return None
        raise NotShown(f"New artwork {item.id} is neither held nor waiting in this scheduler", **facts)
    channel = {there.id: there for there in snapshot.channels}.get(item.channel)
    # The item's place counts what was visible when its epoch began, not what a transaction bans besides.
    if channel is not None and (held or _lies_in(channel, item.at, item.raw)):
        return unmasked(item.at, channel.gone)
    instead = f"channel {item.channel!r} has another record at place {item.at}"
    if channel is None:
        followed = ", ".join(there.id for there in snapshot.channels) or "none"
        instead = f"channel {item.channel!r} is not followed, followed are {followed}"
    raise NotShown(f"The item is none of this scheduler's: {instead}; ban what its own `next` gave", **facts)


def _lies_in(channel: Channel, at: int, raw: bytes) -> bool:
    """Whether a channel has that record there; for items that the history holds no more."""
    return at < channel.visible.count and channel.visible.record(at)[2] == raw
