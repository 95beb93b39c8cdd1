"""The tables of the requirement document for the model: transitions by finding, and next actions."""

from typing import Any

DAY = 86_400_000_000
HOUR = 3_600_000_000
ObjectState = dict[str, Any]
VERIFYING = ("verify", "revalidate")
ABOUT_RISK = ("persona_conflict_gate", "risk_gate", "cognition_gate")
RANK = ("low", "medium", "high", "critical")


def _rows(text: str) -> dict[tuple[str, str, str], str]:
    rows = {}
    for line in text.strip().splitlines():
        places, actions, findings, target = line.split()
        for place in places.split("|"):
            for action in actions.split("|"):
                for finding in findings.split("|"):
                    rows[place, action, finding] = target
    return rows


ROWS = {
    "memory": _rows("""
candidate verify passed verified
candidate verify suspicious quarantine
quarantine verify passed verified
quarantine verify forged rejected_poisoned
verified use used active
verified|active decay faded stale
stale revalidate inconclusive stale_uncertain
stale|stale_uncertain reinstate-check|revalidate new_evidence active
stale|stale_uncertain archive expired archived
rejected_poisoned archive rolled_back archived
"""),
    "experience": _rows("""
candidate verify passed active
candidate verify insufficient|conflict needs_review
active decay overdue needs_review
needs_review revalidate|reinstate-check new_evidence active
active invalidate source_forged invalidated
active|needs_review archive expired archived
invalidated archive rolled_back archived
"""),
    "cognition": _rows("""
candidate/uncertain verify passed active/supported
active/supported revalidate|decay conflict|overdue needs_revalidate/uncertain
needs_revalidate/uncertain|active/uncertain verify|revalidate passed active/supported
candidate/uncertain|needs_revalidate/uncertain|active/uncertain verify|revalidate exhausted stale/uncertain
active/supported|active/uncertain|needs_revalidate/uncertain|stale/uncertain verify|revalidate refuted refuted/refuted
stale/uncertain reinstate-check new_evidence active/supported
stale/uncertain reinstate-check some_evidence active/uncertain
stale/uncertain archive expired archived/uncertain
refuted/refuted archive rolled_back archived/refuted
"""),
}
# SM-14: state, next action, days.
NEXT = {
    ("memory", "candidate"): ("verify", 1),
    ("memory", "quarantine"): ("verify", 1),
    ("memory", "verified"): ("decay", 14),
    ("memory", "active"): ("decay", 7),
    ("memory", "stale"): ("revalidate", 3),
    ("memory", "stale_uncertain"): ("reinstate-check", 7),
    ("memory", "rejected_poisoned"): ("archive", 1),
    ("experience", "candidate"): ("verify", 1),
    ("experience", "active"): ("decay", 14),
    ("experience", "needs_review"): ("revalidate", 7),
    ("experience", "invalidated"): ("archive", 1),
    ("cognition", "candidate/uncertain"): ("verify", 1),
    ("cognition", "active/supported"): ("revalidate", 7),
    ("cognition", "active/uncertain"): ("revalidate", 1),
    ("cognition", "needs_revalidate/uncertain"): ("revalidate", 1),
    ("cognition", "stale/uncertain"): ("reinstate-check", 7),
    ("cognition", "refuted/refuted"): ("archive", 1),
}
AT_REVIEW = {("experience", "active"), ("cognition", "active/supported")}
LOST = {"rejected_poisoned", "invalidated", "refuted/refuted"}
STALE = {"stale", "stale_uncertain", "needs_review", "stale/uncertain"}
SHAKY = {
    ("memory", "quarantine"), ("memory", "rejected_poisoned"), ("memory", "stale_uncertain"),
    ("cognition", "stale/uncertain"), ("cognition", "refuted/refuted"), ("experience", "invalidated"),
}  # fmt: skip


def is_unsure(obj: ObjectState) -> bool:
    return bool(obj["place"].endswith("uncertain") and obj["status"] != "archived")


def good(place: str) -> bool:
    return place.partition("/")[0] in ("verified", "active")


def joined(old: list[str], new: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))
