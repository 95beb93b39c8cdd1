"""What a gateway keeps of each truck: the newest command, what was acknowledged, and when to stop it by itself.

A command that is older than one sent before is not sent: commands are idempotent, and the newest one counts. A truck
without a watchdog of its own is stopped by its gateway when the manager falls silent (FLT-RTP-8, FLT-RTP-9).
"""

from dataclasses import dataclass, field

from pendula.fleet.contracts.traffic import Acknowledgement, RollingTargetCommand


@dataclass(slots=True)
class _Line:
    command: RollingTargetCommand
    sent_ms: int
    acknowledged: int = 0
    stopped: bool = False


@dataclass(slots=True)
class Outbox:
    """All trucks of a gateway. Times are those of the gateway, on one clock."""

    _lines: dict[str, _Line] = field(default_factory=dict)

    def accept(self, command: RollingTargetCommand, now_ms: int) -> bool:
        """Whether a command is to be sent: newer than all before it."""
        line = self._lines.get(command.robotId)
        if line is not None and command.seq <= line.command.seq:
            return False
        before = 0 if line is None else line.acknowledged
        self._lines[command.robotId] = _Line(command, now_ms, before)
        return True

    def acknowledge(self, one: Acknowledgement) -> int:
        """What a truck has acknowledged at most; never more than it was sent."""
        line = self._lines.get(one.robotId)
        if line is None:
            return 0
        line.acknowledged = max(line.acknowledged, min(one.lastAckSeq, line.command.seq))
        return line.acknowledged

    def overdue(self, now_ms: int) -> tuple[str, ...]:
        """The trucks for which the manager was silent for longer than their last command was good for, each once."""
        found = []
        for robot_id, line in sorted(self._lines.items()):
            if not line.stopped and now_ms - line.sent_ms > line.command.validForMs:
                line.stopped = True
                found.append(robot_id)
        return tuple(found)
