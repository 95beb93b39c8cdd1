"""Compiled maps shared by many tests; they are frozen, so one of each is enough."""

from collections.abc import Callable
from functools import cache

from pendula.fleet import CompiledMap, compile_map
from pendula.fleet.compiler import samples
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import FL_STD, Sketch
from pendula.fleet.map.exclusion import Relation
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import SourceMap

SCENES: dict[str, Callable[[], SourceMap]] = {
    "hall-demo": samples.hall_demo,
    "head-on-lane": samples.head_on_lane,
    "plus-crossing": samples.plus_crossing,
    "triangle": samples.triangle,
    "ring-with-bypass": samples.ring_with_bypass,
    "near-lanes": samples.near_lanes,
    "tail-swing-bend": samples.tail_swing_bend,
    "spur": samples.spur,
    "straight-lane": samples.straight_lane,
    "reference-hall": samples.reference_hall,
    "small-warehouse": lambda: samples.warehouse(4, 6, 2),
}


def sketched(*nodes: tuple[object, ...]) -> Sketch:
    """A sketch with some nodes, each as `Sketch.node` takes it."""
    sketch = Sketch("sketched")
    for node in nodes:
        sketch.node(*node)  # type: ignore[arg-type]
    return sketch


def aisle(edges: int = 5) -> CompiledMap:
    """A chain of edges with a fork at both ends."""
    sketch = Sketch("aisle")
    for i in range(edges + 1):
        sketch.node(f"N{i}", i * 10, 0)
    sketch.chain(*(f"N{i}" for i in range(edges + 1)))
    last = f"N{edges}"
    for name, end, x, y in (("W1", "N0", -8, 8), ("W2", "N0", -8, -8), ("X1", last, 58, 8), ("X2", last, 58, -8)):
        sketch.node(name, x, y)
        sketch.lane(end, name)
    return compile_map(sketch.done(), [FL_STD])


@cache
def scene(name: str, profile: RobotProfile = FL_STD) -> CompiledMap:
    return compile_map(SCENES[name](), [profile])


@cache
def random_site(seed: int) -> CompiledMap:
    return compile_map(random_map(seed), [FL_STD])


@cache
def odd_site(seed: int) -> CompiledMap:
    return compile_map(random_map(seed, odd=True), [FL_STD])


def any_site(name: str) -> CompiledMap:
    """`random-3` or `odd-3`: tests are named after their map."""
    kind, _, seed = name.partition("-")
    return odd_site(int(seed)) if kind == "odd" else random_site(int(seed))


def names(count: int) -> list[str]:
    """A number of random maps, and as many odd ones."""
    return [f"{kind}-{seed}" for kind in ("random", "odd") for seed in range(count)]


def is_symmetric(relation: Relation) -> bool:
    pairs = {(a, b) for a in range(len(relation)) for b in relation.members(a)}
    return pairs == {(b, a) for a, b in pairs}
