"""Jobs beside raw SQL, a route that stores nothing, a small store, five-second polling and other queues, in one run.

Files are in a new folder in the working directory, so on the disk to be measured; times are wall-clock times with
flushes.
"""

import tempfile
from pathlib import Path

from bench import jobs_beside, jobs_costs, jobs_governed, jobs_http, jobs_latency, jobs_raw, jobs_scale
from bench.kernel_journal import why_unfair as why_unfair
from pendula.cli.benchmarks import Progress, Row

# Other queues are compared only if they are installed.
PEERS: tuple[str, ...] = ()


def run(quick: bool, progress: Progress) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="pendula-bench-", dir=Path.cwd()) as folder:
        place = Path(folder)
        unfair = why_unfair(place)
        return [
            *jobs_raw.rows(place, quick, progress, unfair),
            *jobs_http.rows(place, quick, progress, unfair),
            *jobs_scale.rows(place, quick, progress, unfair),
            *jobs_costs.rows(place, quick, progress, unfair),
            *jobs_governed.rows(place, quick, progress, unfair),
            *jobs_latency.rows(place, quick, progress),
            *jobs_beside.rows(place, quick, progress, unfair),
        ]
