"""Prometheus metrics of the scheduler: the contents of the store, and the calls of this process.

Labels are limited: words of the vocabulary, queues, codes, workers up to a maximum. An object is never a label.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock

from msgspec import UNSET
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from pendula.governance.messages import Step
from pendula.governance.tables import tables_of
from pendula.jobs.calls import Answer, Calls, queries
from pendula.jobs.messages import WINDOW_DEFAULT, Acked, AckResults, Job, Pulled
from pendula.jobs.model import SECOND, Refused, Status
from pendula.jobs.store.protocol import WorkerRow
from pendula.kernel.time import parse_utc

REQUIRED_METRICS = {
    "jobs_due_count": "Jobs that are due now, and running ones whose lease has expired",
    "jobs_lag_seconds": "Seconds since the earliest due job became due",
    "job_success_rate": "Jobs that succeeded, of all that ended in the window",
    "job_retry_rate": "Attempts that ended in a requeue, of all that ended in the window",
    "dead_letter_count": "Jobs in dead_letter now",
}
LABELS = ("status", "object_type", "action", "priority", "queue")
ENDINGS = ("succeeded", "failed", "dropped", "released")
KINDS = ("object_type", "action", "priority")
WORK = ("object_type", "action")
WORKERS_MOST = 1000
OTHER_WORKERS = "other"
DELIVERIES_MOST = 100_000  # remembered between pull and ack
DELAYS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)

# The counters of governance: kind, name, help, labels.
GOVERNED = {
    "verification": ("verifications", "Verifications paid from a budget", ("object_type",)),
    "budget_granted": ("budget_granted", "Units of verification budget given to objects", ("object_type",)),
    "entered": ("entered", "Objects that came to a place", ("object_type", "place")),
    "ontic_closure": ("closures", "Objects closed for verification", ("object_type",)),
    "gate": ("gate_verdicts", "Verdicts of gates on jobs and decisions", ("gate", "verdict")),
    "escalation": ("escalations", "Escalations to a person", ("object_type",)),
    "superseded": ("superseded", "Jobs given up because the date of their object changed", ("object_type",)),
    "outcome": ("outcomes", "How actions on governed objects ended", ("outcome",)),
}


class JobMetrics:
    """The counters of one process; `observe` is called with every answer, from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here = self.registry
        self._refused = Counter("jobs_refused", "Calls that were refused", ("code",), registry=here)
        self._deliveries = Counter("jobs_deliveries", "Jobs handed to workers", ("worker_id",), registry=here)
        self._reclaimed = Counter("jobs_reclaimed_leases", "Leases that ran out and were taken back", registry=here)
        self._start_delay = Histogram(
            "jobs_start_delay_seconds", "First delivery minus run_at", KINDS, buckets=DELAYS, registry=here
        )
        self._pull_to_ack = Histogram(
            "jobs_pull_to_ack_seconds", "From delivery to ack", KINDS, buckets=DELAYS, registry=here
        )
        self._workers: set[str] = set()
        self._delivered: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def refused(self, code: str) -> None:
        self._refused.labels(code).inc()

    def observe(self, answer: Answer) -> None:
        match answer:
            case Refused():
                self.refused(answer.code.value)
            case Pulled():
                self._pulled(answer)
            case Acked():
                self._acked(answer.job, repeated=answer.already_acked)
            case AckResults():
                for entry in answer.results:
                    if entry.job is not None:
                        self._acked(entry.job, repeated=entry.already_acked is True)
            case Step() if answer.already_ended is not UNSET:
                self._acked(answer.job, repeated=answer.already_ended)

    def _pulled(self, answer: Pulled) -> None:
        self._reclaimed.inc(answer.reclaimed)
        if not answer.jobs:
            return
        self._deliveries.labels(self._worker(str(answer.jobs[0].worker_id))).inc(len(answer.jobs))
        for job in answer.jobs:
            now = parse_utc(job.updated_at)
            if job.delivery_count == 1:
                # A pull may name a later time than the server's; then the delay would be negative.
                delay = max(0, now - parse_utc(job.run_at))
                self._start_delay.labels(*_kind(job)).observe(delay / SECOND)
            self._remember(job.job_id, now)

    def _acked(self, job: Job, *, repeated: bool) -> None:
        if job.status != Status.SUCCEEDED:
            return  # a governed job that did not succeed
        with self._lock:
            since = self._delivered.pop(job.job_id, None)
        if since is not None and not repeated:
            took = max(0, parse_utc(job.updated_at) - since)
            self._pull_to_ack.labels(*_kind(job)).observe(took / SECOND)

    def _remember(self, job_id: str, now: int) -> None:
        with self._lock:
            self._delivered[job_id] = now
            if len(self._delivered) > DELIVERIES_MOST:
                self._delivered.popitem(last=False)

    def _worker(self, worker_id: str) -> str:
        with self._lock:
            if worker_id not in self._workers and len(self._workers) >= WORKERS_MOST:
                return OTHER_WORKERS
            self._workers.add(worker_id)
            return worker_id


