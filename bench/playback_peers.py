"""Smooth weighted round robin as others do it: a loop in Python, arrays of numpy, and the loop of nginx in C.

Each peer makes a `Picks`: called with a number of steps, it returns their channels. All return the same.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

Picks = Callable[[int], Sequence[int]]

WSUM = 65536

# The selection of `ngx_http_upstream_round_robin.c`, without servers that fail: so weights are never lowered.
SOURCE = """
typedef struct { long current_weight, weight; } peer_t;

void pick(peer_t *peers, long number, unsigned char *picks, long steps)
{
    for (long step = 0; step < steps; step++) {
        peer_t *best = 0;
        long total = 0;
        for (long i = 0; i < number; i++) {
            peer_t *peer = &peers[i];
            peer->current_weight += peer->weight;
            total += peer->weight;
            if (best == 0 || peer->current_weight > best->current_weight) best = peer;
        }
        best->current_weight -= total;
        picks[step] = (unsigned char) (best - peers);
    }
}
"""


def naive_pick(credits: list[int], weights: Sequence[int]) -> int:
    """The better of the two forms one would write; the other, `max` with a key, takes half as long again."""
    best, most = -1, 0
    for index, weight in enumerate(weights):
        credit = credits[index] + weight
        credits[index] = credit
        if credit > most:
            best, most = index, credit
    credits[best] -= WSUM
    return best


def naive(weights: Sequence[int]) -> Picks:
    credits = [0] * len(weights)

    def picks(steps: int) -> list[int]:
        return [naive_pick(credits, weights) for _ in range(steps)]

    return picks


def with_numpy(weights: Sequence[int]) -> Picks | None:
    """None when numpy is not installed."""
    if find_spec("numpy") is None:
        return None
    numpy = import_module("numpy")
    earned = numpy.array(weights, numpy.int32)
    credits = numpy.zeros(len(weights), numpy.int32)

    def picks(steps: int) -> list[int]:
        nonlocal credits
        found = []
        for _ in range(steps):
            credits += earned
            best = credits.argmax()
            credits[best] -= WSUM
            found.append(int(best))
        return found

    return picks


def in_c(weights: Sequence[int], place: Path) -> Picks | None:
    """Compiled into `place`; None when there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source, library = place / "pick.c", place / "pick.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    pick = ctypes.CDLL(str(library)).pick
    peers = (ctypes.c_long * (2 * len(weights)))(*(number for weight in weights for number in (0, weight)))

    def picks(steps: int) -> bytes:
        found = ctypes.create_string_buffer(steps)
        pick(peers, ctypes.c_long(len(weights)), found, ctypes.c_long(steps))
        return found.raw

    return picks
