"""Freed memory returns to the system, if the C library supports it."""

import subprocess
import sys

import pytest

GROWN = """
import threading
from pathlib import Path
from pendula.server import serving

def kib():
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line)

assert serving.keep_few_arenas()
# Between what is freed something stays, so that the C library keeps all of it.
kept = []
def fill():
    pieces = [bytearray(4000) for _ in range(20_000)]
    kept.append(pieces[::200])
threads = [threading.Thread(target=fill) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
before = kib()
serving.give_back()
print(before - kib())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries give memory back by themselves, or not at all")
def test_freed_memory_returns_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", GROWN], capture_output=True, text=True, check=True)

    assert int(done.stdout) > 10_000
