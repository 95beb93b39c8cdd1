"""Test tools for deterministic, durable engines; part of the package, for users who write engines.

faulty_disk     an in-memory disk that forgets unsynced data and fails on request
contract        the test suite that every engine must pass
crashing        a crash at every disk call, and checks after recovery
histories       seeded messages that come late, twice and out of order; runs a test over seeds
tally           a small example engine that satisfies the contract
"""

from pendula.testing.contract import LAWS, engine_contract
from pendula.testing.faulty_disk import Crashed, FaultyDisk
from pendula.testing.histories import Delivery, Faults, HistoryFailed, deliver, over_seeds
from pendula.testing.tally import Add, Advance, Ask, Draw, Take, Tally

__all__ = [
    "LAWS",
    "Add",
    "Advance",
    "Ask",
    "Crashed",
    "Delivery",
    "Draw",
    "Faults",
    "FaultyDisk",
    "HistoryFailed",
    "Take",
    "Tally",
    "deliver",
    "engine_contract",
    "over_seeds",
]
