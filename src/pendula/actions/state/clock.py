"""What time it is in a world: the minute of the run, and the epoch that it belongs to."""


class Clock:
    """Minutes count from the start of the run. The last minute of an epoch is the first of the next."""

    __slots__ = ("boundary", "epoch", "epoch_start", "horizon", "minute")

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self.stand_at(0, 0)

    def stand_at(self, minute: int, epoch: int) -> None:
        self.minute = minute
        self.epoch = epoch
        self.epoch_start = epoch * self.horizon
        self.boundary = self.epoch_start + self.horizon

    def begin_epoch(self) -> None:
        """The next epoch; the minute stays for the caller to set."""
        self.epoch += 1
        self.epoch_start = self.boundary
        self.boundary += self.horizon
