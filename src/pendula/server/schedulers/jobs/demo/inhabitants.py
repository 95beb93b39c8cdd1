"""The objects of the example: memories, experiences built on them, and cognitions, each made out of its number."""

from typing import Any

from pendula.kernel.rng import stream

SEED = 16
COUNT = 100
KINDS = ("memory", "memory", "experience", "cognition")
POISONED_EVERY = 60  # of the objects made; the first is among the very first
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
    told = SUBJECTS[number % len(SUBJECTS)]
    return f"{told}-{number:03d}{'-poisoned' if is_poisoned(number) else ''}"


def kind_of(number: int) -> str:
    return "memory" if is_poisoned(number) else KINDS[number % len(KINDS)]


def made(number: int) -> dict[str, Any]:
    """The body that puts one under governance."""
    draws = stream(SEED, number, BIRTH)
    kind = kind_of(number)
    body: dict[str, Any] = {
        "object_type": kind,
        "object_id": name_of(number),
        "reason": "told by a visitor" if kind == "memory" else "drawn from what is remembered",
        "evidence_refs": [f"note:{number}"],
        "impact_tier": ("low", "low", "medium", "high")[draws.bounded(4)],
    }
    if kind == "memory":
        body["risk_tier"] = ("low", "medium", "medium", "high")[draws.bounded(4)]
        body["half_life"] = HALF_LIVES[draws.bounded(len(HALF_LIVES))]
    elif kind == "experience":
        body["source_refs"] = [_memory_before(number)]
    else:
        body |= {
            "falsify_if": f"nobody finds the {SUBJECTS[number % len(SUBJECTS)]} where it should be",
            "review_interval": "PT3M",
            "unknown_type": ("multipath", "out_of_scope", "ontic_unknowable")[draws.bounded(3)],
            "auto_verify_budget": 2 + draws.bounded(2),
        }
    return body


def _memory_before(number: int) -> str:
    """The memory that an experience is built on; some are built on the poisoned one."""
    if number < POISONED_EVERY and number % 5 == 1:
        return f"memory:{name_of(FIRST_POISONED)}"
    return f"memory:{name_of(max(number - 1 - number % 2, 0))}"
