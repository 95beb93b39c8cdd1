"""JSON numbers, exactly: `int`, or `Decimal` for a point or an exponent; never float.

A number is too long when its plain form, without exponent, has more digits than allowed: `1e999999999` is ten
characters of text and a gigabyte of digits.
"""

import sys
from collections.abc import Callable
from decimal import Decimal
from re import compile as regex

NUMBER = regex(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")

# Exponents with more digits exceed every limit; Decimal itself fails at 18.
_EXPONENT_DIGITS = 9


class NumberTooLong(ValueError):
    """The plain form of the number has more digits than allowed."""


def integer_digits(most: int) -> int:
    """The effective limit: the interpreter has a limit for integers, too."""
    own = sys.get_int_max_str_digits()
    return min(most, own) if own else most


def number(text: str, most: int) -> int | Decimal | None:
    """The value of the text, None if it is not a JSON number; raises `NumberTooLong`."""
    shape = NUMBER.match(text)
    if shape is None:
        return None
    if shape[1] is None and shape[2] is None:
        return _integer(text, most)
    return decimal_reader(most)(text)


def _integer(text: str, most: int) -> int:
    if len(text) - text.startswith("-") > integer_digits(most):
        raise NumberTooLong(text)
    return int(text)


def decimal_reader(most: int) -> Callable[[str], Decimal]:
    """A function that converts texts known to be JSON numbers; created once per document for speed."""

    def read(text: str) -> Decimal:
        # The common case: a plain number has at most as many digits as characters.
        if len(text) <= most and "e" not in text and "E" not in text:
            return Decimal(text)
        return _checked(text, most)

    return read


def _checked(text: str, most: int) -> Decimal:
    exponent = text.lower().partition("e")[2].lstrip("+-").lstrip("0")
    if len(exponent) > _EXPONENT_DIGITS:
        raise NumberTooLong(text)
    value = Decimal(text)
    if _plain_digits(value) > most:
        raise NumberTooLong(text)
    return value


def _plain_digits(value: Decimal) -> int:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return len(digits) + exponent if exponent >= 0 else max(len(digits), 1 - exponent)
