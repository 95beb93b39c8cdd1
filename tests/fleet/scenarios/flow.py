"""Measurements of the flow of a fleet: the longest time without progress, and the wait of each truck."""

from dataclasses import dataclass, field

from pendula.fleet.scenarios import Run
from pendula.fleet.tasks.book import OPERATING

# A smaller advance does not count: noise moves a standing truck.
LEAST_UM = 100_000


@dataclass
class Flow:
    """A running scenario. `still_ms`: the longest time in which a truck was due to move and no truck moved, turned,
    loaded or unloaded; `wait_ms`: the longest wait of each truck for a unit or for a route."""

    run: Run
    still_ms: int = 0
    wait_ms: dict[str, int] = field(default_factory=dict)
    # The longest way over pick and drop to rest.
    way_um: int = 0
    _moved_ms: int = 0
    _places: list[tuple[int, int, int]] = field(default_factory=list)

    def drive(self, upto_ms: int) -> "Flow":
        while self.run.now_ms < upto_ms:
            self._sample()
        return self

    @property
    def longest_ms(self) -> int:
        return max(self.wait_ms.values(), default=0)

    @property
    def bound_ms(self) -> int:
        """The limit of FLT-LIVE-10: after `starve_ms` no other truck sets out, and the moving ones continue to pick,
        drop and rest, the longest of their ways at full speed."""
        scenario = self.run.scenario
        speed = min(profile.v_max_um_s for profile in scenario.profiles)
        works = max(stream.pick_ms + stream.drop_ms for stream in scenario.streams)
        return scenario.traffic.starve_ms + works + self.way_um * 1000 // speed

    def _sample(self) -> None:
        outputs = self.run.step()
        now, records = outputs.now_ms, outputs.scene.records
        for record in records:
            since = record.waited_since_ms
            waited = 0 if since is None else now - since
            self.wait_ms[record.robot_id] = max(self.wait_ms.get(record.robot_id, 0), waited)
        for plan in outputs.accepted_routes:
            self.way_um = max(self.way_um, plan.whole[-1].route_s0_um + plan.whole[-1].length_um)
        waiting = any(record.waited_since_ms is not None and record.stop_code is None for record in records)
        if self._has_advanced() or not waiting or any(record.failed for record in records):
            self._moved_ms = now
        self.still_ms = max(self.still_ms, now - self._moved_ms)

    def _has_advanced(self) -> bool:
        busy = any(driver.phase in OPERATING for driver in self.run.dispatch.drivers)
        places = [(truck.edge, truck.on_um, truck.yaw_urad or 0) for truck in self.run.world.trucks]
        moved = not self._places or any(_is_far(*pair) for pair in zip(self._places, places, strict=True))
        if moved:
            self._places = places
        return busy or moved


def _is_far(place: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return place[0] != other[0] or place[2] != other[2] or abs(place[1] - other[1]) >= LEAST_UM
