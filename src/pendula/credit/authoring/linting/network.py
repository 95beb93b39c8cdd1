"""Warnings about participants, lines, equivalents and groups: isolated participants, missing cycles."""

from collections.abc import Iterator
from enum import StrEnum

from pendula.credit.authoring.linting.survey import Survey, hop
from pendula.credit.authoring.linting.wording import NAMED, have, line_name, list_names
from pendula.credit.authoring.reachability import has_circle, parts
from pendula.credit.model import ParticipantStatus
from pendula.credit.reading.scope import Caution
from pendula.credit.settings import ClearingMode, ClearingPolicy


class Code(StrEnum):
    """Codes of warnings."""

    PARTICIPANT_CANNOT_BE_PAID = "participant_cannot_be_paid"
    PARTICIPANT_CANNOT_PAY = "participant_cannot_pay"
    PARTICIPANT_WITHOUT_LINE = "participant_without_line"


def cut_off(survey: Survey) -> Iterator[Caution]:
    lined = {end for line in survey.all_lines for end in (line.creditor, line.debtor)}
    payers, payees = {line.debtor for line in survey.live}, {line.creditor for line in survey.live}
    active = [name for name, person in sorted(survey.people.items()) if person.status is ParticipantStatus.ACTIVE]
    for code, names, advice in (
        (
            Code.PARTICIPANT_WITHOUT_LINE,
            [name for name in active if name not in lined],
            "no line; add one to and one from each, or leave them out",
        ),
        (
            Code.PARTICIPANT_CANNOT_PAY,
            [name for name in active if name in lined and name not in payers],
            "no receiver to pay; an active participant must trust them, by a line to them with a limit above 0",
        ),
        (
            Code.PARTICIPANT_CANNOT_BE_PAID,
            [name for name in active if name in lined and name not in payees],
            "no sender to pay them; they must trust an active participant, by a line from them with a limit above 0",
        ),
    ):
        if names:
            path = f"$.participants[?@.id=='{names[0]}']" if len(names) == 1 else "$.participants"
            yield Caution(code, path, f"{list_names(names, 'participant')} {have(names)} {advice}")


def lines(survey: Survey) -> Iterator[Caution]:
    zero = [line_name(line) for line in survey.scenario.lines if line.limit == 0]
    if zero:
        message = f"{list_names(zero, 'line')} {have(zero)} a limit of 0; such a line only allows repayment of debts"
        yield Caution("limit_of_zero", "$.trustlines", f"{message}: raise the limit, or leave it out")
    blocked = {who: line for line in survey.scenario.lines for who in line.policy.blocked if who not in survey.people}
    if blocked:
        message = f"blocked_participants name {list_names(sorted(blocked), 'id')} that no participant has"
        yield Caution("blocked_unknown", "$.trustlines", f"{message}; correct the spelling, or take them out")


def equivalents(survey: Survey) -> Iterator[Caution]:
    depth = _depth(survey)
    for code, lines in survey.lines_in.items():
        if not lines:
            message = f"{code} has no line that could carry a payment; add lines, or take the equivalent out"
            yield Caution("equivalent_without_line", "$.equivalents", message)
            continue
        separate = parts(map(hop, lines))
        if len(separate) > 1:
            named = ", ".join(f"{len(part)} with {part[0]}" for part in separate[:NAMED])
            message = f"{code} falls into {len(separate)} parts that no payment crosses ({named})"
            yield Caution("separate_parts", "$.trustlines", f"{message}; join them by lines")
        if depth and has_circle((hop(line) for line in lines if line.policy.auto_clearing), depth) is False:
            message = f"no cycle of up to {depth} lines that may be cleared, so clearing can never help"
            advice = "close cycles (buyer, shop, maker, buyer), or raise the depth of clearing"
            yield Caution("no_cycle", "$.trustlines", f"{code} has {message}: {advice}")


def _depth(survey: Survey) -> int:
    """The maximum length of a cleared cycle; 0 if clearing is off."""
    settings, adaptive = survey.settings, survey.settings.clearing_policy is ClearingPolicy.ADAPTIVE
    if not settings.clearing_enabled or (not adaptive and settings.clearing_every_n_ticks <= 0):
        return 0
    if settings.clearing_mode is ClearingMode.OPTIMAL:
        return len(survey.people)
    deepest = settings.clearing_max_depth
    return min(deepest, settings.adaptive_max_depth_max) if adaptive else deepest


def groups(survey: Survey) -> Iterator[Caution]:
    unused = [group for group in dict.fromkeys(survey.scenario.groups) if group not in survey.members]
    if unused:
        message = (
            f"no participant belongs to {list_names(unused, 'group')}; give participants their groupId, or take it out"
        )
        yield Caution("group_unused", "$.groups", message)
