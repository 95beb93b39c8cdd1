"""Aids for testing what is deterministic and durable; shipped, because users of the kernel test with them too.

faulty_disk     a disk in memory that forgets what was not synced, and fails where it is told to
contract        one suite that every engine must pass
crashing        a crash at every disk call, and what must be there afterwards
elsewhere       an engine in a process of its own, under another hash seed
histories       seeded messages that come late, twice and out of order, and clocks that jump
repeating       runs a law over seeds; a failure prints the one line that repeats it
tally           a tiny engine that satisfies the contract: the example to copy
"""

from pendula.testing.contract import LAWS, engine_contract
from pendula.testing.faulty_disk import Crashed, FaultyDisk
from pendula.testing.histories import Delivery, Faults, deliver
from pendula.testing.repeating import HistoryFailed, over_seeds
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
