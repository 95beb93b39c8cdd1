"""The objects of the demo: memories, experiences built on them, and cognitions, generated from their numbers."""

from typing import Any

from pendula.kernel.rng import stream

SEED = 16
COUNT = 100
KINDS = ("memory", "memory", "experience", "cognition")
POISONED_EVERY = 60  # objects; the first one comes early
FIRST_POISONED = 4
SUBJECTS = (
    *("harbour", "lighthouse", "ferry", "bakery", "library", "orchard", "mill", "bridge"),
    *("market", "station", "school", "garden", "tower", "well", "chapel", "square"),
)
HALF_LIVES = ("PT45S", "PT1M30S", "PT3M")
BIRTH = 0x4249


def is_poisoned(number: int) -> bool:
    return number % POISONED_EVERY == FIRST_POISONED


def name_of(number: int) -> str:
    subject = SUBJECTS[number % len(SUBJECTS)]
    return f"{subject}-{number:03d}{'-poisoned' if is_poisoned(number) else ''}"


def kind_of(number: int) -> str:
    return "memory" if is_poisoned(number) else KINDS[number % len(KINDS)]


def new_object(number: int) -> dict[str, Any]:
    """The body of the request that creates an object."""
    draws = stream(SEED, number, BIRTH)
    kind = kind_of(number)
    body: dict[str, Any] = {
        "object_type": kind,
        "object_id": name_of(number),
        "reason": "reported by a visitor" if kind == "memory" else "derived from memories",
        "evidence_refs": [f"note:{number}"],
        "impact_tier": ("low", "low", "medium", "high")[draws.bounded(4)],
    }
    if kind == "memory":
        body["risk_tier"] = ("low", "medium", "medium", "high")[draws.bounded(4)]
        body["half_life"] = HALF_LIVES[draws.bounded(len(HALF_LIVES))]
    elif kind == "experience":
        body["source_refs"] = [_source_memory(number)]
    else:
        body |= {
            "falsify_if": f"the {SUBJECTS[number % len(SUBJECTS)]} is not where it should be",
            "review_interval": "PT3M",
            "unknown_type": ("multipath", "out_of_scope", "ontic_unknowable")[draws.bounded(3)],
            "auto_verify_budget": 2 + draws.bounded(2),
        }
    return body


def _source_memory(number: int) -> str:
    """The source memory of an experience; some use the poisoned one."""
    if number < POISONED_EVERY and number % 5 == 1:
        return f"memory:{name_of(FIRST_POISONED)}"
    return f"memory:{name_of(max(number - 1 - number % 2, 0))}"
