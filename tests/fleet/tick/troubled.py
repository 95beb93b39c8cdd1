"""The reference hall in motion, with trucks that fail one by one."""

from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import Alert, CommandMode
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.tick import Order, OrderKind, TickOutputs
from pendula.fleet.tick.records import Record
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Driver, Yard


class Hall(Yard):
    """Three trucks in traffic; `R1` drives between two nodes when the trouble begins."""

    def __init__(self, trucks: int = 3, profile: RobotProfile = FL_STD) -> None:
        super().__init__(scene("reference-hall", profile), reference_fleet(trucks), [profile])
        self.endless = True
        self.alerts: list[Alert] = []
        while not (self.first.v > 500_000 and self.record().grant_um - self.record().at_um > 2_500_000):
            self.step()
            assert self.now < 120_000
        self.alerts = []

    @property
    def first(self) -> Driver:
        return self.drivers["R1"]

    def record(self, number: int = 0) -> Record:
        return self.traffic._records[number]

    def step(self) -> TickOutputs:
        outputs = super().step()
        self.alerts += [*outputs.notices, *outputs.alerts]
        return outputs

    def order(self, kind: OrderKind, robot_id: str | None = "R1", **members: object) -> TickOutputs:
        self.orders = (Order(f"op-{self.now}", kind, robot_id, **members),)  # type: ignore[arg-type]
        return self.step()

    def codes(self, robot_id: str = "R1") -> list[str]:
        return [one.code for one in self.alerts if one.robotId == robot_id]

    def mode(self, number: int = 0) -> CommandMode:
        assert self.last is not None
        return self.last.commands[number].mode

    def goes_on(self, robot_id: str = "R1", ticks: int = 1_500) -> bool:
        """Whether a truck drives another metre in time."""
        driver = self.drivers[robot_id]
        begin = driver.x, driver.y
        for _ in range(ticks):
            self.step()
            if abs(driver.x - begin[0]) + abs(driver.y - begin[1]) > 1_000_000:
                return True
        return False
