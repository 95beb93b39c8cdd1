"""Compiles one of the maps in an interpreter of its own and prints what memory it took, in KiB.

What a process once was before it became this one is not counted, as `getrusage` would: the kernel keeps the peak of
the memory it has now.
"""

import sys
from pathlib import Path

from bench.fleet_map_loads import MAPS, TRUCKS
from pendula.fleet import compile_map

STATUS = Path("/proc/self/status")


def peak_kib() -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise LookupError("the kernel does not tell the peak of memory")


if __name__ == "__main__":
    before = peak_kib()
    compile_map(MAPS[int(sys.argv[1])](), TRUCKS)
    print(before, peak_kib())
