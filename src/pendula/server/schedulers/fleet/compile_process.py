"""Compile a map in a separate process with limits of CPU time and memory, so that served fleets keep ticking.

    python -m pendula.server.schedulers.fleet.compile_process

reads a request from stdin and writes the compiled map, or its findings, to stdout. It may be killed at any time.
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
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.site_file import from_bytes, to_bytes
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import CompileParams, Finding, MapRefused, SourceMap
from pendula.kernel.errors import WorldBroken

# Fleets that tick in the server have priority.
NICE = 5
REFUSED, NO_MEMORY = 3, 4


class CompilerStopped(WorldBroken):
    """A map was not compiled: it took too long or too much memory, or the request was cancelled. Facts: `reason`."""

    code = "compiler_stopped"


class _Request(Struct, frozen=True):
    source: SourceMap
    profiles: tuple[RobotProfile, ...]
    params: CompileParams
    cpu_seconds: int
    memory_bytes: int


class _Refused(Struct, frozen=True):
    message: str
    findings: tuple[Finding, ...]


class CompileProcess:
    """One compilation. `run` blocks, in any thread; `stop`, from another thread, kills the process."""

    def __init__(self, cpu_seconds: int, memory_bytes: int) -> None:
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self, source: SourceMap, profiles: Sequence[RobotProfile], params: CompileParams) -> CompiledMap:
        """The compiled map; raises `MapRefused` with its findings, and `CompilerStopped`."""
        request = _Request(source, tuple(profiles), params, self._cpu_seconds, self._memory_bytes)
        process = self._start()
        try:
            output, _ = process.communicate(msgspec.msgpack.encode(request))
        finally:
            process.kill()
            process.wait()
        code = process.returncode
        if self._stopped:
            raise _stopped("the request was cancelled", "stopped")
        if code == -signal.SIGXCPU:
            raise _stopped(f"it takes more than {self._cpu_seconds} s of CPU time", "too_long")
        if code == NO_MEMORY:
            raise _stopped(f"it needs more than {self._memory_bytes >> 20} MiB of memory", "too_much_memory")
        if code == REFUSED:
            refused = msgspec.msgpack.decode(output, type=_Refused)
            raise MapRefused(refused.message, findings=refused.findings)
        if code != 0:
            raise _stopped(f"the compiler process ended with {code}", "lost")
        return from_bytes(output)

    def stop(self) -> None:
        """Kill the process; a `run` that has not started yet fails at once."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def _start(self) -> "subprocess.Popen[bytes]":
        # More BLAS threads would take memory, and CPU time from served fleets.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        with self._lock:
            if self._stopped:
                raise _stopped("the request was cancelled", "stopped")
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            return self._process


def _stopped(why: str, reason: str) -> CompilerStopped:
    return CompilerStopped(f"The map was not compiled: {why}", reason=reason)


def main() -> int:
    with contextlib.suppress(OSError):
        os.nice(NICE)
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Request)
    resource.setrlimit(resource.RLIMIT_CPU, (request.cpu_seconds, request.cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (request.memory_bytes, request.memory_bytes))
    try:
        output, code = to_bytes(compile_map(request.source, request.profiles, request.params)), 0
    except MapRefused as refused:
        output, code = msgspec.msgpack.encode(_Refused(refused.message, tuple(refused.findings))), REFUSED
    except MemoryError:
        return NO_MEMORY
    # The server may have gone away.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(output)
        sys.stdout.buffer.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
