"""The journal of a served fleet has a share of the bytes of its scheduler: old records go, and traffic continues."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from pendula.kernel.disk import RealDisk
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.fleet.routes import scheduler_for
from pendula.server.settings import Settings
from tests.server.living import client_of, running, supervisor_of
from tests.server.schedulers.fleet.halls import BASE, made, until

pytestmark = pytest.mark.anyio
SEGMENT_BYTES = 20_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=str(tmp_path / "data"), limits={"segment_bytes": SEGMENT_BYTES})


@pytest.fixture
def schedulers(settings: Settings) -> Sequence[SchedulerSpec]:
    return (scheduler_for(settings),)


@pytest.mark.req("FLT-OBS-3")
async def test_the_journal_over_its_new_share_is_cut_and_traffic_continues(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    async with running(settings, schedulers) as app, client_of(app) as client:
        await made(client)
        host = supervisor_of(app).host("fleet", "hall")
        before = await until(client, lambda _: host.journal.total_bytes > 12 * SEGMENT_BYTES)
        share = host.journal.total_bytes // 2
        host.allow(share)
        cut = await until(client, lambda _: host.journal.first_n > 0)
        left = host.journal.total_bytes
        await until(client, lambda it: it["tick"] > cut["tick"] + 20)

    assert cut["tick"] >= before["tick"]
    assert left <= share


@pytest.mark.req("FLT-OBS-3")
@pytest.mark.parametrize("segments", [0, 1, 2, 3])
async def test_a_fleet_with_too_small_a_share_continues(
    settings: Settings, schedulers: Sequence[SchedulerSpec], segments: int
) -> None:
    async with running(settings, schedulers) as app, client_of(app) as client:
        await made(client)
        host = supervisor_of(app).host("fleet", "hall")
        host.allow(segments * SEGMENT_BYTES)
        await until(client, lambda _: host.journal.first_n > 0)
        cut = await until(client, lambda it: it["tick"] > 100)
        later = await until(client, lambda it: it["tick"] > cut["tick"] + 20)

    assert later["degraded"] is None


@pytest.mark.req("FLT-OBS-3")
async def test_a_fleet_that_ended_on_a_full_disk_is_reopened_with_space(
    settings: Settings, schedulers: Sequence[SchedulerSpec]
) -> None:
    append = RealDisk.append

    def full(disk: RealDisk, name: str, data: bytes) -> None:
        if ".journal" in name:
            raise OSError(errno.ENOSPC, "No space left on device", name)
        append(disk, name, data)

    async with running(settings, schedulers) as app, client_of(app) as client:
        await made(client)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(RealDisk, "free_bytes", lambda _: 0)
            await until(client, lambda it: it["degraded"] is not None)
            patched.setattr(RealDisk, "append", full)
            closed = await client.post(f"{BASE}/hall/close")
        opened = (await client.post(f"{BASE}/hall/open")).json()

    assert closed.status_code == 200
    assert [one["broken"] for one in opened["fleets"]] == [None]
