"""Names in sentences of the linter: the first few of many, lines by their ends, places as JSONPath."""

from collections.abc import Sequence

from pendula.credit.model import Trustline

NAMED = 5  # names listed in a sentence


def line_name(line: Trustline) -> str:
    return f"{line.creditor} to {line.debtor} ({line.equivalent})"


def props_path(profile: str, key: str) -> str:
    return f"$.behaviorProfiles[?@.id=='{profile}'].props.{key}"


def list_names(names: Sequence[str], noun: str) -> str:
    """`the group a`, `3 groups: a, b, c`, `9 groups: a, b, c, d, e and 4 more`."""
    if len(names) == 1:
        return f"the {noun} {names[0]}"
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} {noun}s ({', '.join(names[:NAMED])}{rest})"


def have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"
