"""Calls pass at most six positional arguments.

Larger ones are in `exceptions.toml` with reason and size. The list may only shrink: a call that
grew beyond its listed size fails, and so does an exception that is no longer needed.
"""

from collections.abc import Iterator

from tests.architecture.source import calls, exceptions, modules, named

POSITIONAL = 6


def unnamed_calls() -> dict[str, int]:
    return _largest(
        (f"{named(path)}:{name}", count) for path in modules() for name, count in calls(path) if count > POSITIONAL
    )


def _largest(found: Iterator[tuple[str, int]]) -> dict[str, int]:
    largest: dict[str, int] = {}
    for name, size in found:
        largest[name] = max(size, largest.get(name, 0))
    return largest


def beyond(found: dict[str, int], allowed: dict[str, dict[str, object]]) -> list[str]:
    """Calls that are too large or larger than their exception, and unneeded exceptions."""
    grown = [f"{name}: {size}" for name, size in found.items() if size > _most(allowed.get(name))]
    return grown + [f"{name}: the exception is no longer needed" for name in allowed if name not in found]


def _most(exception: dict[str, object] | None) -> int:
    return 0 if exception is None else int(str(exception["size"]))


def test_calls_have_at_most_six_positional_arguments() -> None:
    assert beyond(unnamed_calls(), exceptions()["calls"]) == []


def test_every_exception_has_its_reason() -> None:
    listed = [entry for kind in exceptions().values() for entry in kind.values()]

    assert [entry for entry in listed if len(str(entry.get("reason", ""))) < 20] == []


def test_a_grown_call_and_an_unneeded_exception_are_both_found() -> None:
    allowed: dict[str, dict[str, object]] = {"a.py": {"size": 410}, "b.py": {"size": 500}}

    assert beyond({"a.py": 411, "c.py": 401}, allowed) == [
        "a.py: 411",
        "c.py: 401",
        "b.py: the exception is no longer needed",
    ]
