"""Messages in transit: each has a random latency, and some are lost."""

from heapq import heappop, heappush
from typing import Generic, TypeVar

from pendula.fleet.simulator.noise import Source, generators

M = TypeVar("M")
_MILLION = 1_000_000


class Channel(Generic[M]):
    """One direction between the trucks and the fleet manager; messages of one truck may overtake each other."""

    def __init__(self, seed: int, sources: tuple[Source, Source], trucks: int, latency_ms: tuple[int, int]) -> None:
        latency, loss = sources
        self._latencies = generators(seed, latency, trucks)
        self._losses = generators(seed, loss, trucks)
        self._least, most = latency_ms
        self._span = most - self._least + 1
        self._waiting: list[list[tuple[int, int, M]]] = [[] for _ in range(trucks)]
        self._sent = 0
        # Number of lost messages.
        self.lost = 0

    def send(self, truck: int, now_ms: int, message: M, loss_ppm: int) -> None:
        # Draw both values for every message, so that a loss does not change the latencies of others.
        delay = self._least + self._latencies[truck].bounded(self._span)
        lost = self._losses[truck].bounded(_MILLION) < loss_ppm if loss_ppm else False
        if lost:
            self.lost += 1
        else:
            self._sent += 1
            heappush(self._waiting[truck], (now_ms + delay, self._sent, message))

    def is_due(self, truck: int, now_ms: int) -> bool:
        """Whether a message has arrived by now."""
        waiting = self._waiting[truck]
        return bool(waiting) and waiting[0][0] <= now_ms

    def arrived(self, truck: int, now_ms: int) -> list[M]:
        """Take the messages that have arrived by now, in the order of arrival."""
        waiting = self._waiting[truck]
        messages = []
        while waiting and waiting[0][0] <= now_ms:
            messages.append(heappop(waiting)[2])
        return messages
