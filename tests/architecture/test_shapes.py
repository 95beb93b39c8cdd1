"""Modules of at most 400 lines, functions of at most 60, calls of at most six arguments without a name.

Whatever is larger stands in `exceptions.toml` with its reason and its present size. The list may only shrink: a thing
that grew beyond its size, and an exception that nobody needs any more, both fail.
"""

from collections.abc import Iterator

from tests.architecture.source import calls, exceptions, functions, modules, named

LINES, FUNCTION_LINES, POSITIONAL = 400, 60, 6


def large_modules() -> dict[str, int]:
    sizes = {named(path): path.read_text(encoding="utf-8").count("\n") for path in modules()}
    return {name: size for name, size in sizes.items() if size > LINES}


def large_functions() -> dict[str, int]:
    return _largest(
        (f"{named(path)}:{name}", size) for path in modules() for name, size in functions(path) if size > FUNCTION_LINES
    )


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
    """What is too large without an exception, larger than its exception, or excepted without need."""
    grown = [f"{name}: {size}" for name, size in found.items() if size > _most(allowed.get(name))]
    return grown + [f"{name}: no exception is needed any more" for name in allowed if name not in found]


def _most(exception: dict[str, object] | None) -> int:
    return 0 if exception is None else int(str(exception["size"]))


def test_modules_have_at_most_400_lines() -> None:
    assert beyond(large_modules(), exceptions()["modules"]) == []


def test_functions_have_at_most_60_lines() -> None:
    assert beyond(large_functions(), exceptions()["functions"]) == []


def test_calls_name_what_they_hand_over_beyond_six_arguments() -> None:
    assert beyond(unnamed_calls(), exceptions()["calls"]) == []


def test_every_exception_has_its_reason() -> None:
    listed = [entry for kind in exceptions().values() for entry in kind.values()]

    assert [entry for entry in listed if len(str(entry.get("reason", ""))) < 20] == []


def test_a_thing_that_grows_and_an_exception_nobody_needs_are_both_told() -> None:
    allowed: dict[str, dict[str, object]] = {"a.py": {"size": 410}, "b.py": {"size": 500}}

    assert beyond({"a.py": 411, "c.py": 401}, allowed) == [
        "a.py: 411",
        "c.py: 401",
        "b.py: no exception is needed any more",
    ]
