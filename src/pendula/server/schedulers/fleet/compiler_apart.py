"""A map compiled in a process of its own: what it takes of time and memory is taken from nobody else.

    python -m pendula.server.schedulers.fleet.compiler_apart

reads the wish from its input and writes the file of the compiled map, or what is wrong with it, to its output. Whoever
waits may end it at any time. It has so many seconds of a processor and so much memory, and no more.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from pendula.fleet.compiler.compile import compile_map
from pendula.fleet.model import CompileParams, Finding, MapRefused, SourceMap
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.site.file import from_bytes, to_bytes
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.kernel.errors import WorldBroken

# Those who tick beside it come first.
NICE = 5
REFUSED, NO_MEMORY = 3, 4


class CompilerStopped(WorldBroken):
    """A map was not compiled: it took too long or too much memory, or nobody waited any more. Facts: `reason`."""

    code = "compiler_stopped"


class _Wish(Struct, frozen=True):
    source: SourceMap
    profiles: tuple[RobotProfile, ...]
    params: CompileParams
    cpu_seconds: int
    memory_bytes: int


class _Refused(Struct, frozen=True):
    message: str
    findings: tuple[Finding, ...]


class CompilerApart:
    """One compilation. `run` waits for it, in any thread; `stop`, from another one, ends it."""

    def __init__(self, cpu_seconds: int, memory_bytes: int) -> None:
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, source: SourceMap, profiles: Sequence[RobotProfile], params: CompileParams) -> CompiledMap:
        """The compiled map; raises `MapRefused` with its findings, and `CompilerStopped`."""
        wish = _Wish(source, tuple(profiles), params, self._cpu_seconds, self._memory_bytes)
        process = self._started()
        try:
            told, _ = process.communicate(msgspec.msgpack.encode(wish))
        finally:
            process.kill()
            process.wait()
        code = process.returncode
        if self._stopped:
            raise _stopped("nobody waits for it any more", "stopped")
        if code == -signal.SIGXCPU:
            raise _stopped(f"it takes more than {self._cpu_seconds} s of a processor", "too_long")
        if code == NO_MEMORY:
            raise _stopped(f"it needs more than {self._memory_bytes >> 20} MiB of memory", "too_much_memory")
        if code == REFUSED:
            refused = msgspec.msgpack.decode(told, type=_Refused)
            raise MapRefused(refused.message, findings=refused.findings)
        if code != 0:
            raise _stopped(f"the process that was at it ended with {code}", "lost")
        return from_bytes(told)

    def stop(self) -> None:
        """End it, whether it has begun or not."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def _started(self) -> "subprocess.Popen[bytes]":
        # One thread for arithmetic: more of them take memory, and time from those who tick.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        with self._lock:
            if self._stopped:
                raise _stopped("nobody waits for it any more", "stopped")
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            return self._process


def _stopped(why: str, reason: str) -> CompilerStopped:
    return CompilerStopped(f"The map was not compiled: {why}", reason=reason)


def main() -> int:
    """In the process of its own: one wish in, one answer out."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    wish = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Wish)
    resource.setrlimit(resource.RLIMIT_CPU, (wish.cpu_seconds, wish.cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (wish.memory_bytes, wish.memory_bytes))
    try:
        told, code = to_bytes(compile_map(wish.source, wish.profiles, wish.params)), 0
    except MapRefused as refused:
        told, code = msgspec.msgpack.encode(_Refused(refused.message, tuple(refused.findings))), REFUSED
    except MemoryError:
        return NO_MEMORY
    # Nobody is there any more who could be told.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(told)
        sys.stdout.buffer.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
