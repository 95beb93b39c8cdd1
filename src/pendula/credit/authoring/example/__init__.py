"""The example of the scheduler: a village of a hundred that runs out of credit, with and without clearing.

Everything is generated from one seed, so that scripts, pages and tests use the same village.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from pendula.credit.authoring.villages import village
from pendula.credit.events import Event, Ticked
from pendula.credit.runs.headless import Headless, Result, plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import Document, from_value

PARTICIPANTS = 100
SEED = 7
TICKS = 120
CAP = "500"

# Clearing settings of each variant, by name.
LIVES: Mapping[str, Mapping[str, str]] = {
    "never cleared": {"clearing_enabled": "off"},
    "cleared every 25 ticks": {},
    "cleared when it is needed": {
        "clearing_policy": "adaptive",
        "adaptive_window_ticks": "10",
        "adaptive_no_capacity_high": "0.4",
        "adaptive_no_capacity_low": "0.2",
    },
}


class Life(Struct, frozen=True):
    """The result of a run of the village, and its payments per tick: tried and made."""

    result: Result
    payments: tuple[tuple[int, int], ...]

    def per_cent(self, since: int, until: int) -> int:
        """The share of payments that were made from one tick to before another, rounded down; 0 if none was tried."""
        tried, paid = (sum(column) for column in zip((0, 0), *self.payments[since:until], strict=True))
        return 100 * paid // tried if tried else 0


def scenario() -> Document:
    """The village."""
    return from_value(village(PARTICIPANTS, SEED), "village")


def live(values: Mapping[str, str], ticks: int = TICKS) -> Life:
    """Run the village for some ticks, with these settings and a suitable cap."""
    headless = Headless(
        plan_run(scenario(), settings=change_settings(Settings(), {"amount_cap": CAP, **values}), patches=False)
    )
    payments: list[tuple[int, int]] = []

    def count(events: Sequence[Event]) -> None:
        payments.extend((event.planned, event.committed) for event in events if isinstance(event, Ticked))

    headless.step(ticks, count)
    return Life(headless.result(), tuple(payments))
