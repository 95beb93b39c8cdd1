"""Why an item of a scripted run came up: the run is made once more, up to the item, and asked there."""

from collections.abc import Iterable

from msgspec import Struct

from pendula.kernel.engine import Reason
from pendula.kernel.errors import InputRefused
from pendula.playback.choosing.programme import Programme
from pendula.playback.explain import by_ordinal, why
from pendula.playback.model import Item
from pendula.playback.runs.loading import Call, Next
from pendula.playback.runs.script import ProgrammeStage, answered


class UnknownItem(InputRefused):
    """Facts: `epoch_id`, `ordinal`, and how many items each epoch has in `items`."""

    code = "unknown_item"


class Found(Struct, frozen=True):
    item: Item
    reason: Reason


def reason_in(programme: Programme, calls: Iterable[Call], epoch_id: int, ordinal: int) -> Found:
    """The item of the run and its reason, asked while its epoch lasts; raises `UnknownItem`.

    What was made ahead and not shown yet counts as well.
    """
    made: dict[int, int] = {}
    stage = ProgrammeStage(programme)
    for step in _steps(calls):
        # A reset forgets what was made ahead: look before each step, too.
        if (found := _found(programme, epoch_id, ordinal, made)) is not None:
            return found
        answered(stage, step)
    if (found := _found(programme, epoch_id, ordinal, made)) is not None:
        return found
    told = ", ".join(f"{count} of epoch {epoch}" for epoch, count in sorted(made.items())) or "none"
    raise UnknownItem(
        f"The run has no item {ordinal} of epoch {epoch_id}; its items are: {told}",
        epoch_id=epoch_id,
        ordinal=ordinal,
        items={str(epoch): count for epoch, count in sorted(made.items())},
    )


def _found(programme: Programme, epoch_id: int, ordinal: int, made: dict[int, int]) -> Found | None:
    if programme.generator.ordinal:
        made[programme.epoch_id] = programme.generator.ordinal
    if programme.epoch_id != epoch_id:
        return None
    item = by_ordinal(programme, ordinal)
    return None if item is None else Found(item, why(programme, item))


def _steps(calls: Iterable[Call]) -> Iterable[Call]:
    """One item at a time, because a history may hold only one."""
    for call in calls:
        if isinstance(call, Next):
            for _ in range(call.n):
                yield Next(1)
        else:
            yield call
