"""Check a state machine and report all faults at once. A custom machine is checked when it is loaded."""

from collections.abc import Iterable, Iterator

from pendula.jobs.objects.governed import VERIFICATIONS
from pendula.jobs.objects.machine import DATES, NEEDABLE, Finding, Machine

WORD_MOST = 64


def faults(machine: Machine, actions: Iterable[str]) -> list[str]:
    """All faults as sentences. `actions` are the known actions, of jobs and of the application."""
    known = frozenset(actions)
    return [
        *_unfit_names(machine),
        *_unknown_names(machine, known),
        *_doubles(machine),
        *_broken_rules(machine),
        *_ways(machine),
    ]


def _unfit_names(machine: Machine) -> Iterator[str]:
    """States must survive joining and splitting by a slash; findings must be printable words."""
    allowed = f"1 to {WORD_MOST} printable characters"
    for state in sorted(machine.trust):
        if state.count("/") > 1 or not all(map(_is_word, state.split("/"))):
            yield f"{state!r} is not a state: write {allowed}, or two such words joined by a slash"
    for finding in sorted({arrow.finding for arrow in machine.arrows}):
        if not _is_word(finding):
            yield f"{finding!r} is not a finding: write {allowed}"


def _is_word(text: str) -> bool:
    return 1 <= len(text) <= WORD_MOST and text.isprintable() and text == text.strip()


def _unknown_names(machine: Machine, actions: frozenset[str]) -> Iterator[str]:
    states = set(machine.trust)
    named: list[tuple[str, str]] = [("the first state", machine.first)]
    for arrow in machine.arrows:
        row = f"the row {arrow.source}, {arrow.action}, {arrow.finding}"
        named += [(row, arrow.source), (row, arrow.target)]
        if arrow.action not in actions:
            yield f"{row}: there is no action {arrow.action}; the actions are {', '.join(sorted(actions))}"
    named += [("a rule of never", name) for rule in machine.never for name in (rule.source, rule.target)]
    for member in ("follow", "needs", "rolls_back", "awaits_rollback", "stale", "uncertain"):
        named += [(member, name) for name in sorted(getattr(machine, member))]
    named += [("seeks", name) for name in machine.seeks.values()]
    named += [("exhausted", machine.exhausted)] if machine.exhausted is not None else []
    for where, name in named:
        if name not in states:
            yield f"{where}: there is no state {name}; the states are {', '.join(sorted(states))}"
    yield from _unknown_members(machine, actions)


def _unknown_members(machine: Machine, actions: frozenset[str]) -> Iterator[str]:
    for action in sorted(machine.seeks.keys() - actions):
        yield f"seeks: there is no action {action}; the actions are {', '.join(sorted(actions))}"
    for place, needed in machine.needs.items():
        for name in (name for need in needed for name in need.split("|")):
            if name not in NEEDABLE:
                yield f"needs of {place}: {name} cannot be required; allowed are {', '.join(sorted(NEEDABLE))}"
    for place, follow in machine.follow.items():
        if follow.action not in actions:
            yield f"follow of {place}: there is no action {follow.action}; the actions are {', '.join(sorted(actions))}"
        if follow.at is not None and follow.at not in DATES:
            yield f"follow of {place}: {follow.at} is not a date to wait for; the dates are {' and '.join(DATES)}"
        if follow.after <= 0:
            yield f"follow of {place}: the next action must come later than now"


def _doubles(machine: Machine) -> Iterator[str]:
    seen: dict[tuple[str, str, str], str] = {}
    for arrow in machine.arrows:
        key = (arrow.source, arrow.action, arrow.finding)
        if key in seen and seen[key] != arrow.target:
            yield f"{', '.join(key)} leads to both {seen[key]} and {arrow.target}"
        seen[key] = arrow.target


def _broken_rules(machine: Machine) -> Iterator[str]:
    if not machine.never:
        yield "never is empty: name at least one forbidden transition"
    for rule in machine.never:
        if any((arrow.source, arrow.target) == (rule.source, rule.target) for arrow in machine.arrows):
            yield f"a row leads from {rule.source} to {rule.target}, which never forbids: {rule.because}"


def _ways(machine: Machine) -> Iterator[str]:
    """Every state is reachable, and every state but a final one has a follow."""
    reached, known = [machine.first], {machine.first}
    for place in reached:
        for arrow in machine.arrows:
            if arrow.source == place and arrow.target not in known:
                known.add(arrow.target)
                reached.append(arrow.target)
    sources = {arrow.source for arrow in machine.arrows}
    for state in sorted(machine.trust):
        if state not in known:
            yield f"{state} cannot be reached from {machine.first}"
        if state in sources and state not in machine.follow:
            yield f"{state} has no follow: objects there would never be checked again"
        if state not in sources and state in machine.follow:
            yield f"{state} has a follow, but no row leads out of it"
    if all(state in sources for state in machine.trust):
        yield "there is no final state: every state has a row that leaves it"
    if machine.uncertain and machine.exhausted is None and any(p not in machine.stale for p in machine.uncertain):
        yield "exhausted is missing: an uncertain object would have nowhere to go when its budget is used up"
    yield from _dead_ends(machine)


def _dead_ends(machine: Machine) -> Iterator[str]:
    """Uncertain places without a next action, or without a way out when the budget is used up."""
    for place in sorted(machine.uncertain):
        if place not in machine.follow:
            yield f"{place} is uncertain and has no follow: objects there would never be checked again"
        for action in sorted(VERIFICATIONS):
            is_next = place in machine.follow and machine.follow[place].action == action
            if (is_next or machine.has_row(place, action)) and not machine.can_be_closed(place, action):
                yield f"{place} has no row for {action}, {Finding.EXHAUSTED}: objects there would stay uncertain"
    for place in sorted({arrow.target for arrow in machine.arrows if arrow.finding == Finding.EXHAUSTED}):
        if place in machine.follow and machine.follow[place].action in VERIFICATIONS:
            yield f"{place} is the target of {Finding.EXHAUSTED}, but its follow would verify objects again"
