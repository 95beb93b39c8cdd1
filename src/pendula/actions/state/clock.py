"""The clock of a world: the minute of the run and its epoch."""


class Clock:
    """Minutes count from the start of the run; the last minute of an epoch is the first of the next."""

    __slots__ = ("boundary", "epoch", "epoch_start", "horizon", "minute")

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self.set(0, 0)

    def set(self, minute: int, epoch: int) -> None:
        self.minute = minute
        self.epoch = epoch
        self.epoch_start = epoch * self.horizon
        self.boundary = self.epoch_start + self.horizon

    def begin_epoch(self) -> None:
        """Move to the next epoch; the caller sets the minute."""
        self.epoch += 1
        self.epoch_start = self.boundary
        self.boundary += self.horizon
