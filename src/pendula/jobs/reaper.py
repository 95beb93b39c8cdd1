"""Returns expired leases in the background, in small steps, without a pull.

Any number of reapers may work on one store: each lease is returned once, in a transaction.
"""

import logging

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls

log = logging.getLogger("pendula.jobs.reaper")

LOOK_SEC = 1.0


class Reaper:
    """Checks for expired leases every `look_sec` seconds, from `start` to `close`; a check takes no lock."""

    def __init__(self, calls: Calls, *, look_sec: float = LOOK_SEC) -> None:
        self._calls = calls
        self._look = look_sec
        self._begun = False
        self._loop = BackgroundLoop(
            "pendula-jobs-reaper", self._round, log=log, trouble="leases cannot be taken back", pause_sec=look_sec
        )

    def start(self) -> None:
        self._loop.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)

    def _round(self) -> float:
        if not self._begun:
            # A starting process pulls or is pulled from, which returns expired leases.
            self._begun = True
        elif reclaimed := self._calls.reclaim(lambda: not self._loop.closed):
            log.info("returned expired leases: %d", reclaimed)
        return self._look
