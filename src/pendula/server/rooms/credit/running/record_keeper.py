"""The thread that writes to the store of runs: in order, beside the event loop, and never in the way of a run.

What fails is logged and counted; a run goes on without it. Without a store nothing is written, and what could only
come from there is refused.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import structlog

from pendula.credit.served.store import Store
from pendula.kernel.errors import PendulaError, WorldBroken

T = TypeVar("T")

log = structlog.get_logger("pendula.server")


class StoreDisabled(WorldBroken):
    """There is no store: SIMULATOR_DB_ENABLED is off."""

    code = "simulator_store_disabled"


class RecordKeeper:
    """Owns the one thread that touches the store."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "pendula-simulator-store")
        self._store: Store | None = None
        self.failures = 0

    async def open(self, make: Callable[[], Store]) -> None:
        """Raises `SimulatorStoreUnusable`."""
        self._store = await asyncio.get_running_loop().run_in_executor(self._thread, make)

    @property
    def there(self) -> bool:
        return self._store is not None

    async def ask(self, question: Callable[[Store], T]) -> T:
        """What the store answers, after everything that was written before; raises what goes wrong."""
        if self._store is None:
            raise StoreDisabled("Nothing is stored here, because SIMULATOR_DB_ENABLED is off")
        return await asyncio.get_running_loop().run_in_executor(self._thread, question, self._store)

    def later(self, write: Callable[[Store], object]) -> None:
        """Write soon; what goes wrong is logged, and changes nothing else."""
        if self._store is not None:
            self._thread.submit(self._write, write, self._store)

    def _write(self, write: Callable[[Store], object], store: Store) -> None:
        try:
            write(store)
        except PendulaError as trouble:
            self.failures += 1
            log.error("sim.store.failed", code=trouble.code, problem=trouble.message)
        except Exception:
            self.failures += 1
            log.exception("sim.store.failed")

    async def close(self) -> None:
        """Finish what waits, then close the store."""
        await asyncio.to_thread(self._thread.shutdown)
        if self._store is not None:
            store, self._store = self._store, None
            await asyncio.to_thread(store.close)
