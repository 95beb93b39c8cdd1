"""Let governance check a store that has governed objects, such as for an alert when exploratory verifications stop."""

import logging

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls
from pendula.jobs.hooks import governance

log = logging.getLogger("pendula.jobs.learning")

LOOK_SEC = 3600.0


class Learning:
    """Checks in the background, from `start` to `close`."""

    def __init__(self, calls: Calls, *, every_sec: float = LOOK_SEC) -> None:
        self._calls = calls
        self._every = every_sec
        self._loop = BackgroundLoop(
            "pendula-jobs-learning",
            self._round,
            log=log,
            trouble="the learning rate cannot be checked",
            pause_sec=every_sec,
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def check(self) -> bool:
        """Whether learning has stalled; a stall has one alert."""
        store, policy, now = self._calls.store, self._calls.policy, self._calls.clock()
        return store.read(lambda look: look.any_governed()) and governance().check_learning(store, policy, now)

    def _round(self) -> float:
        self.check()
        return self._every
