"""What stands in the digests of a tick: the same as ever, however it is put together."""

from hashlib import sha256

import msgspec
import pytest

from pendula.fleet import telling
from pendula.fleet.events import Ticked
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.telling import told
from pendula.fleet.units import metres


@pytest.mark.req("FLT-OBS-1")
def test_the_digest_of_commands_is_that_of_their_contract_numbers() -> None:
    run = Run(shipped("hall"))
    seen = set()
    for _ in range(200):
        before = run.traffic.records
        outputs = run.step()
        ticked = next(iter(told(before, outputs, outputs.aims)))
        decided = [
            (
                one.robot_id,
                one.seq,
                one.mode,
                one.hold_reason,
                *(("", 0) if one.plan is None else (one.plan.route_id, one.plan.revision)),
                (metres(one.target_um), metres(one.stop_um), metres(one.speed_um_s), one.valid_ms),
            )
            for one in outputs.aims
        ]
        assert isinstance(ticked, Ticked)
        assert ticked.commands == "sha256:" + sha256(msgspec.msgpack.encode(decided)).hexdigest()
        seen |= {metres(um) for one in outputs.aims for um in (one.target_um, one.stop_um, one.speed_um_s)}
    assert len(seen) > 20


def test_texts_of_lengths_are_those_of_the_contract_and_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOST_TEXTS", 50)
    texts = telling._Metres()

    for micros in (*range(-2_000_000, 2_000_001, 7_919), 0, -1, 1_000_000, 1_500_000):
        assert texts[micros] == texts[micros] == str(metres(micros))
        assert len(texts) <= 50
