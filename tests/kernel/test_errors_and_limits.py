"""Errors carry a code, a sentence and facts; limits have names, and their refusals say what is allowed."""

import copy
import importlib
import pickle
import pkgutil
import re

import pytest

import pendula.kernel
from pendula.kernel import limits
from pendula.kernel.errors import InputRefused, LimitExceeded, NotCanonical, PendulaError, WorldBroken, WrongUsage
from pendula.kernel.limits import ALL, BY_NAME, DOCUMENT_DEPTH, Limit


def errors_of_the_kernel() -> list[type[PendulaError]]:
    """Every error that a module of the kernel defines, whatever else was imported."""
    names = [found.name for found in pkgutil.iter_modules(pendula.kernel.__path__, "pendula.kernel.")]
    members = [member for name in names for member in vars(importlib.import_module(name)).values()]
    errors = [one for one in members if isinstance(one, type) and issubclass(one, PendulaError)]
    return sorted(set(errors), key=lambda kind: kind.__name__)


def test_an_error_is_one_sentence_with_facts() -> None:
    error = NotCanonical("A float has no canonical form, at $.a", path="$.a")

    assert str(error) == error.message == "A float has no canonical form, at $.a"
    assert error.details == {"path": "$.a"}
    assert error.path == "$.a"


def test_a_missing_fact_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no fact 'colour'"):
        _ = NotCanonical("x", path="$").colour


def test_an_error_without_facts_has_none() -> None:
    assert InputRefused("no").details == {}


@pytest.mark.parametrize(
    ("kind", "code", "exit_code"),
    [
        (InputRefused, "input_refused", 1),
        (LimitExceeded, "limit_exceeded", 1),
        (NotCanonical, "not_canonical", 1),
        (WrongUsage, "wrong_usage", 2),
        (WorldBroken, "world_broken", 3),
    ],
)
def test_codes_and_exit_codes_are_a_contract(kind: type[PendulaError], code: str, exit_code: int) -> None:
    assert kind.code == code
    assert kind.exit_code == exit_code


@pytest.mark.parametrize("kind", errors_of_the_kernel())
def test_every_error_of_the_kernel_has_a_snake_case_code_and_one_of_three_exit_codes(kind: type[PendulaError]) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", kind.code)
    assert kind.exit_code in (1, 2, 3)


def test_values_within_a_limit_pass() -> None:
    DOCUMENT_DEPTH.check(64)
    DOCUMENT_DEPTH.check(0)
    DOCUMENT_DEPTH.check(100, allowed=100)


def test_a_value_above_a_limit_is_refused_with_name_value_and_maximum() -> None:
    with pytest.raises(LimitExceeded) as refused:
        DOCUMENT_DEPTH.check(65)

    assert refused.value.message == "The document is nested too deeply: 65 levels; the limit is 64"
    assert refused.value.details == {
        "limit": "document_depth",
        "limit_code": "document_too_deep",
        "value": 65,
        "allowed": 64,
    }


def test_a_setting_replaces_the_default() -> None:
    with pytest.raises(LimitExceeded, match="11 levels; the limit is 10"):
        DOCUMENT_DEPTH.check(11, allowed=10)
    with pytest.raises(LimitExceeded, match="1 level; the limit is 0"):
        DOCUMENT_DEPTH.check(1, allowed=0)


def test_every_limit_is_listed_under_its_own_name() -> None:
    declared = {name: value for name, value in vars(limits).items() if isinstance(value, Limit)}

    assert [limit.name for limit in ALL] == [name.lower() for name in declared]
    assert list(BY_NAME.values()) == list(ALL)
    assert len(BY_NAME) == len(ALL)


def test_every_limit_is_complete() -> None:
    for limit in ALL:
        assert limit.default > 0, limit.name
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", limit.code), limit.name
        assert limit.unit, limit.name
        assert limit.sentence[0].isupper(), limit.name
        assert not limit.sentence.endswith("."), limit.name


def test_errors_survive_copying_and_pickling() -> None:
    error = NotCanonical("x", path="$.a")

    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is NotCanonical
        assert twin.message == "x"
        assert twin.details == {"path": "$.a"}
