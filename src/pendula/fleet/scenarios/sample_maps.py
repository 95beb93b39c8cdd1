"""Maps of our own by name, with the fleets that belong to them where there are any."""

from collections.abc import Callable, Mapping

from pendula.fleet.model import Fleet, SourceMap
from pendula.fleet.samples import halls, scenes
from pendula.fleet.samples.built import built_warehouse
from pendula.fleet.samples.live_maps import Sample, live_map, spur_grid

NOBODY = Fleet(())


def _hall(trucks: int = 4) -> Sample:
    return Sample(halls.reference_hall(), halls.reference_fleet(trucks))


def _plain(make: Callable[[], SourceMap]) -> Callable[..., Sample]:
    return lambda: Sample(make(), NOBODY)


def _near_lanes(gapCm: int = 170, apartCm: int = 400, endsCm: int = 0) -> Sample:
    return Sample(scenes.near_lanes(gapCm / 100, apartCm / 100, endsCm / 100), NOBODY)


def _tail_swing(laneCm: int = 510) -> Sample:
    return Sample(scenes.tail_swing_bend(laneCm / 100), NOBODY)


def _triangle(side: int = 12, stub: int = 8, park: int = 0) -> Sample:
    return Sample(scenes.triangle(side, stub, park), NOBODY)


# The name of a map, how it is made, and the whole numbers it may be told.
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


def sample_of(name: str, options: Mapping[str, int]) -> Sample:
    make, _ = SAMPLES[name]
    return make(**options)
