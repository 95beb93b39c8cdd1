"""Ids of payments, clearings and runs: derived from seed, tick and content, never random."""

from hashlib import sha256

from pendula.credit.money import text


def tx_name(seed: int, tick: int, seq: int | str, content: tuple[str, ...]) -> str:
    """The id of a payment, from seed, tick and content: sender, receiver, equivalent and amount."""
    return "tx_" + sha256("|".join((str(seed), str(tick), str(seq), *content)).encode()).hexdigest()[:24]


def idempotency_key(run_id: str, at_ms: int, sender: str, receiver: str, equivalent: str, amount: int, seq: int) -> str:
    """The key of a planned payment."""
    whole = f"{run_id}|{at_ms}|{sender}|{receiver}|{equivalent}|{text(amount)}|{seq}"
    return "sim:" + sha256(whole.encode()).hexdigest()[:32]


def clearing_key(run_id: str, plan_id: str) -> str:
    """The key of a clearing at an outside service."""
    return "sim:" + sha256(f"{run_id}|{plan_id}".encode()).hexdigest()[:32]


def plan_name(seed: int, tick: int, equivalent: str, ordinal: int) -> str:
    """The id of a clearing."""
    return "plan_" + sha256(f"{seed}:{tick}:{equivalent}:{ordinal}".encode()).hexdigest()[:12]


def headless_name(scenario_digest: str, seed: int) -> str:
    """The id of a run without a server."""
    return "run_" + sha256(f"{scenario_digest}|{seed}".encode()).hexdigest()[:8]
