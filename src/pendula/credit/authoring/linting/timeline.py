"""Warnings about events: empty scopes of stress, impossible injections and payments."""

from collections.abc import Iterator
from enum import StrEnum

from pendula.credit.authoring.linting.survey import Survey
from pendula.credit.authoring.linting.wording import list_names
from pendula.credit.model import (
    AddParticipant,
    CreateTrustline,
    DatedPayment,
    Effect,
    EventType,
    FreezeParticipant,
    InjectDebt,
    TimelineEvent,
)
from pendula.credit.reading.scope import Caution
from pendula.credit.reading.timeline import EFFECTS_MOST


class Code(StrEnum):
    """Codes of warnings."""

    INJECTION_IMPOSSIBLE = "injection_impossible"
    INJECTION_SWITCHED_OFF = "injection_switched_off"
    INJECTION_TOO_LONG = "injection_too_long"
    PAYMENT_IMPOSSIBLE = "payment_impossible"
    STRESS_BETWEEN_TICKS = "stress_between_ticks"
    STRESS_WITHOUT_TARGET = "stress_without_target"
    STRESS_WITHOUT_EFFECT = "stress_without_effect"


def events(survey: Survey) -> Iterator[Caution]:
    for event in survey.scenario.events:
        for code, message in _about(survey, event):
            yield Caution(code, f"$.events[{event.index}]", message)


def _about(survey: Survey, event: TimelineEvent) -> Iterator[tuple[str, str]]:
    match event.type:
        case EventType.PAYMENT | EventType.CLEARING:
            ends = [(action.sender, action.receiver) for action in event.actions if isinstance(action, DatedPayment)]
            lost = sorted({end for pair in ends for end in pair if end not in survey.people})
            if lost:
                message = f"{list_names(lost, 'participant')} does not exist, so this payment fails; correct the ids"
                yield Code.PAYMENT_IMPOSSIBLE, message
        case EventType.STRESS:
            yield from _about_stress(survey, event)
        case EventType.INJECT if not survey.settings.enable_inject:
            message = "this event changes nothing while injections are off; set enable_inject to on"
            yield Code.INJECTION_SWITCHED_OFF, f"{message} (SIMULATOR_REAL_ENABLE_INJECT)"
        case EventType.INJECT:
            lost = [str(place) for place, effect in enumerate(event.effects) if not _possible(survey, effect)]
            if lost:
                message = (
                    f"{list_names(lost, 'effect')} cannot apply: a participant, a line, an equivalent or an amount"
                )
                yield Code.INJECTION_IMPOSSIBLE, f"{message} is missing or invalid; correct the ids and amounts"
            if len(event.effects) > EFFECTS_MOST:
                message = f"only the first {EFFECTS_MOST} of {len(event.effects)} effects apply"
                yield Code.INJECTION_TOO_LONG, f"{message}; spread them over several events"
        case EventType.NOTE:
            pass


def _about_stress(survey: Survey, event: TimelineEvent) -> Iterator[tuple[str, str]]:
    groups = {f"group:{group}" for group in survey.members}
    scopes = groups | {f"profile:{name}" for name in survey.by_profile if name is not None} | {"all"}
    lost = sorted({multiplier.scope for multiplier in event.multipliers} - scopes)
    if lost:
        yield (
            Code.STRESS_WITHOUT_TARGET,
            f"no participant is in {list_names(lost, 'scope')}; correct the spelling, or take it out",
        )
    if not event.multipliers:
        message = "this stress multiplies nothing; it needs effects of op mult, field tx_rate and a value above 0"
        yield Code.STRESS_WITHOUT_EFFECT, message
    length = survey.settings.tick_ms_base
    if event.time is not None and -(-event.time // length) * length >= event.time + max(event.duration, 1):
        message = f"no tick falls into the {event.duration} ms from {event.time} on; ticks are {length} ms apart"
        yield Code.STRESS_BETWEEN_TICKS, f"{message}: begin on a tick, or give duration_ms"


def _possible(survey: Survey, effect: Effect) -> bool:
    known, people = survey.scenario.equivalents, survey.people
    match effect:
        case AddParticipant(participant):
            return participant.id not in survey.present
        case CreateTrustline(line):
            ends = line.creditor in people and line.debtor in people and line.creditor != line.debtor
            return ends and line.equivalent in known and line.limit > 0
        case FreezeParticipant(participant):
            return participant in people
        case InjectDebt():
            return effect.amount > 0 and effect.creditor in survey.out.get(effect.equivalent, {}).get(effect.debtor, ())
