"""What Prometheus reads of governed objects: where they are, what verification cost, what gates said, who was asked."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pendula.jobs.calls import Calls

# Each kind that governance counts, with the words its name is made of.
COUNTED = {
    "verification": ("verifications", "Entries into the verifier that were paid from a budget", ("object_type",)),
    "budget_granted": ("budget_granted", "Units of verification budget given to objects", ("object_type",)),
    "entered": ("entered", "Objects that came to a place", ("object_type", "place")),
    "ontic_closure": ("closures", "Objects that nobody verifies any more", ("object_type",)),
    "gate": ("gate_verdicts", "What gates said of jobs and decisions", ("gate", "verdict")),
    "escalation": ("escalations", "Questions to a person", ("object_type",)),
    "outcome": ("outcomes", "How actions on governed objects ended", ("outcome",)),
}


def families(calls: Calls) -> Iterator[Metric]:
    """Read in one look, without the lock of the writers; an object is never a label."""
    places, counts = calls.store.read(lambda look: (look.governance.places(), look.governance.counts()))
    objects = GaugeMetricFamily("jobs_governed_objects", "Objects by place", labels=("object_type", "place"))
    for object_type, place, n in places:
        objects.add_metric([object_type, place], n)
    yield objects
    for kind, (name, sentence, labels) in COUNTED.items():
        family = CounterMetricFamily(f"jobs_governed_{name}", sentence, labels=labels)
        for found, word, n in counts:
            if found == kind:
                family.add_metric(word.split(" ", len(labels) - 1), n)
        yield family
