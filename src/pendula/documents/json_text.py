"""JSON and JSON5: read fast with the interpreter's parser, or with places and all its faults.

`read_clean` is for texts without any fault; it stops at the first one. Every text that it does not accept is read again
by the scanner, which reports the faults or finds the value, and continues after a fault where possible. The scanner
does not recurse, so depth costs only memory, and it terminates on every text. `locate` finds the places of values in
valid JSON and skips the others with the interpreter's parser.
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from re import DOTALL, Pattern
from re import compile as regex
from typing import Any, NoReturn, TypeAlias

from pendula.documents.faults import Step, Wanted
from pendula.documents.tree import (
    DocumentLimits,
    NumberTooLong,
    ScanAborted,
    Tree,
    decimal_reader,
    integer_digits,
    number,
)
from pendula.kernel.canonical import Json
from pendula.kernel.limits import INTEGER_DIGITS
from pendula.kernel.wording import shown, suggestion

# An unclosed comment extends to the end of the text: searching for its end repeatedly would take quadratic time.
_GAP = regex(r"[ \t\r\n]+|(//[^\r\n]*|#[^\r\n]*|/\*.*?(?:\*/|\Z))", DOTALL)
_WORD = regex(r"[^ \t\r\n,:\[\]{}\"]+")
_SINGLE_QUOTED = regex(r"'([^'\r\n]*)'")
_SIMPLE_STRING = regex(r'"([^"\\\x00-\x1f]*)"')
_RUN = regex(r'[^"\\\x00-\x1f]*')
_PAIR = regex(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_ESCAPE = regex(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')

_LITERALS: dict[str, Json] = {"true": True, "false": False, "null": None}
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_CLOSER = {True: "]", False: "}"}
_PASSED_OVER = frozenset(" \t\r\n/#")
REPLACEMENT = "\ufffd"


# Reads the token that begins with the given character; returns what is expected next, or None at the end.
Expect: TypeAlias = Callable[[str], "Expect | None"]


def scan(text: str, tree: Tree) -> None:
    """Read the whole text into `tree`, noting all faults."""
    run(Scanner(text, tree))


def scan5(text: str, tree: Tree) -> None:
    """The same for JSON5."""
    run(Scanner5(text, tree))


def run(scanner: "Scanner") -> None:
    """Read the whole text of a scanner into its tree."""
    try:
        scanner.run()
    except ScanAborted:
        assert scanner.tree.faults, "the scanner stopped without a fault"


class Scanner:
    """Reads JSON. `called` is the name of the language in messages."""

    called = "JSON"

    def __init__(self, text: str, tree: Tree) -> None:
        self.text = text
        self.tree = tree
        self.at = 0

    def run(self) -> None:
        expect: Expect | None = self._value
        while expect is not None:
            expect = expect(self._next())
        if self._next():
            self._give_up("the document ends here, but more text follows", path=())

    def _next(self) -> str:
        """The next character that is not a space, empty at the end; comments are faults and skipped."""
        while (first := self.text[self.at : self.at + 1]) in _PASSED_OVER:
            gap = _GAP.match(self.text, self.at)
            if gap is None:
                return first
            if gap[1]:
                self._fault("JSON has no comments")
            self.at = gap.end()
        return first

    def _fault(self, message: str, *, path: tuple[str | int, ...] | None = None) -> None:
        self.tree.fault("json_syntax", self.at, message, path=path)

    def _give_up(self, message: str, *, path: tuple[str | int, ...] | None = None) -> None:
        self._fault(message, path=path)
        raise ScanAborted

    def _after_value(self) -> Expect | None:
        return self._comma_or_end if self.tree.stack else None

    def _value(self, first: str) -> Expect | None:
        start = self.at
        if first == "{":
            self.at += 1
            self.tree.open({}, start)
            return self._name_or_end
        if first == "[":
            self.at += 1
            self.tree.open([], start)
            return self._item_or_end
        if first == '"':
            self.tree.leaf(self._string(), start)
        elif first == "":
            self._give_up("the text ends where a value is expected" if self.text.strip() else "the document is empty")
        elif first in ",:]}":
            self._missing_value(first)
        else:
            self.tree.leaf(self._bare(first), start)
        return self._after_value()

    def _missing_value(self, first: str) -> None:
        if not self.tree.stack or first == ":":
            self._give_up(f"a value is expected here, not {first!r}")
        self._fault(f"a value is missing before {first!r}")
        self.tree.leaf(None, self.at)

    def _item_or_end(self, first: str) -> Expect | None:
        return self._closed() if first == "]" else self._value(first)

    def _item(self, first: str) -> Expect | None:
        if first == "]":
            self._fault("there is an extra comma before ']'", path=self.tree.container_path())
            return self._closed()
        return self._value(first)

    def _closed(self) -> Expect | None:
        self.at += 1
        self.tree.close()
        return self._after_value()

    def _name_or_end(self, first: str) -> Expect | None:
        return self._closed() if first == "}" else self._name(first)

    def _name(self, first: str) -> Expect | None:
        start = self.at
        if first == '"':
            self.tree.key(self._string(), start)
        elif first == "}":
            self._fault("there is an extra comma before '}'")
            return self._closed()
        elif first == ",":
            self._fault("a member is missing before ','")
            self.at += 1
            return self._name
        elif first in "[]{:":
            self._give_up(
                f"the name of a member is expected here, not {first!r}" if first else "an object is not closed"
            )
        else:
            self._fault("the name of a member must be in double quotes")
            self.tree.key(self._bare_name(first), start)
        return self._colon

    def _colon(self, first: str) -> Expect | None:
        if first == ":":
            self.at += 1
        else:
            self._fault("a colon is missing after the name of the member")
        return self._value

    def _comma_or_end(self, first: str) -> Expect | None:
        in_list = isinstance(self.tree.stack[-1].container, list)
        if first == _CLOSER[in_list]:
            return self._closed()
        following = self._item if in_list else self._name
        if first == ",":
            self.at += 1
            return following
        kind = "a list" if in_list else "an object"
        if first == "":
            self._give_up(f"{kind} is not closed", path=self.tree.container_path())
        if first in "]}:":
            self._give_up(f"{kind} continues with a comma or ends with {_CLOSER[in_list]!r}, not with {first!r}")
        self._fault("a comma is missing")
        return following

    def _bare_name(self, first: str) -> str:
        return self._single_quoted() if first == "'" else self._word()

    def _word(self) -> str:
        word = _WORD.match(self.text, self.at)
        assert word is not None
        self.at = word.end()
        return word[0]

    def _single_quoted(self) -> str:
        quoted = _SINGLE_QUOTED.match(self.text, self.at)
        if quoted is None:
            return self._word()
        self.at = quoted.end()
        return quoted[1]

    def _bare(self, first: str) -> Json:
        start = self.at
        if first == "'":
            self._fault("strings must be in double quotes")
            return self._single_quoted()
        word = self._word()
        if word in _LITERALS:
            return _LITERALS[word]
        value = self._number(word)
        if value is None:
            self._not_a_value(word, start)
        return value

    def _number(self, word: str) -> Json:
        """The value of the word that ends here; None if it is not a number."""
        try:
            return number(word, self.tree.limits.digits)
        except NumberTooLong:
            allowed = (f"{self.tree.limits.digits} digits",)
            self.tree.fault(INTEGER_DIGITS.code, self.at - len(word), "the number is too long", word, allowed)
            return 0

    def _not_a_value(self, word: str, start: int) -> None:
        if self.tree.faults.full:
            self.tree.count_fault()
        elif word.lstrip("+-").lower() in _NOT_FINITE:
            self.tree.fault("not_finite", start, f"{word} is not a number in {self.called}", word)
        elif word[0] in "+-.0123456789":
            self.tree.fault("json_syntax", start, f"{shown(word)} is not a number in {self.called}", word)
        else:
            hint = suggestion(word.lower(), tuple(_LITERALS))
            message = f"{shown(word)} is not a {self.called} value{hint}; strings must be in double quotes"
            self.tree.fault("json_syntax", start, message, word)

    def _string(self) -> str:
        simple = _SIMPLE_STRING.match(self.text, self.at)
        if simple is not None:
            self.at = simple.end()
            return simple[1]
        return self._quoted('"', _RUN)

    def _quoted(self, quote: str, plain: Pattern[str]) -> str:
        """The string that begins here; `plain` matches what stands for itself in it."""
        self.at += 1
        parts: list[str] = []
        while True:
            run = plain.match(self.text, self.at)
            assert run is not None
            parts.append(run[0])
            self.at = run.end()
            stop = self.text[self.at : self.at + 1]
            if stop == "\\":
                parts.append(self._escape())
            elif stop == quote:
                self.at += 1
                return "".join(parts)
            elif stop in ("", "\n", "\r"):
                # A string ends at the end of its line, so that one missing quote does not invert the rest of the text.
                self._fault("a string is not closed on its line")
                return "".join(parts)
            else:
                self.tree.fault("control_character", self.at, f"{shown(stop)} must be written as an escape", stop)
                self.at += 1

    def _escape(self) -> str:
        start = self.at
        pair = _PAIR.match(self.text, start)
        if pair is not None:
            self.at = pair.end()
            high, low = int(pair[1], 16), int(pair[2], 16)
            return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        escape = _ESCAPE.match(self.text, start)
        if escape is None:
            self._fault(f"{shown(self.text[start : start + 2])} is not a valid escape in {self.called}")
            # Skip only the backslash: the next character may end the line.
            self.at += 1
            return REPLACEMENT
        self.at = escape.end()
        if escape[1] is not None:
            return _ESCAPED[escape[1]]
        code = int(escape[2], 16)
        if 0xD800 <= code <= 0xDFFF:
            self.tree.fault("lone_surrogate", start, f"{escape[0]} is half of a surrogate pair", escape[0])
            return REPLACEMENT
        return chr(code)


_SPACE5 = "\t\n\v\f\r \u00a0\ufeff\u2028\u2029"
# An unclosed comment extends to the end of the text: searching for its end repeatedly would take quadratic time.
_GAP5 = regex(rf"[{_SPACE5}]+|//[^\r\n\u2028\u2029]*|/\*.*?(?:(?P<closed>\*/)|\Z)", DOTALL)
_NAME5 = regex(r"[^\W\d][\w$]*|\$[\w$]*")
_WORD5 = regex(rf"[^{_SPACE5},:\[\]{{}}\"'/]+")
_RUNS5 = {quote: regex(rf"[^{quote}\\\r\n\x00-\x08\x0e-\x1f]*") for quote in "\"'"}
_MORE_ESCAPES5 = {"'": "'", "v": "\v"}
_HEX_ESCAPE5 = regex(r"\\x([0-9a-fA-F]{2})")
_NO_DIGIT5 = regex(r"\\0(?![0-9])")
_LINE_END5 = regex(r"\\(?:\r\n|[\n\r\u2028\u2029])")
_HEX5 = regex(r"([+-]?)0[xX]([0-9a-fA-F]+)\Z")
_DECIMAL5 = regex(r"\+?(-?)([0-9]*)(?:(\.)([0-9]*))?((?:[eE][+-]?[0-9]+)?)\Z")


class Scanner5(Scanner):
    """Reads JSON5: JSON with comments, unquoted names, trailing commas, single quotes and more number forms.

    Only texts that the interpreter's JSON parser does not accept are read here. Values are those of JSON: exact
    numbers, and no `Infinity` or `NaN`.
    """

    called = "JSON5"

    def _next(self) -> str:
        while (gap := _GAP5.match(self.text, self.at)) is not None:
            if gap[0].startswith("/*") and gap["closed"] is None:
                self._fault("a comment is not closed")
            self.at = gap.end()
        if self.text.startswith("#", self.at):
            self._give_up("a comment begins with // in JSON5, not with #")
        return self.text[self.at : self.at + 1]

    def _item(self, first: str) -> Expect | None:
        return self._closed() if first == "]" else self._value(first)

    def _name(self, first: str) -> Expect | None:
        start = self.at
        if first == "}":
            return self._closed()
        if first == "'":
            self.tree.key(self._string(), start)
            return self._colon
        name = _NAME5.match(self.text, self.at)
        if name is None:
            return super()._name(first)
        self.at = name.end()
        self.tree.key(name[0], start)
        return self._colon

    def _bare(self, first: str) -> Json:
        return self._string() if first == "'" else super()._bare(first)

    def _word(self) -> str:
        word = _WORD5.match(self.text, self.at)
        if word is None:
            return super()._word()
        self.at = word.end()
        return word[0]

    def _number(self, word: str) -> Json:
        in_hex = _HEX5.match(word)
        if in_hex is not None:
            digits = in_hex[2]
            # At most 64 bits, since the digit limit counts decimal digits.
            if len(digits) > 16:
                return None
            return int(digits, 16) * (-1 if in_hex[1] == "-" else 1)
        decimal = _DECIMAL5.match(word)
        if decimal is None or not (decimal[2] or decimal[4]):
            return super()._number(word)
        sign, whole, point, fraction, exponent = decimal.groups()
        return super()._number(f"{sign}{whole or '0'}{point if fraction else ''}{fraction or ''}{exponent}")

    def _string(self) -> str:
        quote = self.text[self.at]
        return self._quoted(quote, _RUNS5[quote])

    def _escape(self) -> str:
        for pattern in (_LINE_END5, _HEX_ESCAPE5, _NO_DIGIT5):
            escape = pattern.match(self.text, self.at)
            if escape is not None:
                self.at = escape.end()
                if pattern is _LINE_END5:
                    return ""
                return chr(int(escape[1], 16)) if pattern is _HEX_ESCAPE5 else "\0"
        more = _MORE_ESCAPES5.get(self.text[self.at + 1 : self.at + 2])
        if more is not None:
            self.at += 2
            return more
        return super()._escape()


_SURROGATE = regex(r"\\u[dD][89a-fA-F]")
_SURROGATE_PAIR = regex(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]")


class NotClean(Exception):
    """The text may have a fault."""


def read_clean(text: str, limits: DocumentLimits) -> Json:
    """The value of a text without faults; raises `NotClean` otherwise, and in rare undecided cases."""
    if _most_values(text) > limits.nodes or not _surrogates_paired(text):
        raise NotClean
    try:
        value: Json = _decoder(limits.digits, sys.get_int_max_str_digits()).decode(text)
    except (ValueError, RecursionError):
        raise NotClean from None
    _measure(value, limits)
    return value


@cache
def _decoder(most: int, own: int) -> json.JSONDecoder:
    """The parser for numbers of at most `most` digits; `own` is the limit of the interpreter, 0 for none."""
    return json.JSONDecoder(
        # The parser's own integer conversion is fastest and includes the interpreter's digit limit.
        parse_int=None if own and own <= most else _integer_reader(most),
        parse_float=decimal_reader(most),
        parse_constant=_no_constant,
        object_pairs_hook=_members,
    )


def _integer_reader(most: int) -> Any:
    longest = integer_digits(most)

    def read(text: str) -> int:
        if len(text) - text.startswith("-") > longest:
            raise NotClean
        return int(text)

    return read


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotClean
    return members


def _no_constant(_: str) -> NoReturn:
    raise NotClean


def _most_values(text: str) -> int:
    """An upper bound of the number of values in a valid text, checked before parsing takes gigabytes.

    One, plus one per comma and per non-empty container; such characters in strings raise the bound.
    """
    openings = text.count("[") + text.count("{")
    return 1 + text.count(",") + openings - text.count("[]") - text.count("{}")


def _surrogates_paired(text: str) -> bool:
    """Whether every escaped surrogate is paired; False if an escaped backslash makes this uncertain."""
    if "\\ud" not in text and "\\uD" not in text:
        return True
    surrogates = len(_SURROGATE.findall(text))
    return not surrogates or ("\\\\" not in text and surrogates == 2 * len(_SURROGATE_PAIR.findall(text)))


def _measure(value: Json, limits: DocumentLimits) -> None:
    """Raise `NotClean` if the value is too deep or has too many nodes; level by level, without recursion."""
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    depth, nodes = 0, 1
    while level:
        depth += 1
        inner: list[Any] = []
        for container in level:
            nodes += len(container)
            children = container.values() if type(container) is dict else container
            inner += [child for child in children if type(child) is dict or type(child) is list]
        level = inner
        if depth > limits.depth or nodes > limits.nodes:
            raise NotClean


_SPACE = regex(r"[ \t\r\n]*")
# Skipped numbers are not converted; only their length matters.
_SKIP = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode


def locate(text: str, wanted: Wanted) -> None:
    """Note the offsets of all wanted values in valid JSON. May raise `RecursionError`."""
    _walk(text, _past_space(text, 0), wanted)


def _past_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None, "the pattern matches the empty string"
    return space.end()


def _walk(text: str, at: int, wanted: Wanted | None) -> int:
    """Note the offsets of the value at `at` and of wanted values inside it; returns where it ends."""
    if wanted is not None:
        wanted.value_at = at
        if wanted.children and text[at] in "{[":
            return _walk_container(text, at, wanted)
    return _SKIP(text, at)[1]


def _walk_container(text: str, at: int, wanted: Wanted) -> int:
    is_list = text[at] == "["
    index = 0
    at = _past_space(text, at + 1)
    while text[at] not in "]}":
        key_at = at
        name: Step = index
        if not is_list:
            name, at = _SKIP(text, at)
            at = _past_space(text, _past_space(text, at) + 1)
        child = wanted.children.get(name)
        if child is not None and not is_list:
            child.key_at = key_at
        at = _past_space(text, _walk(text, at, child))
        if text[at] == ",":
            at = _past_space(text, at + 1)
        index += 1
    return at + 1
