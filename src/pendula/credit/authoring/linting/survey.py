"""Analysis of a scenario for the linter: its network at the start, including injections if they are enabled."""

from collections.abc import Iterable, Iterator

from pendula.credit.authoring.reachability import marks_within, ways_of
from pendula.credit.model import (
    AddParticipant,
    CreateTrustline,
    Effect,
    LineStatus,
    Participant,
    ParticipantStatus,
    Scenario,
    Trustline,
)
from pendula.credit.planning.planner import REACH_HOPS
from pendula.credit.settings import Settings


class Survey:
    """Analysis of a scenario, shared by all warnings."""

    def __init__(self, scenario: Scenario, settings: Settings) -> None:
        self.scenario = scenario
        self.settings = settings
        effects = [effect for event in scenario.events for effect in event.effects] if settings.enable_inject else []
        self.present = {participant.id for participant in scenario.participants}
        self.people = {participant.id: participant for participant in (*_added(effects), *scenario.participants)}
        self.all_lines = sorted((*scenario.lines, *_lines(effects)), key=lambda line: (line.creditor, line.debtor))
        self.live = [line for line in self.all_lines if self._live(line)]
        self.members = {participant.group for participant in self.people.values() if participant.group is not None}
        self.by_profile: dict[str | None, list[Participant]] = {}
        for participant in self.people.values():
            if participant.status is ParticipantStatus.ACTIVE:
                self.by_profile.setdefault(participant.profile, []).append(participant)
        self.largest: dict[tuple[str, str], int] = {}
        self.lines_in: dict[str, list[Trustline]] = {code: [] for code in scenario.equivalents}
        for line in self.live:
            self.lines_in[line.equivalent].append(line)
            key = line.equivalent, line.debtor
            self.largest[key] = max(line.limit, self.largest.get(key, 0))
        self.out = {code: ways_of(map(hop, lines)) for code, lines in self.lines_in.items()}
        self.bits = {group: 1 << place for place, group in enumerate(sorted(self.members))}
        marks = {
            participant.id: self.bits[participant.group]
            for participant in self.people.values()
            if participant.group is not None
        }
        self.near = {code: marks_within(ways, marks, REACH_HOPS) for code, ways in self.out.items()}

    def _live(self, line: Trustline) -> bool:
        ends = self.people.get(line.creditor), self.people.get(line.debtor)
        active = all(end is not None and end.status is ParticipantStatus.ACTIVE for end in ends)
        known = line.equivalent in self.scenario.equivalents
        return active and known and line.status is LineStatus.ACTIVE and line.limit > 0


def _added(effects: Iterable[Effect]) -> Iterator[Participant]:
    return (effect.participant for effect in effects if isinstance(effect, AddParticipant))


def _lines(effects: Iterable[Effect]) -> Iterator[Trustline]:
    for effect in effects:
        match effect:
            case AddParticipant(_, lines):
                yield from lines
            case CreateTrustline(line):
                yield line
            case _:
                pass


def hop(line: Trustline) -> tuple[str, str]:
    return line.debtor, line.creditor
