"""Compiles one of the maps in its own interpreter and prints the peak memory in KiB.

Unlike `getrusage`, this does not count the process before `exec`: the kernel keeps the peak of the present memory.
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
