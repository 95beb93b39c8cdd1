"""Generated networks: equal bytes for equal arguments, loadable, with circles, and realistic."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.authoring.linting import lint
from pendula.credit.authoring.villages import (
    LEAST,
    MOST,
    SEED_MOST,
    Profile,
    habit_of,
    invented,
    layout_of,
    name_of,
    village,
)
from pendula.credit.commands import Clear, SetIntensity, Tick
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDone, Event, Note, TxFailed, TxUpdated
from pendula.credit.model import LineStatus, ParticipantStatus, ParticipantType, Scenario
from pendula.credit.money import ATOMS, text
from pendula.credit.reading import read_with_warnings
from pendula.credit.settings import Settings
from pendula.documents import read_bytes
from pendula.kernel.canonical import Json, digest, encode
from pendula.kernel.errors import InputRefused
from tests.campaigns import campaign_after, fewer_examples

HOPS = 3  # how far a sender looks for a receiver
LONGEST_CYCLE = 6
CAP = 500
INTENSITY = 70
SEEDS = range(1, 6)
PROPS = {
    "tx_rate",
    "equivalent_weights",
    "recipient_group_weights",
    "amount_model",
    "flow_chains",
    "flow_affinity",
    "periodicity_factor",
}

GOLDEN = {
    (Profile.VILLAGE, 100, 1): "95869da0e18b0e81db21806ced813d7176f056f529d04c5674d5048c7587568f",
    (Profile.VILLAGE, 2, 0): "a4b69060e021e9b727fd3b4322aa6741fcded6ace7394741b619128ecd2294ef",
    (Profile.VILLAGE, 1000, SEED_MOST): "6148ef69026a73b41d154dd9d2d4a42664e9631ae50497978c739ee40876ae02",
    (Profile.TOWN, 100, 1): "63d1c35dc82a24cc0af81dd1da93b4ba064864d505a282f78a303217c9d267d6",
    (Profile.RING, 12, 1): "872da9b40f00f1a1f634e98b96d1ef4a0861643829dce54ed7af63b8ab02476f",
    (Profile.MARKET, 100, 1): "fdc0501de07c2ff9d4b94aa636fcd5ca476e33f3d61815d0cd11d1623a2feff7",
}

profiles = st.sampled_from(Profile)
sizes = st.integers(LEAST, 300)
seeds = st.integers(0, SEED_MOST)


def load(document: Mapping[str, Json]) -> Scenario:
    scenario, warnings = read_with_warnings(read_bytes(encode(document)))
    assert warnings == ()
    return scenario


def hops(scenario: Scenario, equivalent: str = "UNIT") -> dict[str, list[str]]:
    """The participants that each active participant can pay directly."""
    active = {participant.id for participant in scenario.participants if participant.status is ParticipantStatus.ACTIVE}
    payees: dict[str, list[str]] = {name: [] for name in sorted(active)}
    for line in scenario.lines:
        if line.equivalent == equivalent and line.limit > 0 and {line.creditor, line.debtor} <= active:
            payees[line.debtor].append(line.creditor)
    return payees


def within(out: Mapping[str, list[str]], start: str, steps: int) -> set[str]:
    """The participants that `start` can pay over at most `steps` hops; `start` itself only through a cycle."""
    reached: set[str] = set()
    layer = {start}
    for _ in range(steps):
        layer = {payee for payer in layer for payee in out[payer]} - reached
        reached |= layer
    return reached


def on_cycles(out: Mapping[str, list[str]], longest: int = LONGEST_CYCLE) -> list[str]:
    """The participants on a cycle of three to `longest` different participants."""

    def closes(start: str, here: str, length: int, seen: tuple[str, ...]) -> bool:
        if length >= 3 and start in out[here]:
            return True
        if length == longest:
            return False
        return any(closes(start, onward, length + 1, (*seen, onward)) for onward in out[here] if onward not in seen)

    return [start for start in out if closes(start, start, 1, (start,))]


def props_of(document: Mapping[str, Any]) -> dict[str, Any]:
    return {profile["id"]: profile["props"] for profile in document["behaviorProfiles"]}


def start_run(profile: Profile, participants: int, seed: int, **settings: Json) -> Run:
    config: dict[str, Json] = {
        "scenario": village(participants, seed, profile=profile),
        "seed": seed,
        "run_id": "run_village",
        "intensity_percent": INTENSITY,
        "settings": {"amount_cap": CAP * ATOMS, **settings},
        "patches": False,
    }
    return Run.create(config)


class Figures(NamedTuple):
    """The figures of the realism targets; shares in per cent."""

    committed: Decimal
    mean_amount: Decimal
    largest_amount: Decimal
    between_households: Decimal
    clearings_in_60: Decimal


def figures(run: Run, events: Sequence[Event], ticks: int) -> Figures:
    """The figures of the first `ticks` ticks."""
    group_of = {participant.id: participant.group for participant in run.scenario.participants}
    paid = [event for event in events if isinstance(event, TxUpdated) and event.tick_index < ticks]
    failed = [event for event in events if isinstance(event, TxFailed) and event.tick_index < ticks]
    cleared = [event for event in events if isinstance(event, ClearingDone) and event.tick_index < ticks]
    amounts = [Decimal(payment.amount) for payment in paid]
    domestic = [payment for payment in paid if group_of[payment.sender] == group_of[payment.receiver] == "households"]
    return Figures(
        Decimal(100 * len(paid)) / (len(paid) + len(failed)),
        sum(amounts, Decimal()) / len(amounts),
        max(amounts),
        Decimal(100 * len(domestic)) / len(paid),
        Decimal(60 * len(cleared)) / ticks,
    )


def positions(run: Run) -> list[int]:
    book = run.network.ledgers["UNIT"].book
    return [book.position(node) for node in range(len(book.people))]


@pytest.mark.parametrize(("profile", "participants", "seed"), GOLDEN)
def test_a_network_has_its_golden_bytes(profile: Profile, participants: int, seed: int) -> None:
    assert digest(village(participants, seed, profile=profile)) == GOLDEN[profile, participants, seed]


def test_a_network_has_the_same_bytes_under_any_hash_seed() -> None:
    code = (
        "from pendula.credit.authoring.villages import Profile, village; from pendula.kernel.canonical import digest;"
        "print([digest(village(150, 5, profile=profile)) for profile in Profile])"
    )
    expected = str([digest(village(150, 5, profile=profile)) for profile in Profile])

    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        assert done.stdout.decode().strip() == expected


@given(profiles, sizes, seeds)
def test_another_seed_gives_another_network(profile: Profile, participants: int, seed: int) -> None:
    other = (seed + 1) % (SEED_MOST + 1)

    this, that = village(participants, seed, profile=profile), village(participants, other, profile=profile)

    assert village(participants, seed, profile=profile) == this
    assert this["trustlines"] != that["trustlines"]
    assert this["scenario_id"] != that["scenario_id"]


@pytest.mark.parametrize("participants", [-3, 0, 1, MOST + 1])
def test_a_number_of_participants_out_of_range_is_rejected_with_the_range(participants: int) -> None:
    with pytest.raises(InputRefused, match="2 to 100000") as refused:
        village(participants, 1)

    assert refused.value.details == {"value": participants, "least": LEAST, "most": MOST}


@pytest.mark.parametrize("seed", [-1, SEED_MOST + 1])
def test_a_seed_outside_unsigned_64_bits_is_rejected(seed: int) -> None:
    with pytest.raises(InputRefused, match=f"The seed is {seed}; it must be 0 to {SEED_MOST}"):
        village(10, seed)


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.req("SIM-SCN-5")
@given(profiles, sizes, seeds)
def test_every_network_loads_without_faults_or_warnings(profile: Profile, participants: int, seed: int) -> None:
    document = village(participants, seed, profile=profile)

    scenario = load(document)

    assert len(scenario.participants) == participants
    assert scenario.seed == seed
    assert scenario.equivalents == (("HOUR", "UNIT") if profile is Profile.TOWN and participants >= 20 else ("UNIT",))
    assert all(line.limit > 0 and line.status is LineStatus.ACTIVE for line in scenario.lines)


@pytest.mark.req("SIM-SCN-15")
@fewer_examples()
@given(profiles, st.integers(3, 300), seeds)
def test_the_linter_has_no_findings(profile: Profile, participants: int, seed: int) -> None:
    scenario = load(village(participants, seed, profile=profile))

    assert lint(scenario, Settings()) == ()


@pytest.mark.parametrize("profile", Profile)
def test_two_participants_lack_only_a_circle(profile: Profile) -> None:
    assert [caution.code for caution in lint(load(village(2, 1, profile=profile)), Settings())] == ["no_cycle"]


@pytest.mark.req("SIM-SCN-15")
@pytest.mark.parametrize("participants", [2, 3, 4, 5, 6, 12, 30, 100, 300])
@pytest.mark.parametrize("profile", Profile)
def test_every_group_reaches_a_receiver_in_each_group_it_pays(profile: Profile, participants: int) -> None:
    for seed in SEEDS:
        document = village(participants, seed, profile=profile)
        scenario = load(document)
        out, props = hops(scenario), props_of(document)
        group_of = {participant.id: participant.group for participant in scenario.participants}
        reached: dict[str, set[str | None]] = {}
        for participant in scenario.participants:
            if participant.id in out and participant.profile is not None:
                groups = {group_of[other] for other in within(out, participant.id, HOPS) - {participant.id}}
                reached.setdefault(participant.profile, set()).update(groups)

        assert reached
        for name, groups in reached.items():
            groups_paid = {*props[name]["recipient_group_weights"], *(to for _, to in props[name]["flow_chains"])}
            assert groups_paid, name
            assert groups_paid <= groups, (seed, name)


@pytest.mark.req("SIM-SCN-15")
@pytest.mark.parametrize("profile", Profile)
def test_networks_of_three_or_more_have_cycles_that_clearing_can_find(profile: Profile) -> None:
    for participants in (3, 4, 5, 6, 7, 12, 30, 100):
        for seed in SEEDS:
            assert on_cycles(hops(load(village(participants, seed, profile=profile)))), (participants, seed)


@pytest.mark.parametrize("profile", Profile)
def test_cycles_stay_short_in_a_large_network(profile: Profile) -> None:
    out = hops(load(village(2000, 1, profile=profile)))

    assert len(on_cycles(out, longest=4)) * 2 >= len(out)


@pytest.mark.parametrize("profile", Profile)
def test_the_quarters_of_a_large_network_are_connected(profile: Profile) -> None:
    out = hops(load(village(2000, 1, profile=profile)))
    either_way: dict[str, list[str]] = {payer: list(payees) for payer, payees in out.items()}
    for payer, payees in out.items():
        for payee in payees:
            either_way[payee].append(payer)

    assert within(either_way, next(iter(out)), 2000) == set(out)


def test_lines_run_from_households_over_shops_and_makers_back_to_households() -> None:
    scenario = load(village(100, 1))
    group_of = {participant.id: participant.group for participant in scenario.participants}
    pairs = Counter((group_of[line.debtor], group_of[line.creditor]) for line in scenario.lines)

    for pair in (("households", "retail"), ("retail", "producers"), ("producers", "households")):
        assert pairs[pair] >= 25


@pytest.mark.parametrize("seed", SEEDS)
def test_a_village_has_all_groups_four_inactive_participants_and_four_lines_each(seed: int) -> None:
    scenario = load(village(100, seed))

    assert Counter(participant.group for participant in scenario.participants) == {
        "households": 36,
        "retail": 13,
        "producers": 23,
        "services": 16,
        "anchors": 7,
        "agents": 5,
    }
    assert sum(participant.status is not ParticipantStatus.ACTIVE for participant in scenario.participants) == 4
    assert 400 <= len(scenario.lines) <= 460
    assert 30 <= sum(not line.policy.mediates for line in scenario.lines) * 100 // len(scenario.lines) <= 50


def test_limits_of_a_kind_spread_over_three_doublings() -> None:
    scenario = load(village(2000, 1))
    group_of = {participant.id: participant.group for participant in scenario.participants}
    ends = "households", "retail"
    limits = [line.limit for line in scenario.lines if (group_of[line.debtor], group_of[line.creditor]) == ends]
    octaves = Counter((limit // (300 * ATOMS)).bit_length() for limit in limits)

    assert min(limits) >= 300 * ATOMS
    assert max(limits) < 2400 * ATOMS
    assert set(octaves) == {1, 2, 3}
    assert max(octaves.values()) - min(octaves.values()) <= 1


@pytest.mark.parametrize("profile", Profile)
def test_profiles_have_all_properties_and_pass_the_default_cap(profile: Profile) -> None:
    all_props = props_of(village(100, 1, profile=profile))

    assert all_props
    for props in all_props.values():
        assert set(props) == PROPS
        assert set(props["amount_model"]) == set(props["equivalent_weights"]) != set()
        for model in props["amount_model"].values():
            assert 0 < model["min"] < 3 <= model["p90"] <= model["max"] <= CAP


def test_small_groups_have_habits_in_proportion() -> None:
    counts = Counter(habit_of("households", place) for place in range(20))

    assert counts == {"household": 11, "household_active": 5, "household_frugal": 4}


def test_the_habits_of_each_group_add_up_to_100_percent() -> None:
    shares = Counter[str]()
    for habit in invented().habits:
        shares[habit.group] += habit.share

    assert shares == dict.fromkeys(invented().groups, 100)


@pytest.mark.parametrize("turn", [0, 7, 2**32 - 1])
def test_names_are_unique_in_the_largest_network(turn: int) -> None:
    def names() -> Iterator[str]:
        for group in invented().groups:
            most = max(MOST * layout.shares.get(group, 0) // 100 + 1 for layout in map(layout_of, Profile))
            # Only a ring has neighbours, and it has no other group.
            yield from (name_of(group, number, turn) for number in range(most) if group != "neighbours")

    drawn = list(names())

    assert len(set(drawn)) == len(drawn)
    assert len({name_of("neighbours", number, turn) for number in range(MOST)}) == MOST


def test_in_a_market_every_participant_has_lines_to_and_from_a_hub() -> None:
    scenario = load(village(200, 1, profile=Profile.MARKET))
    group_of = {participant.id: participant.group for participant in scenario.participants}
    active = hops(scenario)
    to_hub = {payer for payer, payees in active.items() if any(group_of[payee] == "anchors" for payee in payees)}
    from_hub = {payee for payer, payees in active.items() if group_of[payer] == "anchors" for payee in payees}
    spokes = {name for name in active if group_of[name] != "anchors"}

    assert to_hub == set(active)
    assert from_hub >= spokes


def test_three_neighbours_on_a_ring_form_a_cycle() -> None:
    out = hops(load(village(12, 1, profile=Profile.RING)))
    people = sorted(out)

    assert sum(map(len, out.values())) == 24
    for first, second, third in zip(people, people[1:] + people[:1], people[2:] + people[:2], strict=True):
        assert second in out[first]
        assert third in out[second]
        assert first in out[third]


@pytest.mark.req("SIM-PROF-20")
@pytest.mark.parametrize("seed", campaign_after(2, SEEDS))
def test_a_village_of_a_hundred_meets_the_realism_targets(seed: int) -> None:
    run = start_run(Profile.VILLAGE, 100, seed)

    events = run.apply(Tick(120)).events

    for ticks in (60, 120):
        shares = figures(run, events, ticks)
        assert 60 <= shares.committed <= 80, (ticks, shares)
        assert 100 <= shares.mean_amount <= CAP, (ticks, shares)
        assert shares.largest_amount <= CAP, (ticks, shares)
        assert 10 <= shares.between_households <= 20, (ticks, shares)
        assert 2 <= shares.clearings_in_60 <= 5, (ticks, shares)


@pytest.mark.long
@pytest.mark.req("SIM-PROF-20")
@pytest.mark.parametrize("intensity", [60, 70])
@pytest.mark.parametrize("seed", range(1, 21))
def test_villages_of_many_seeds_meet_the_realism_targets(seed: int, intensity: int) -> None:
    run = start_run(Profile.VILLAGE, 100, seed)
    run.apply(SetIntensity(intensity))

    shares = figures(run, run.apply(Tick(180)).events, 180)

    assert 60 <= shares.committed <= 80, shares
    assert 100 <= shares.mean_amount <= CAP, shares
    assert 10 <= shares.between_households <= 20, shares
    assert 2 <= shares.clearings_in_60 <= 5, shares


@pytest.mark.parametrize("profile", Profile)
def test_every_kind_of_network_pays_clears_and_keeps_its_invariants(profile: Profile) -> None:
    run = start_run(profile, 60, 3)

    events = run.apply(Tick(55)).events

    cleared = [event for event in events if isinstance(event, ClearingDone)]
    assert {event.tick_index for event in cleared} == {25, 50}
    assert {event.equivalent for event in events if isinstance(event, TxUpdated)} == set(layout_of(profile).equivalents)
    assert list(run.broken()) == []


def test_the_default_cap_plans_small_payments() -> None:
    run = start_run(Profile.VILLAGE, 100, 1, amount_cap=3 * ATOMS)

    events = run.apply(Tick(20)).events

    assert not any(isinstance(event, Note) and event.scenario["kind"] == "profile_silenced" for event in events)
    assert sum(isinstance(event, TxUpdated) for event in events) >= 100


def test_clearing_a_ring_of_twelve_reduces_debts_and_keeps_positions() -> None:
    run = start_run(Profile.RING, 12, 1, clearing_enabled=False)
    run.apply(Tick(30))
    book = run.network.ledgers["UNIT"].book
    owed, standing = book.total, positions(run)

    done = [event for event in run.apply(Clear()).events if isinstance(event, ClearingDone)]

    freed = owed - book.total
    assert [event.debt_reduction for event in done] == [text(freed)]
    assert freed * 3 >= owed
    assert positions(run) == standing


def test_a_ring_of_twelve_pays_more_with_clearing() -> None:
    def paid(clearing: bool) -> int:
        run = start_run(Profile.RING, 12, 1, clearing_enabled=clearing)
        return sum(isinstance(event, TxUpdated) for event in run.apply(Tick(120)).events)

    assert paid(clearing=True) * 2 >= paid(clearing=False) * 3


# ---- hubs, degree, limit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hubs", [0, 1, 20])
@pytest.mark.parametrize("profile", [Profile.VILLAGE, Profile.TOWN, Profile.MARKET])
def test_a_network_has_the_requested_number_of_hubs(profile: Profile, hubs: int) -> None:
    scenario = load(village(100, 3, profile=profile, hubs=hubs))

    assert len(scenario.participants) == 100
    assert sum(participant.type is ParticipantType.HUB for participant in scenario.participants) == hubs
    assert scenario.id == f"{profile}-100-3" + (f"-hubs-{hubs}" if hubs else "")


@pytest.mark.parametrize("degree", [1, 3, 8])
@pytest.mark.parametrize("profile", [Profile.VILLAGE, Profile.MARKET])
def test_a_network_has_about_the_requested_lines_per_participant(profile: Profile, degree: int) -> None:
    counts = [len(load(village(300, seed, profile=profile, degree=degree)).lines) for seed in SEEDS]

    assert all(abs(count - 300 * degree) <= 300 * degree * 0.15 for count in counts), counts


def test_every_participant_of_a_ring_has_exactly_the_degree() -> None:
    scenario = load(village(20, 3, profile=Profile.RING, degree=4))

    paid = Counter(line.debtor for line in scenario.lines)
    assert set(paid.values()) == {4}
    assert len({(line.creditor, line.debtor) for line in scenario.lines}) == len(scenario.lines)


def test_one_limit_for_all_lines_changes_only_the_limits() -> None:
    usual: Any = village(60, 3)
    even: Any = village(60, 3, limit=200)

    assert {line["limit"] for line in even["trustlines"]} == {"200.00"}
    ends = [[(line["from"], line["to"]) for line in document["trustlines"]] for document in (usual, even)]
    assert ends[0] == ends[1]
    assert {**usual, "trustlines": 0, "scenario_id": ""} == {**even, "trustlines": 0, "scenario_id": ""}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hubs": 9}, "number of hubs is 9; it must be 0 to 8"),
        ({"hubs": 1, "profile": Profile.RING}, "A ring has no hubs"),
        ({"degree": 0}, "degree is 0"),
        ({"limit": 0}, "limit is 0"),
    ],
)
def test_an_impossible_shape_is_rejected(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputRefused, match=message):
        village(10, 1, **given)
