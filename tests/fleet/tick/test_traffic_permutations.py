"""The same inputs give the same tick: in any order, under any hash seed."""

import os
import subprocess
import sys

import pytest

from tests.fleet.tick.permutations import digests


def elsewhere(ticks: int, seed: int) -> list[str]:
    """The digests of a process with a given hash seed and a given order of inputs."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.fleet.tick.permutations", str(ticks), str(seed)],
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
        text=True,
    )
    return child.stdout.split()


@pytest.mark.req("FLT-DCL-1", "FLT-TEST-43")
def test_ticks_do_not_depend_on_the_order_of_inputs_or_on_hash_seeds() -> None:
    assert elsewhere(100, 1) == elsewhere(100, 2)


@pytest.mark.long
@pytest.mark.req("FLT-DCL-1", "FLT-TEST-43")
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_thousand_ticks_do_not_depend_on_the_order_of_inputs_or_on_hash_seeds(seed: int) -> None:
    assert elsewhere(1_000, seed) == digests(1_000, 0)
