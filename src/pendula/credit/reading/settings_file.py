"""Settings in a file: an object of settings by name or by variable, `{"clearing_policy": "adaptive", ...}`."""

from decimal import Decimal

from pendula.credit.settings import BY_NAME, BY_VARIABLE, InvalidSetting, parse_setting
from pendula.documents import Cursor, Document
from pendula.documents.faults import suggestion


def read_settings(document: Document) -> dict[str, str]:
    """The texts of the settings by name, as `changed` takes them; raises `DocumentRefused` with every fault.

    Numbers, true and false are accepted like texts, and null means "none".
    """
    return document.read(_settings)


def _settings(root: Cursor) -> dict[str, str]:
    values: dict[str, str] = {}

    def member(at: Cursor) -> None:
        key = str(at.path[-1])
        setting = BY_NAME.get(key) or BY_VARIABLE.get(key)
        if setting is None:
            near = suggestion(key, [*BY_NAME, *BY_VARIABLE])
            # A list of fifty names would hide the suggestion.
            names = () if near else tuple(sorted(BY_NAME))
            at.refuse(f"no setting is called {key!r}{near}", code="unknown_field", allowed=names)
            return
        if setting.name in values:
            at.refuse(f"{setting.name} is given twice, once by its name and once by its variable", code="not_unique")
            return
        values[setting.name] = _text(at)
        try:
            parse_setting(setting, values[setting.name])
        except InvalidSetting as refused:
            allowed = str(refused.details["allowed"])
            at.refuse(refused.message.removesuffix(f"; allowed is {allowed}"), code=refused.code, allowed=(allowed,))

    root.map_of(member)
    return values


def _text(at: Cursor) -> str:
    match at.any():
        case None:
            return "none"
        case bool() as switch:
            return "on" if switch else "off"
        case int() | Decimal() as number:
            return format(number, "f") if isinstance(number, Decimal) else str(number)
        case str() as text:
            return text.strip()
        case _:
            return "a list or an object"
