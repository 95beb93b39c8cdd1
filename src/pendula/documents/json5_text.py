"""JSON5: JSON with comments, unquoted names, trailing commas, single quotes and more number forms.

Only texts that the interpreter's JSON parser does not accept are read here. Values are those of JSON: exact numbers,
and no `Infinity` or `NaN`.
"""

from re import DOTALL
from re import compile as regex

from pendula.documents.json_text import Expect, Scanner, run
from pendula.documents.tree import Tree
from pendula.kernel.canonical import Json

_SPACE = "\t\n\v\f\r \u00a0\ufeff\u2028\u2029"
# An unclosed comment extends to the end of the text: searching for its end repeatedly would take quadratic time.
_GAP = regex(rf"[{_SPACE}]+|//[^\r\n\u2028\u2029]*|/\*.*?(?:(?P<closed>\*/)|\Z)", DOTALL)
_NAME = regex(r"[^\W\d][\w$]*|\$[\w$]*")
_WORD = regex(rf"[^{_SPACE},:\[\]{{}}\"'/]+")
_RUNS = {quote: regex(rf"[^{quote}\\\r\n\x00-\x08\x0e-\x1f]*") for quote in "\"'"}
_MORE_ESCAPES = {"'": "'", "v": "\v"}
_HEX_ESCAPE = regex(r"\\x([0-9a-fA-F]{2})")
_NO_DIGIT = regex(r"\\0(?![0-9])")
_LINE_END = regex(r"\\(?:\r\n|[\n\r\u2028\u2029])")
_HEX = regex(r"([+-]?)0[xX]([0-9a-fA-F]+)\Z")
_DECIMAL = regex(r"\+?(-?)([0-9]*)(?:(\.)([0-9]*))?((?:[eE][+-]?[0-9]+)?)\Z")


def scan(text: str, tree: Tree) -> None:
    """Read the whole text into `tree`, noting all faults."""
    run(_Scanner5(text, tree))


class _Scanner5(Scanner):
    called = "JSON5"

    def _next(self) -> str:
        while (gap := _GAP.match(self.text, self.at)) is not None:
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
        name = _NAME.match(self.text, self.at)
        if name is None:
            return super()._name(first)
        self.at = name.end()
        self.tree.key(name[0], start)
        return self._colon

    def _bare(self, first: str) -> Json:
        return self._string() if first == "'" else super()._bare(first)

    def _word(self) -> str:
        word = _WORD.match(self.text, self.at)
        if word is None:
            return super()._word()
        self.at = word.end()
        return word[0]

    def _number(self, word: str) -> Json:
        in_hex = _HEX.match(word)
        if in_hex is not None:
            digits = in_hex[2]
            # At most 64 bits, since the digit limit counts decimal digits.
            if len(digits) > 16:
                return None
            return int(digits, 16) * (-1 if in_hex[1] == "-" else 1)
        decimal = _DECIMAL.match(word)
        if decimal is None or not (decimal[2] or decimal[4]):
            return super()._number(word)
        sign, whole, point, fraction, exponent = decimal.groups()
        return super()._number(f"{sign}{whole or '0'}{point if fraction else ''}{fraction or ''}{exponent}")

    def _string(self) -> str:
        quote = self.text[self.at]
        return self._quoted(quote, _RUNS[quote])

    def _escape(self) -> str:
        for pattern in (_LINE_END, _HEX_ESCAPE, _NO_DIGIT):
            escape = pattern.match(self.text, self.at)
            if escape is not None:
                self.at = escape.end()
                if pattern is _LINE_END:
                    return ""
                return chr(int(escape[1], 16)) if pattern is _HEX_ESCAPE else "\0"
        more = _MORE_ESCAPES.get(self.text[self.at + 1 : self.at + 2])
        if more is not None:
            self.at += 2
            return more
        return super()._escape()
