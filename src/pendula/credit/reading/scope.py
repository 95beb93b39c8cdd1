"""The context of reading a scenario: strictness and warnings; readers of ids, codes and amounts."""

from decimal import Decimal
from enum import StrEnum
from re import compile as regex

from msgspec import Struct

from pendula.credit.model import CODE_FORM, ID_FORM
from pendula.credit.money import InvalidAmount, atoms
from pendula.documents import Cursor, Members, path_text
from pendula.documents.faults import shown

FORM_OF_ID = "1 to 200 of a-z, A-Z, 0-9 and _ . : -"
FORM_OF_CODE = "1 to 16 capital letters, digits and _"

_CODE = regex(CODE_FORM)


class FaultCode(StrEnum):
    """Faults of a scenario that other documents do not have."""

    UNKNOWN_PARTICIPANT = "unknown_participant"
    SELF_LINE = "self_line"
    SELF_PAYMENT = "self_payment"
    PROFILE_LOOP = "profile_loop"


class Caution(Struct, frozen=True):
    """A warning for the author of a scenario; the scenario runs nevertheless."""

    code: str
    path: str
    message: str


class Reading:
    """The context of reading a scenario: strictness, known codes, warnings."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.warnings: list[Caution] = []
        self.base: str | None = None
        self.codes: tuple[str, ...] | None = None

    def members(self, at: Cursor, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> Members:
        """The members of a closed object; unknown ones are faults, or warnings in lenient reading."""
        members = at.object(required=required, optional=optional, unknown="keep" if self.lenient else "refuse")
        if self.lenient:
            for name in members.extra:
                self.warn("unknown_member", at, f"the member {name!r} is not known here and was ignored")
        return members

    def warn(self, code: str, at: Cursor, message: str) -> None:
        self.warnings.append(Caution(code, path_text(at.path), message))

    def money(self, at: Cursor, least: int | None = 0) -> int:
        """An amount in atoms; a fault if it is below `least`."""
        value = at.any()
        if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
            if at.given:
                at.refuse(f"{shown(value)} is not an amount", allowed=("a number", "a decimal string"))
            else:
                at.decimal()
            return 0
        try:
            amount = atoms(value)
        except InvalidAmount as refused:
            if not self.lenient or refused.kind != "too_fine":
                at.refuse(refused.message, code=refused.code, allowed=("a decimal of at most 12 and 8 digits",))
                return 0
            amount = atoms(value, round_down=True)
            self.warn("amount_rounded", at, f"{value} was rounded down to 8 digits after the point")
        if least is not None and amount < least:
            at.refuse(f"{value} is below {least}", code="invalid_amount", allowed=(f"at least {least}",))
            return 0
        return amount

    def code(self, at: Cursor) -> str:
        """An equivalent's code, trimmed and in capitals."""
        return _code(at, at.text(min=1))

    def code_or_base(self, at: Cursor) -> str:
        if at.unless_null().given:
            return self.code(at)
        if self.base is None:
            at.refuse("there is neither an equivalent nor a baseEquivalent", code="missing_field")
            return ""
        return self.base


def identifier(at: Cursor) -> str:
    """An id of the format."""
    return at.text(min=1, max=200, pattern=ID_FORM, form=FORM_OF_ID)


def _code(at: Cursor, text: str) -> str:
    code = text.strip().upper()
    if text and not _CODE.fullmatch(code):
        at.refuse(f"{text[:50]!r} is not the code of an equivalent", allowed=(FORM_OF_CODE,))
        return ""
    return code