class Collector:
    """All current metrics of the scheduler; those of the store only while it is open."""

    def __init__(self, counters: JobMetrics, calls: Callable[[], Calls | None]) -> None:
        self._counters = counters
        self._calls = calls

    def collect(self) -> Iterator[Metric]:
        calls = self._calls()
        if calls is not None:
            yield from stored(calls, WINDOW_DEFAULT)
        yield from self._counters.registry.collect()


class _Families:
    """A collector of existing metrics, for `generate_latest`."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def text(calls: Calls, counters: JobMetrics, window_sec: int) -> tuple[bytes, str]:
    """The metrics of the scheduler alone in the Prometheus text format, with its content type."""
    families = _Families([*stored(calls, window_sec), *counters.registry.collect()])
    return generate_latest(families), CONTENT_TYPE_PLAIN_0_0_4


def stored(calls: Calls, window_sec: int) -> Iterator[Metric]:
    """The metrics of the store. A rate without events is NaN."""
    now = calls.clock()
    found = queries.metrics(calls.store, calls.policy, now, window_sec)
    for name, sentence in REQUIRED_METRICS.items():
        value = getattr(found, name)
        yield GaugeMetricFamily(name, sentence, value=float("nan") if value is None else float(value))
    yield GaugeMetricFamily("jobs_running_leases", "Jobs leased to workers", value=found.jobs.running)
    yield GaugeMetricFamily("jobs_alerts_waiting", "Alerts that wait for delivery", value=found.alerts_waiting)
    unhandled = GaugeMetricFamily("jobs_unhandled", "Due jobs that no worker handles", labels=WORK)
    for kind in queries.unhandled(calls.store, calls.policy, now):
        unhandled.add_metric([kind.object_type, kind.action], kind.count)
    yield unhandled
    yield from of_workers(calls.store.read(lambda look: look.workers()), now)
    jobs = GaugeMetricFamily("jobs", "Jobs in the store", labels=LABELS)
    for labels, n in queries.labelled(queries.figures(calls.store, now, window_sec)):
        jobs.add_metric([labels[name] for name in LABELS], n)
    yield jobs
    yield from governed(calls)


def of_workers(workers: Sequence[WorkerRow], now: int) -> Iterator[Metric]:
    """The heartbeats of workers and their age; at most as many as the store keeps."""
    age = GaugeMetricFamily("jobs_worker_age_seconds", "Seconds since the last heartbeat", labels=("worker_id",))
    running = GaugeMetricFamily("jobs_worker_running", "Running handlers", labels=("worker_id",))
    taken = CounterMetricFamily("jobs_worker_taken", "Jobs taken", labels=("worker_id",))
    ended = CounterMetricFamily("jobs_worker_ended", "Deliveries by how they ended", labels=("worker_id", "how"))
    for worker in workers:
        age.add_metric([worker.worker_id], max(0, now - worker.seen_at) / SECOND)
        taken.add_metric([worker.worker_id], worker.taken)
        if worker.running is not None:
            running.add_metric([worker.worker_id], worker.running)
        for how in ENDINGS:
            if (n := getattr(worker, how)) is not None:
                ended.add_metric([worker.worker_id, how], n)
    yield from (age, running, taken, ended)


def governed(calls: Calls) -> Iterator[Metric]:
    """Governed objects by place, and the counters of governance; one consistent read."""
    places, counts = calls.store.read(lambda look: (tables_of(look).places(), tables_of(look).counts()))
    objects = GaugeMetricFamily("jobs_governed_objects", "Objects by place", labels=("object_type", "place"))
    for object_type, place, n in places:
        objects.add_metric([object_type, place], n)
    yield objects
    for kind, (name, sentence, labels) in GOVERNED.items():
        family = CounterMetricFamily(f"jobs_governed_{name}", sentence, labels=labels)
        for counted_kind, word, n in counts:
            if counted_kind == kind:
                family.add_metric(word.split(" ", len(labels) - 1), n)
        yield family


def _kind(job: Job) -> tuple[str, str, str]:
    return job.object_type, job.action, job.priority


def prefers_text(accept: str | None) -> bool:
    """Whether an Accept header prefers text to JSON; JSON by default."""
    as_text, as_json = _quality(accept or "*/*", "text", "plain"), _quality(accept or "*/*", "application", "json")
    return as_text > as_json


def _quality(accept: str, kind: str, form: str) -> int:
    """The quality of a media type in thousandths; the most specific entry counts."""
    best = (-1, 0)
    for entry in accept.split(","):
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        exactness = {f"{kind}/{form}": 2, f"{kind}/*": 1, "*/*": 0}.get(name, -1)
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        if exactness > best[0]:
            best = (exactness, _thousandths(quality))
    return best[1]


def _thousandths(text: str) -> int:
    whole, _, part = text.partition(".")
    digits = f"{whole or '0'}{part:0<3.3}"
    return min(1000, int(digits)) if digits.isascii() and digits.isdecimal() else 0
