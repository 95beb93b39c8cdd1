"""A picture of the recent events of a live world, for notebooks."""

from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from pendula.actions.events import WORLD_EVENTS, Diagnostic, EpochBegan, Event, Rejection, WorldEvent
from pendula.actions.gantt.picture import drawn
from pendula.actions.gantt.spans import history_of
from pendula.actions.rules.validation import Verb
from pendula.actions.saving import saved_at
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import decode, encode


class RecentEpoch(Struct, frozen=True):
    """The kept events of one epoch."""

    header: EpochBegan
    end_at: str
    events: tuple[WorldEvent, ...]
    rejections: tuple[Rejection, ...]
    diagnostics: tuple[Diagnostic, ...]


class Timeline(Struct, frozen=True):
    """An SVG picture, which a notebook displays."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    @classmethod
    def of(cls, world: WorldState, events: Sequence[Event], title: str) -> Self:
        """The epochs of these events up to the current minute, with the actions that run and wait in it."""
        setting, clock = world.setting, world.clock
        last = setting.first_epoch + clock.epoch
        shown = [event for event in events if not isinstance(event, EpochBegan)]
        first = min((event.epoch for event in shown), default=last)
        days = []
        for epoch in range(first, last + 1):
            start = (epoch - setting.first_epoch) * setting.horizon
            of_day = [event for event in shown if event.epoch == epoch]
            days.append(
                RecentEpoch(
                    EpochBegan(epoch, setting.display(start), ()),
                    setting.display(start + setting.horizon),
                    tuple(event for event in of_day if isinstance(event, WORLD_EVENTS)),
                    tuple(event for event in of_day if isinstance(event, Rejection)),
                    tuple(event for event in of_day if isinstance(event, Diagnostic)),
                )
            )
        verbs = {name: decode(encode(one.definition)) for name, one in setting.verbs.items() if isinstance(one, Verb)}
        upto = clock.minute - (first - setting.first_epoch) * setting.horizon
        history = history_of(days, saved_at(world, clock.minute), verbs, upto)
        return cls(drawn(history, setting.options.slots, title or "Actions"))
