"""Money as whole atoms, 10^-8 of a unit: exact, never a float, written as plain decimals.

Planned amounts are whole cents. An amount has at most twelve digits before and eight after the decimal point.
"""

from decimal import Decimal, InvalidOperation
from re import ASCII
from re import compile as regex
from typing import Self

from pendula.credit.sentences import sentence_of
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import shown

ATOMS = 10**8
CENT = 10**6
MOST = 10**20 - 1

_PLAIN = regex(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", ASCII)


class InvalidAmount(InputRefused):
    """An amount that is not a decimal of at most 12 digits before and 8 after the point. Facts: `kind`, `amount`."""

    code = "invalid_amount"

    @classmethod
    def of(cls, kind: str, amount: str) -> Self:
        return cls(sentence_of(cls.code, {"kind": kind, "amount": amount}), kind=kind, amount=amount)


def atoms(value: str | int | Decimal, *, round_down: bool = False) -> int:
    """The amount in atoms; raises `InvalidAmount` if it is not a number, too large or too fine.

    Documents pass numbers with a fraction as `Decimal`, in their shortest form.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) > 200 or not _PLAIN.fullmatch(text):
            raise InvalidAmount.of("not_a_number", value[:200])
        try:
            value = Decimal(text)
        except InvalidOperation:
            raise InvalidAmount.of("exponent_out_of_range", text) from None
    if isinstance(value, int):
        whole = value * ATOMS
    else:
        if not value.is_finite():
            raise InvalidAmount.of("not_finite", str(value))
        if value.adjusted() > 20:
            raise InvalidAmount.of("too_many_digits", shown(value))
        numerator, denominator = (0, 1) if value.adjusted() < -4000 else value.as_integer_ratio()
        whole, rest = divmod(numerator * ATOMS, denominator)
        if (rest or (value and not numerator)) and not round_down:
            raise InvalidAmount.of("too_fine", shown(value))
    if not -MOST <= whole <= MOST:
        raise InvalidAmount.of("too_many_digits", shown(value))
    return whole


def text(amount: int) -> str:
    """`"150.00"`: at least two digits after the decimal point, more if needed."""
    if amount % CENT == 0:
        return cents_text(amount // CENT)
    return text_8(amount).rstrip("0")


def cents_text(cents: int) -> str:
    """`"150.00"` of 15000 cents."""
    if cents < 0:
        return "-" + cents_text(-cents)
    return f"{cents // 100}.{cents % 100:02d}"


def text_8(amount: int) -> str:
    """`"150.00000000"`: always eight digits after the decimal point."""
    if amount < 0:
        return "-" + text_8(-amount)
    return f"{amount // ATOMS}.{amount % ATOMS:08d}"


def atoms_of_sum(text: str) -> int:
    """The atoms of a sum in an event; a sum may exceed the range of an amount, so `atoms` cannot parse it."""
    whole, _, rest = text.partition(".")
    return int(whole + rest.ljust(8, "0"))
