"""Bundled sample maps by name, with their fleets if they have any."""

from collections.abc import Callable, Mapping

from pendula.fleet.model import Fleet, SourceMap
from pendula.fleet.samples import halls, scenes
from pendula.fleet.samples.built import built_warehouse
from pendula.fleet.samples.live_maps import Sample, live_map, spur_grid

NO_FLEET = Fleet(())


def _hall(trucks: int = 4) -> Sample:
    return Sample(halls.reference_hall(), halls.reference_fleet(trucks))


def _plain(make: Callable[[], SourceMap]) -> Callable[..., Sample]:
    return lambda: Sample(make(), NO_FLEET)


def _near_lanes(gapCm: int = 170, apartCm: int = 400, endsCm: int = 0) -> Sample:
    return Sample(scenes.near_lanes(gapCm / 100, apartCm / 100, endsCm / 100), NO_FLEET)


def _tail_swing(laneCm: int = 510) -> Sample:
    return Sample(scenes.tail_swing_bend(laneCm / 100), NO_FLEET)


def _triangle(side: int = 12, stub: int = 8, park: int = 0) -> Sample:
    return Sample(scenes.triangle(side, stub, park), NO_FLEET)


# For every sample its factory and its options.
SAMPLES: Mapping[str, tuple[Callable[..., Sample], tuple[str, ...]]] = {
    "reference-hall": (_hall, ("trucks",)),
    "built-warehouse": (built_warehouse, ("parks", "nodes", "percent")),
    "spur-grid": (spur_grid, ("columns", "rows", "percent")),
    "live-map": (live_map, ("seed", "parks", "percent")),
    "hall-demo": (_plain(scenes.hall_demo), ()),
    "head-on-lane": (_plain(scenes.head_on_lane), ()),
    "plus-crossing": (_plain(scenes.plus_crossing), ()),
    "near-lanes": (_near_lanes, ("gapCm", "apartCm", "endsCm")),
    "tail-swing-bend": (_tail_swing, ("laneCm",)),
    "triangle": (_triangle, ("side", "stub", "park")),
    "spur": (_plain(scenes.spur), ()),
}


# The least and greatest value of an option; `USUAL` for all others.
LIMITS: Mapping[str, tuple[int, int]] = {
    "seed": (0, 2**32),
    "trucks": (1, 4),
    "percent": (1, 100),
    "columns": (2, 100),
    "rows": (2, 100),
    "parks": (1, 1_000),
    "side": (3, 1_000),
    "park": (0, 1_000),
    "endsCm": (0, 10_000),
}
USUAL = (1, 10_000)


def sample_of(name: str, options: Mapping[str, int]) -> Sample:
    """Create a sample; raises `ValueError` if the options contradict each other."""
    make, _ = SAMPLES[name]
    return make(**options)
