"""Every golden sequence of the requirement document, unchanged."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import pytest

from pendula.kernel.rng import Pcg32, stream
from pendula.playback.choosing.generator import NAE_STREAM, PICK_STREAM, integer_weights, shares
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.swrr import RoundRobin, step
from pendula.playback.model import InsertResult, Origin, Record
from pendula.playback.settings import Exposure, Mode, Nae, Pick, PickMode, Settings
from pendula.playback.settings import checked_exposure as checked
from tests.playback.shelves import ids, manual, shown

THREE = (ids("a", *range(100, 150)), ids("b", *range(200, 250)), ids("c", *range(300, 350)))


@pytest.mark.req("PLAY-HIST-1")
@pytest.mark.req("PLAY-HIST-2")
@pytest.mark.req("PLAY-HIST-3")
def test_hist() -> None:
    programme = Programme(THREE, Settings(history=4, lookahead=4), seed=1)
    for _ in range(12):
        programme.next()

    assert shown(programme.history) == [302, 103, 203, 303]
    assert shown([programme.prev() for _ in range(5)]) == [203, 103, 302, None, None]
    assert shown([programme.next() for _ in range(5)]) == [103, 203, 303, 104, 204]


@pytest.mark.req("PLAY-LOOK-1")
@pytest.mark.req("PLAY-LOOK-2")
@pytest.mark.parametrize(
    ("least", "calls", "batches", "sizes"),
    [
        (32, 100, [1, 2, 34, 66, 98], {1: 31, 2: 62, 3: 61, 32: 32, 33: 31, 34: 62}),
        (4, 12, [1, 2, 6, 10], {1: 3, 2: 6}),
    ],
)
def test_look_a(least: int, calls: int, batches: list[int], sizes: dict[int, int]) -> None:
    programme = Programme(THREE, Settings(lookahead=least), seed=1)
    found_batches, found_sizes = [], {}
    for call in range(1, calls + 1):
        before = programme.batches
        programme.next()
        if programme.batches > before:
            found_batches.append(call)
        found_sizes[call] = len(programme.lookahead)

    assert found_batches == batches
    assert {call: found_sizes[call] for call in sizes} == sizes


EXP = [
    (
        [9000, 800, 150, 50],
        [10, 30, 0, 60],
        ["1600/3161", "628/3161", "80/3161", "853/3161"],
        [33172, 13020, 1659, 17685],
    ),
    ([9000, 1000], [0, 0], ["80/93", "13/93"], [56375, 9161]),
    ([100] * 4, [0] * 4, ["1/4"] * 4, [16384] * 4),
    ([1000, 0, 0], [0, 0, 0], ["10/11", "1/22", "1/22"], [59578, 2979, 2979]),
    ([0, 0], [0, 0], ["1/2", "1/2"], [32768, 32768]),
    (
        [10000, 10, 10, 10, 10, 10],
        [5, 0, 0, 0, 0, 5],
        ["16080/26357", *["804/26357"] * 4, "7061/26357"],
        [39983, *[1999] * 4, 17557],
    ),
]


@pytest.mark.req("PLAY-EXP-1")
@pytest.mark.req("PLAY-EXP-4")
@pytest.mark.parametrize(("total", "recent", "exact", "weights"), EXP)
def test_exp(total: list[int], recent: list[int], exact: list[str], weights: list[int]) -> None:
    names = [str(index) for index in range(len(total))]
    exposure = Exposure(
        Mode.PRE, total_count=dict(zip(names, total, strict=True)), recent_count=dict(zip(names, recent, strict=True))
    )

    parts, _ = shares(checked(exposure), names)

    assert parts == [Fraction(part) for part in exact]
    assert integer_weights(parts) == weights


@pytest.mark.req("PLAY-EXP-4")
@pytest.mark.parametrize(
    ("row", "picks"),
    [
        (0, "0 3 1 0 0 3 0 1 0 3 0 1 0 3 0 2 0 3 1 0"),
        (1, "0 0 0 1 0 0 0 0 0 0 1 0 0 0 0 0 0 1 0 0"),
        (5, "0 5 0 0 5 0 0 1 0 5 0 2 0 5 0 0 5 0 0 3"),
    ],
)
def test_exp_picks(row: int, picks: str) -> None:
    assert list(RoundRobin(EXP[row][3]).ahead(20)) == [int(pick) for pick in picks.split()]


@pytest.mark.req("PLAY-SWRR-1")
@pytest.mark.req("PLAY-SWRR-2")
@pytest.mark.req("PLAY-EXP-2")
@pytest.mark.req("PLAY-EXP-3")
@pytest.mark.parametrize(
    ("mode", "given", "weights"),
    [
        (Mode.EQE, [0] * 3, [21846, 21845, 21845]),
        (Mode.EQE, [0] * 5, [13108] + [13107] * 4),
        (Mode.EQE, [0] * 7, [9363] * 2 + [9362] * 5),
        (Mode.EQE, [0] * 63, [1041] * 16 + [1040] * 47),
        (Mode.EQE, [0] * 64, [1024] * 64),
        (Mode.EQE, [0], [65536]),
        (Mode.MAE, [3, 2, 1], [32768, 21845, 10923]),
        (Mode.MAE, [2, 1], [43691, 21845]),
        (Mode.MAE, [1, 1000000], [1, 65535]),
        (Mode.MAE, [0, 3, 1], [0, 49152, 16384]),
        (Mode.MAE, [5, 1, 1], [46812, 9362, 9362]),
    ],
)
def test_w(mode: Mode, given: list[int], weights: list[int]) -> None:
    names = [str(index) for index in range(len(given))]
    exposure = Exposure(mode, {name: Decimal(weight) for name, weight in zip(names, given, strict=True)})

    assert integer_weights(shares(checked(exposure), names)[0]) == weights


@pytest.mark.req("PLAY-SWRR-3")
@pytest.mark.parametrize(
    ("weights", "total", "steps"),
    [
        (
            (5, 1, 1),
            7,
            [
                ("a", (-2, 1, 1)),
                ("a", (-4, 2, 2)),
                ("b", (1, -4, 3)),
                ("a", (-1, -3, 4)),
                ("c", (4, -2, -2)),
                ("a", (2, -1, -1)),
                ("a", (0, 0, 0)),
            ],
        ),
        (
            (46812, 9362, 9362),
            65536,
            [
                ("a", (-18724, 9362, 9362)),
                ("a", (-37448, 18724, 18724)),
                ("b", (9364, -37450, 28086)),
                ("a", (-9360, -28088, 37448)),
                ("c", (37452, -18726, -18726)),
                ("a", (18728, -9364, -9364)),
                ("a", (4, -2, -2)),
            ],
        ),
    ],
)
def test_swrr_a_and_b_step_by_step(
    weights: tuple[int, ...], total: int, steps: Sequence[tuple[str, tuple[int, ...]]]
) -> None:
    credits = [0, 0, 0]
    for name, after in steps:
        assert "abc"[step(credits, weights, total)] == name
        assert tuple(credits) == after


@pytest.mark.req("PLAY-SWRR-4")
@pytest.mark.req("PLAY-SWRR-5")
def test_swrr_b_over_its_period() -> None:
    sequence = RoundRobin((46812, 9362, 9362))

    assert "".join("abc"[pick] for pick in sequence.ahead(28)) == "aabacaa" * 4
    assert sequence.period == 32768
    whole = sequence.ahead(65536)
    assert [whole.count(index) for index in range(3)] == [46812, 9362, 9362]


@pytest.mark.req("PLAY-SWRR-3")
@pytest.mark.parametrize(
    ("weights", "picks"),
    [
        ([21846, 21845, 21845], "012" * 4),
        ([32768, 21845, 10923], "012010" * 2),
        ([0, 49152, 16384], "112111211121"),
        ([65536], "0" * 12),
    ],
)
def test_swrr_c(weights: list[int], picks: str) -> None:
    assert "".join(map(str, RoundRobin(weights).ahead(len(picks)))) == picks


@pytest.mark.req("PLAY-PICK-1")
def test_pick_a() -> None:
    programme = Programme((ids("a", 1, 2, 3), ids("b", 10, 11)), Settings(exposure=manual(a=2, b=1)), seed=1)

    assert shown([programme.next() for _ in range(15)]) == [1, 10, 2, 3, 11, 1, 2, 10, 3, 1, 11, 2, 3, 10, 1]


@pytest.mark.req("PLAY-PICK-1")
def test_pick_b() -> None:
    programme = Programme((ids("a", 1, 2), ids("b", 2, 3)), seed=1)
    items = [programme.next() for _ in range(600)]

    seen = [(item.id, item.channel_index) for item in items if item]
    assert seen == [(1, 0), (2, 1), (1, 0), (3, 1), (2, 0), (3, 1)] * 100
    assert [item.trace.skipped if item and item.trace else () for item in items[:6]] == [(), (), (1,), (), (), (0,)]


@pytest.mark.req("PLAY-PICK-1")
@pytest.mark.req("PLAY-EDGE-1")
def test_pick_c() -> None:
    programme = Programme((ids("a", 7),), seed=1)

    assert shown([programme.next() for _ in range(100)]) == [7] * 100


@pytest.mark.req("PLAY-PICK-2")
def test_pick_d() -> None:
    settings = Settings(exposure=manual(a=3, b=1), pick=Pick(PickMode.RANDOM, 4))
    programme = Programme((ids("a", *range(1, 9)), ids("b", 11, 12, 13)), settings, seed=1)

    expected = "4 2 11 3 2 3 13 3 2 3 12 4 2 1 11 3 2 4 11 3 4 3 13 2"
    assert shown([programme.next() for _ in range(24)]) == [int(id) for id in expected.split()]


class Scripted:
    """The draws in the tables of the document, as fractions of one."""

    def __init__(self, *numbers: str) -> None:
        self.state, self.increment = 0, 1
        self._numbers = iter(numbers)

    def next(self) -> int:
        return int(Fraction(next(self._numbers)) * 2**32)


def pooled(programme: Programme) -> dict[int, int]:
    """The pool as id → priority in 64ths, in order of insertion."""
    entries = [
        (entry.number, entry.id, priority)
        for priority, level in zip((32, 16, 8, 4, 2), programme.generator.pool, strict=True)
        for entry in level
    ]
    return {id: priority for _, id, priority in sorted(entries)}


def scripted(programme: Programme, *numbers: str) -> None:
    programme.generator.nae_draws = Scripted(*numbers)  # type: ignore[assignment]


@pytest.mark.req("PLAY-NAE-2")
def test_nae_a() -> None:
    programme = Programme(THREE, Settings(lookahead=1), seed=1)
    scripted(programme, *["0"] * 20)
    programme.nae_insert(Record(900, 1))
    seen = []
    while programme.generator.pool != ((),) * 5:
        programme.next()
        seen.append(pooled(programme))

    # Every second draw finds 900 just shown and falls back; the decay applies nevertheless.
    assert seen == [{900: 16}, {900: 8}, {900: 4}, {900: 2}, {}]


@pytest.mark.req("PLAY-NAE-2")
@pytest.mark.req("PLAY-NAE-3")
@pytest.mark.req("PLAY-NAE-4")
@pytest.mark.req("PLAY-NAE-5")
@pytest.mark.req("PLAY-NAE-6")
def test_nae_b() -> None:
    programme = Programme(THREE, Settings(lookahead=1), seed=1)
    scripted(programme, ".90", ".10", ".80", ".60", ".30", ".40", ".05", ".55", ".20", ".01")
    inserts = {1: [101, 102], 4: [103], 8: [101]}
    results, items, pools = [], [], []
    for number in range(1, 11):
        for id in inserts.get(number, ()):
            results.append(programme.nae_insert(Record(id, 1)))
        [item], _ = programme.generator.generate(1, 1)
        items.append(item)
        pools.append(pooled(programme))

    assert results == [InsertResult.INSERTED] * 3 + [InsertResult.MERGED]
    assert pools == [
        {101: 16, 102: 32},
        {101: 16, 102: 16},
        {101: 16, 102: 16},
        {101: 16, 102: 16, 103: 16},
        {101: 8, 102: 16, 103: 16},
        {101: 8, 102: 8, 103: 16},
        {101: 8, 102: 8, 103: 8},
        {101: 16, 102: 8, 103: 8},
        {101: 8, 102: 8, 103: 8},
        {101: 4, 102: 8, 103: 8},
    ]
    assert [item.id for item in items] == [101, 102, 100, 103, 101, 102, 103, 101, 200, 101]
    assert [item.origin for item in items] == [
        Origin.NAE, Origin.NAE, Origin.BASE, Origin.NAE, Origin.NAE,
        Origin.NAE, Origin.NAE, Origin.NAE, Origin.NAE_FALLBACK, Origin.NAE,
    ]  # fmt: skip


@pytest.mark.req("PLAY-NAE-3")
def test_nae_c() -> None:
    programme = Programme(THREE, Settings(nae=Nae(cap=4)), seed=1)
    scripted(programme, "0", "0")
    for id in (1, 2, 3, 4):
        programme.nae_insert(Record(id, 1))
    programme.generator.generate(2, 1)

    assert pooled(programme) == {1: 16, 2: 16, 3: 32, 4: 32}
    programme.nae_insert(Record(5, 1))
    assert list(pooled(programme)) == [2, 3, 4, 5]
    programme.nae_insert(Record(6, 1))
    assert list(pooled(programme)) == [3, 4, 5, 6]
    for id in (7, 8, 9):
        programme.nae_insert(Record(id, 1))
    assert pooled(programme) == {6: 32, 7: 32, 8: 32, 9: 32}


@pytest.mark.req("PLAY-NAE-6")
def test_nae_d() -> None:
    programme = Programme((ids("a", 1, 2, 3),), Settings(lookahead=1), seed=1)
    scripted(programme, *[".1"] * 5)
    programme.nae_insert(Record(900, 1))
    items, priorities = [], []
    for _ in range(5):
        [item], _ = programme.generator.generate(1, 1)
        items.append((item.id, item.origin.value))
        priorities.append(pooled(programme).get(900))

    assert items == [(900, "nae"), (1, "nae_fallback"), (900, "nae"), (2, "base"), (3, "base")]
    assert priorities == [16, 8, 4, 4, 4]


@pytest.mark.req("PLAY-NAE-4")
@pytest.mark.req("PLAY-LOOK-3")
def test_nae_e() -> None:
    programme = Programme((ids("a", 1, 2, 3, 4), ids("b", 11, 12, 13)), Settings(lookahead=8), seed=1)
    programme.nae_insert(Record(900, 1))
    programme.nae_insert(Record(901, 1))

    expected = "900N 1 11 2 901N 900N 901N 12 900N 3 901N 13 4 11 900N 1 12 2 13 3 11 4 901N 12"
    items = [programme.next() for _ in range(24)]
    assert [f"{item.id}{'N' if item.origin is Origin.NAE else ''}" for item in items if item] == expected.split()


@pytest.mark.req("PLAY-RNG-1")
def test_rng_check_vector() -> None:
    generator = Pcg32.seeded(42, 54)

    found = " ".join(f"{generator.next():08x}" for _ in range(6))
    assert found == "a15c02b7 7b47f409 ba1d3330 83d2f293 bfa4784b cbed606e"


@pytest.mark.req("PLAY-RNG-2")
@pytest.mark.parametrize(
    ("seed", "epoch", "constant", "expected"),
    [
        (1, 0, NAE_STREAM, "3d1886f0 f8c37610 e88168ec c8513012"),
        (1, 0, PICK_STREAM, "e7286996 5cfb4e07 0907b393 9b9e63fd"),
        (1, 1, NAE_STREAM, "3b88b7bb 36fed145 6baa575c f3410090"),
        (1, 1, PICK_STREAM, "f5c3abd9 ca19a4ba b515f39b 5630a8eb"),
        (2, 0, NAE_STREAM, "a7a1fc04 891800d7 caa09cab a3a172b0"),
        (2, 0, PICK_STREAM, "d7ff19b8 f478fa2a 51216205 bed2e356"),
    ],
)
def test_rng_streams(seed: int, epoch: int, constant: int, expected: str) -> None:
    generator = stream(seed, epoch, constant)

    assert " ".join(f"{generator.next():08x}" for _ in range(4)) == expected


@pytest.mark.req("PLAY-RNG-3")
def test_rng_bounded() -> None:
    generator = stream(1, 0, PICK_STREAM)

    assert [generator.bounded(5) for _ in range(20)] == [4, 1, 0, 3, 1, 1, 3, 4, 2, 2, 3, 2, 1, 3, 3, 3, 2, 0, 1, 3]
