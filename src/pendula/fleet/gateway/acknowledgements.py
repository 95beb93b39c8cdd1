"""The newest command of each truck, its acknowledgement, and a watchdog.

Commands are idempotent and only the newest counts, so older ones are not sent. A gateway stops trucks that have no
watchdog when the manager sends nothing (FLT-RTP-8, FLT-RTP-9).
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
    """The trucks of a gateway. All times are from the clock of the gateway."""

    _lines: dict[str, _Line] = field(default_factory=dict)

    def accept(self, command: RollingTargetCommand, now_ms: int) -> bool:
        """Whether to send a command: it is newer than all before it."""
        line = self._lines.get(command.robotId)
        if line is not None and command.seq <= line.command.seq:
            return False
        before = 0 if line is None else line.acknowledged
        self._lines[command.robotId] = _Line(command, now_ms, before)
        return True

    def acknowledge(self, ack: Acknowledgement) -> int:
        """The highest acknowledged `seq`, at most that of the last command."""
        line = self._lines.get(ack.robotId)
        if line is None:
            return 0
        line.acknowledged = max(line.acknowledged, min(ack.lastAckSeq, line.command.seq))
        return line.acknowledged

    def overdue(self, now_ms: int) -> tuple[str, ...]:
        """Trucks whose last command has expired, each returned once."""
        overdue = []
        for robot_id, line in sorted(self._lines.items()):
            if not line.stopped and now_ms - line.sent_ms > line.command.validForMs:
                line.stopped = True
                overdue.append(robot_id)
        return tuple(overdue)
