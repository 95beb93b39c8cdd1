"""Generates scenarios of invented people and firms that trade in cycles, from a seed.

The same arguments give the same document, byte by byte; only integers are drawn. Households pay shops, shops pay
makers, makers pay wages, so that debts form cycles short enough to clear; the payer is the debtor of a line. Amounts
and limits suit payments of up to 500 units, yet a cap of 3 silences no profile. The number of a member gives its habit
and name by arithmetic, rotated by an offset from the seed.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TypeAlias

import msgspec
from msgspec import Struct

from pendula.credit.money import cents_text
from pendula.documents import Format, read_bytes
from pendula.documents.typed import read
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.rng import Pcg32, stream


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """A group and the ids of its members; in `mediates` of a hundred lines the creditor mediates."""

    label: str
    member: str
    type: str
    mediates: int


class Habit(Struct, frozen=True, forbid_unknown_fields=True):
    """The behaviour of `share` per cent of a group: receivers (by weight, or along chains) and amounts in units."""

    id: str
    group: str
    share: int
    rate: Decimal
    weights: Mapping[str, int]
    chains: tuple[str, ...]
    affinity: Decimal
    p50: int
    p90: int
    most: int
    periodicity: Decimal = Decimal(1)


LEAST, MOST = 2, 100_000
SEED_MOST = 2**64 - 1
UNIT, HOUR = "UNIT", "HOUR"
SMALLEST_PAYMENT = 1
HOURS_MODEL: Mapping[str, Json] = {"min": SMALLEST_PAYMENT, "p50": 2, "p90": 6, "max": 12}

# One stream of random numbers per purpose: changing one does not change the draws of the others.
PEOPLE, NAMES, LINES, EVENTS = 0x50454F50, 0x4E414D45, 0x4C494E45, 0x4556454E


class Profile(StrEnum):
    """The shape of the network: a village; a town of quarters that counts hours too; a ring; hubs with spokes."""

    VILLAGE = "village"
    TOWN = "town"
    RING = "ring"
    MARKET = "market"


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """Payments between two groups: each payer (or each payee) gets `hundredths` / 100 partners.

    Limits lie between `least` units and `least` doubled `doublings` times, each doubling equally often.
    """

    payer: str
    payee: str
    hundredths: int
    least: int
    doublings: int = 3
    by_payee: bool = False
    equivalent: str = UNIT


class Layout(Struct, frozen=True):
    """A kind of network: its groups by priority with their per cent, the size of a quarter, the links.

    The payers of the link `ring` form a ring, in which each pays `steps` others. `hubs` is the number of HUBS, instead
    of a share; `limit` the limit of every line, instead of those of the links. With `wide` a participant whose quarter
    is too small gets partners everywhere.
    """

    shares: Mapping[str, int]
    quarter: int
    links: tuple[Link, ...] = ()
    ring: Link | None = None
    equivalents: tuple[str, ...] = (UNIT,)
    steps: int = 2
    wide: bool = False
    hubs: int | None = None
    limit: int | None = None


class Member(Struct, frozen=True):
    """A participant as the generator sees it; `number` counts within the group."""

    id: str
    group: str
    number: int
    quarter: int
    habit: str
    status: str


class Day(Struct, frozen=True, forbid_unknown_fields=True):
    """A time of more or less trade, in seconds from the beginning; factors of the rate by scope."""

    label: str
    description: str
    begins: int
    lasts: int
    factors: Mapping[str, Decimal]


Members: TypeAlias = Mapping[str, Sequence[Member]]

# Shops and institutions are never absent, or half a quarter would have no receiver.
SOMETIMES_ABSENT = ("households", "producers", "services")
ABSENT = ("suspended", "frozen", "left")
ONE_ABSENT_IN = 25
# One partner in so many comes from the whole network, the others from the same quarter: cycles stay short.
ONE_STRANGER_IN = 10
LATE_BY = 20  # seconds

# A smaller town has too few services for hours to circulate.
HOURS_FROM = 20
HUBS = "anchors"
DEGREE_MOST = 1000
LIMIT_MOST = 10**9

SPREAD = 37  # coprime to 100: its multiples visit each per cent once
# Coprime to the number of pairs: every pair is used once before any repeats, and neighbours share no word.
_STRIDE = 1013


class Invented(Struct, frozen=True, forbid_unknown_fields=True):
    """What networks are made of: `villages.yaml`."""

    groups: dict[str, Group]
    habits: tuple[Habit, ...]
    given: tuple[str, ...]
    family: tuple[str, ...]
    places: tuple[str, ...]
    trades: dict[str, tuple[str, ...]]
    links: dict[str, tuple[Link, ...]]
    days: tuple[Day, ...]


@cache
def invented() -> Invented:
    data = files("pendula.credit.authoring").joinpath("villages.yaml").read_bytes()
    return read(read_bytes(data, Format.YAML, "villages.yaml"), Invented)


def layout_of(profile: Profile, participants: int = MOST) -> Layout:
    links = invented().links
    town = {"households": 44, "retail": 14, "producers": 14, "services": 20, "anchors": 5, "agents": 3}
    match profile:
        case Profile.VILLAGE:
            village = {"households": 38, "retail": 12, "producers": 24, "services": 16, "anchors": 6, "agents": 4}
            return Layout(village, 100, links["village"])
        case Profile.TOWN if participants < HOURS_FROM:
            return Layout(town, 60, links["village"])
        case Profile.TOWN:
            ring = Link("services", "services", 200, 8, equivalent=HOUR)
            return Layout(town, 60, links["village"] + links["hours"], ring, (HOUR, UNIT))
        case Profile.RING:
            return Layout({"neighbours": 100}, MOST, ring=Link("neighbours", "neighbours", 200, 200, 2))
        case Profile.MARKET:
            return Layout({"households": 50, "anchors": 4, "retail": 22, "producers": 24}, 25, links["market"])


def habit_of(group: str, place: int) -> str:
    """The habit of a member; habits alternate, so that even a small group has all of them by share."""
    point = place * SPREAD % 100
    for habit in invented().habits:
        if habit.group == group:
            point -= habit.share
            if point < 0:
                return habit.id
    raise AssertionError(f"the habits of {group} are not shared out")


def name_of(group: str, number: int, turn: int = 0) -> str:
    """The name of a member: of a firm in groups that trade, else of a person."""
    names = invented()
    trades = names.trades.get(group)
    front, back = (names.family, trades) if trades else (names.given, names.family)
    pairs = len(front) * len(back)
    pair = (number * _STRIDE + turn) % pairs
    again = number // pairs
    name = f"{front[pair % len(front)]} {back[pair // len(front)]}"
    return name if again == 0 else f"{name} of {names.places[(again + turn) % len(names.places)]}"


def village(
    participants: int,
    seed: int,
    *,
    profile: Profile = Profile.VILLAGE,
    hubs: int | None = None,
    degree: int | None = None,
    limit: int | None = None,
) -> dict[str, Json]:
    """A scenario document; raises `InputRefused` unless participants are 2..100 000 and the seed is 0..2^64 - 1.

    `hubs` is how many institutions there are; a ring has none. `degree` is how many lines of the first unit there
    are for each participant, on average, as far as there are different partners. `limit` is the limit of every line in
    whole units.
    """
    _within("number of participants", participants, LEAST, MOST)
    _within("seed", seed, 0, SEED_MOST)
    layout = layout_of(profile, participants)
    shaped = [f"{name}-{value}" for name, value in (("hubs", hubs), ("degree", degree), ("limit", limit)) if value]
    if hubs is not None:
        layout = _with_hubs(layout, participants, hubs)
    if degree is not None:
        layout = _with_degree(layout, participants, degree)
    if limit is not None:
        _within("limit", limit, 1, LIMIT_MOST)
        layout = msgspec.structs.replace(layout, limit=limit)
    members = _members(participants, layout, stream(seed, participants, PEOPLE))
    draw = stream(seed, participants, LINES)
    turn = stream(seed, participants, NAMES).next()
    return {
        "schema_version": "scenario/1",
        "scenario_id": "-".join([profile, str(participants), str(seed), *shaped]),
        "name": f"A {profile} of {participants}",
        "description": f"Invented: a {profile} of {participants} participants that trade in circles, from seed {seed}.",
        "seed": seed,
        "baseEquivalent": UNIT,
        "equivalents": list(layout.equivalents),
        "groups": [{"id": group, "label": invented().groups[group].label} for group in members],
        "behaviorProfiles": [
            _behaviour(habit, layout, members) for habit in invented().habits if habit.group in members
        ],
        "participants": [_participant(member, turn) for group in members.values() for member in group],
        "trustlines": [*_lines(layout, members, draw), *_ring(layout, members, draw)],
        "settings": _settings(profile),
        "events": _events(members, stream(seed, participants, EVENTS)),
    }


def _with_hubs(layout: Layout, participants: int, hubs: int) -> Layout:
    if HUBS not in layout.shares:
        raise InputRefused("A ring has no hubs; leave the number of hubs out", value=hubs)
    # Each other group keeps a member, as far as there are participants.
    _within("number of hubs", hubs, 0, max(0, participants - LEAST))
    return msgspec.structs.replace(layout, hubs=hubs)


def _with_degree(layout: Layout, participants: int, degree: int) -> Layout:
    """All links of the first unit, thinned out or multiplied alike; hours stay as they are."""
    _within("degree", degree, 1, DEGREE_MOST)
    counts = _counts(participants, layout)
    links = [link for link in layout.links if link.equivalent == UNIT]
    usual = sum(link.hundredths * counts.get(link.payee if link.by_payee else link.payer, 0) for link in links)
    scaled = [
        msgspec.structs.replace(link, hundredths=link.hundredths * degree * participants * 100 // usual)
        if link.equivalent == UNIT
        else link
        for link in layout.links
    ]
    return msgspec.structs.replace(layout, links=tuple(scaled), steps=degree, wide=True)


def _within(noun: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputRefused(f"The {noun} is {value}; it must be {least} to {most}", value=value, least=least, most=most)


def _members(participants: int, layout: Layout, draw: Pcg32) -> dict[str, list[Member]]:
    counts = _counts(participants, layout)
    quarters = max(1, participants // layout.quarter)
    absent = _absent(participants // ONE_ABSENT_IN, counts, draw)
    turn = draw.bounded(100)
    return {
        group: [
            Member(
                id=f"{invented().groups[group].member}-{number + 1:0{len(str(count))}d}",
                group=group,
                number=number,
                quarter=number * quarters // count,
                habit=habit_of(group, turn + number),
                status=ABSENT[draw.bounded(len(ABSENT))] if (group, number) in absent else "active",
            )
            for number in range(count)
        ]
        for group, count in counts.items()
    }


def _counts(participants: int, layout: Layout) -> dict[str, int]:
    """One of each group as far as they go, the rest by share; hubs by their number, where it is given."""
    if layout.hubs is not None:
        others = {group: share for group, share in layout.shares.items() if group != HUBS}
        without_hubs = _counts(participants - layout.hubs, msgspec.structs.replace(layout, shares=others, hubs=None))
        return {**without_hubs, HUBS: layout.hubs} if layout.hubs else without_hubs
    shares = layout.shares
    groups = list(shares)[:participants]
    rest, whole = participants - len(groups), sum(shares[group] for group in groups)
    counts, before = {}, 0
    for group in groups:
        after = before + shares[group]
        counts[group] = 1 + rest * after // whole - rest * before // whole
        before = after
    return counts


def _absent(count: int, counts: Mapping[str, int], draw: Pcg32) -> set[tuple[str, int]]:
    groups = [group for group in SOMETIMES_ABSENT if group in counts]
    absent: set[tuple[str, int]] = set()
    while groups and len(absent) < count:
        group = groups[draw.bounded(len(groups))]
        absent.add((group, draw.bounded(counts[group])))
    return absent


def _participant(member: Member, turn: int) -> Json:
    return {
        "id": member.id,
        "name": name_of(member.group, member.number, turn),
        "type": invented().groups[member.group].type,
        "status": member.status,
        "groupId": member.group,
        "behaviorProfileId": member.habit,
    }


def _behaviour(habit: Habit, layout: Layout, members: Members) -> Json:
    # A group of one has no receivers of its own.
    others = [group for group in members if group != habit.group or len(members[group]) > 1]
    codes = [
        code
        for code in layout.equivalents
        if any((habit.group, code) == (link.payer, link.equivalent) for link in (*layout.links, layout.ring) if link)
    ]
    weights = {to: weight for to, weight in habit.weights.items() if to in others} or dict.fromkeys(others, 1)
    amounts = {"min": SMALLEST_PAYMENT, "p50": habit.p50, "p90": habit.p90, "max": habit.most}
    return {
        "id": habit.id,
        "props": {
            "tx_rate": habit.rate,
            "equivalent_weights": dict.fromkeys(codes, 1),
            "recipient_group_weights": weights,
            "amount_model": {code: amounts if code == UNIT else HOURS_MODEL for code in codes},
            "flow_chains": [[habit.group, to] for to in habit.chains if to in others],
            "flow_affinity": habit.affinity,
            "periodicity_factor": habit.periodicity,
        },
    }


def _lines(layout: Layout, members: Members, draw: Pcg32) -> Iterator[Json]:
    nearby = _nearby(members)
    everywhere = {group: [member.id for member in all_ if member.status == "active"] for group, all_ in members.items()}
    for link in layout.links:
        choosing, chosen = (link.payee, link.payer) if link.by_payee else (link.payer, link.payee)
        if choosing not in members or chosen not in members:
            continue
        place = draw.bounded(100)
        for member in members[choosing]:
            count = (link.hundredths + draw.bounded(100)) // 100
            pool = nearby.get((chosen, member.quarter), [])
            # The only member in a quarter gets partners elsewhere.
            pool = everywhere[chosen] if pool in ([], [member.id]) else pool
            if layout.wide and count >= len(pool):
                pool = everywhere[chosen]
            most = len(pool) - (choosing == chosen and member.status == "active")
            for other in _partners(member.id, min(count, most), pool, everywhere[chosen], draw):
                ends = (member.id, other) if link.by_payee else (other, member.id)
                yield _line(link, *ends, place, layout.limit, draw)
                place += 1


def _nearby(members: Members) -> dict[tuple[str, int], list[str]]:
    """Active members by group and quarter."""
    nearby: dict[tuple[str, int], list[str]] = {}
    for group, all_ in members.items():
        for member in all_:
            if member.status == "active":
                nearby.setdefault((group, member.quarter), []).append(member.id)
    return nearby


def _partners(start: str, count: int, nearby: Sequence[str], everywhere: Sequence[str], draw: Pcg32) -> Iterator[str]:
    """Distinct partners, mostly of the same quarter."""
    taken = {start}
    while len(taken) <= count:
        pool = nearby if draw.bounded(ONE_STRANGER_IN) else everywhere
        other = pool[draw.bounded(len(pool))]
        if other not in taken:
            taken.add(other)
            yield other


def _ring(layout: Layout, members: Members, draw: Pcg32) -> Iterator[Json]:
    """Each pays the next and the last but one: three neighbours in a row are a cycle, and all are joined.

    Where there are more steps, the next but one comes third, the last but two fourth, and so on.
    """
    link = layout.ring
    steps = [(1 + step // 2) * (-1) ** step - step % 2 for step in range(layout.steps)]
    ring = [member.id for member in members[link.payer] if member.status == "active"] if link else []
    for place, payer in enumerate(ring):
        # With two or three participants some steps lead to the same one, or nowhere.
        for step in dict.fromkeys(step % len(ring) for step in steps):
            if link and step:
                at = 2 * place + (step != 1)
                yield _line(link, ring[(place + step) % len(ring)], payer, at, layout.limit, draw)


def _line(link: Link, creditor: str, debtor: str, place: int, limit: int | None, draw: Pcg32) -> Json:
    """Doublings and policies alternate by `place`: villages differ in their lines, not in their total capacity."""
    low = link.least * 100 << place % link.doublings
    cents = low + draw.bounded(low)  # drawn even if a limit is given, so that the partners stay the same
    line: dict[str, Json] = {
        "from": creditor,
        "to": debtor,
        "limit": cents_text(cents if limit is None else 100 * limit),
    }
    if link.equivalent != UNIT:
        line["equivalent"] = link.equivalent
    mediates = invented().groups[link.payee].mediates
    if place * mediates % 100 >= mediates:
        line["policy"] = {"can_be_intermediate": False}
    return line


def _settings(profile: Profile) -> Json:
    return {
        "warmup": {"ticks": 10, "floor": Decimal("0.2")},
        "trust_drift": {
            # A ring shows the effect of clearing alone.
            "enabled": profile is not Profile.RING,
            "growth_rate": Decimal("0.15"),
            "decay_rate": Decimal("0.02"),
            "max_growth": 2,
            "min_limit_ratio": Decimal("0.6"),
            "overload_threshold": Decimal("0.9"),
        },
        "flow": {"enabled": True, "default_affinity": Decimal("0.6"), "reciprocity_bonus": Decimal("0.15")},
    }


def _events(members: Members, draw: Pcg32) -> list[Json]:
    """A note at the start, then days with more or less trade than usual."""
    opening: Json = {"time": 0, "type": "note", "description": "The books are open; nobody owes anybody anything."}
    habits = {member.habit for group in members.values() for member in group}
    scopes = {"all", *(f"group:{group}" for group in members), *(f"profile:{habit}" for habit in habits)}
    days = [day for day in invented().days if not scopes.isdisjoint(day.factors)]
    return [opening, *(_stress(day, scopes, draw) for day in days)]


def _stress(day: Day, scopes: set[str], draw: Pcg32) -> Json:
    effects: list[Json] = [
        {"op": "mult", "field": "tx_rate", "scope": scope, "value": factor}
        for scope, factor in day.factors.items()
        if scope in scopes
    ]
    return {
        "time": (day.begins + draw.bounded(LATE_BY)) * 1000,
        "type": "stress",
        "label": day.label,
        "description": day.description,
        "effects": effects,
        "metadata": {"duration_ms": day.lasts * 1000},
    }
