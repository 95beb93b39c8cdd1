"""Why an item of a run was selected: repeats the run up to the item and asks there."""

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
    """Facts: `epoch_id`, `ordinal`, and in `items` the number of items by epoch."""

    code = "unknown_item"


class ExplainedItem(Struct, frozen=True):
    item: Item
    reason: Reason


def reason_in(programme: Programme, calls: Iterable[Call], epoch_id: int, ordinal: int) -> ExplainedItem:
    """The item and its reason, asked during its epoch; raises `UnknownItem`.

    Items of the lookahead that are not shown yet are included.
    """
    made: dict[int, int] = {}
    stage = ProgrammeStage(programme)
    for step in _steps(calls):
        # A reset drops the lookahead: look before each step, too.
        if (found := _found(programme, epoch_id, ordinal, made)) is not None:
            return found
        answered(stage, step)
    if (found := _found(programme, epoch_id, ordinal, made)) is not None:
        return found
    counts = ", ".join(f"{count} of epoch {epoch}" for epoch, count in sorted(made.items())) or "none"
    raise UnknownItem(
        f"The run has no item {ordinal} of epoch {epoch_id}; its items are: {counts}",
        epoch_id=epoch_id,
        ordinal=ordinal,
        items={str(epoch): count for epoch, count in sorted(made.items())},
    )


def _found(programme: Programme, epoch_id: int, ordinal: int, made: dict[int, int]) -> ExplainedItem | None:
    if programme.generator.ordinal:
        made[programme.epoch_id] = programme.generator.ordinal
    if programme.epoch_id != epoch_id:
        return None
    item = by_ordinal(programme, ordinal)
    return None if item is None else ExplainedItem(item, why(programme, item))


def _steps(calls: Iterable[Call]) -> Iterable[Call]:
    """Split `next` into single items, because the history may hold only one."""
    for call in calls:
        if isinstance(call, Next):
            for _ in range(call.n):
                yield Next(1)
        else:
            yield call
