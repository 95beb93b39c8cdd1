"""YAML with the values of JSON: no guessed types, nothing executed.

Of the plain words only `true`, `false`, `null` and JSON numbers are special; `yes`, `12:30`, `012`, `~` and timestamps
are text. Member names are always text. Aliases and the length of their values count at each use. Directives are refused
before parsing. Reading follows the parser's events and stops at the depth limit, so that nesting never reaches the C
stack.
"""

from contextlib import closing
from re import compile as regex
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from pendula.documents.tree import Branch, NumberTooLong, ScanAborted, Tree, number
from pendula.kernel.canonical import Json
from pendula.kernel.limits import INTEGER_DIGITS
from pendula.kernel.wording import shown

# The characters that PyYAML accepts; others are reported with their place before parsing.
_UNPRINTABLE = regex("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = regex("[\ud800-\udfff]")
# Text that may precede a directive: the end of the previous document, blank lines and comments.
_BEFORE_DIRECTIVE = regex(r"(?:(?:\.\.\.)?[ \t]*(?:#[^\r\n\x85\u2028\u2029]*)?[\r\n\x85\u2028\u2029])*")
_SURROGATE_DIGITS = regex("[dD][89a-fA-F]")
HALF_A_CHARACTER = "YAML cannot escape half of a surrogate pair; write the character itself"
_LITERALS: dict[str, Json] = {"true": True, "false": False, "null": None, "": None}
_BEGINS_NUMBER = frozenset("-0123456789")

# libyaml if available: about ten times as fast, with the same events.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

A_TAB = "this line is indented with a tab; YAML requires spaces"


def scan(text: str, tree: Tree) -> None:
    """Read the whole text into `tree`, noting all faults up to the first YAML syntax error."""
    try:
        _scan(text, tree)
    except ScanAborted:
        assert tree.faults, "the scanner stopped without a fault"


def _scan(text: str, tree: Tree) -> None:
    if _UNPRINTABLE.search(text):
        _note_unprintable(text, tree)
        return
    try:
        _Reader(text, tree).run()
    except yaml.MarkedYAMLError as error:
        _note_syntax(error, text, tree)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The Python parser raises built-in errors for escapes beyond Unicode.
        tree.fault("yaml_syntax", 0, str(error).partition("\n")[0])


def _note_unprintable(text: str, tree: Tree) -> None:
    for character in _UNPRINTABLE.finditer(text):
        message = f"{shown(character[0])} must be escaped in YAML"
        tree.fault("control_character", character.start(), message, character[0], path=())


def _note_syntax(error: yaml.MarkedYAMLError, text: str, tree: Tree) -> None:
    mark = error.problem_mark or error.context_mark
    at = mark.index if mark else 0
    if "Unicode character escape" in (error.problem or "") and _SURROGATE_DIGITS.match(text, at):
        tree.fault("lone_surrogate", at, HALF_A_CHARACTER)
        return
    if _is_a_tab(text, at):
        tree.fault("yaml_syntax", at, A_TAB)
        return
    tree.fault("yaml_syntax", at, ", ".join(part for part in (error.context, error.problem) if part))


def _is_a_tab(text: str, at: int) -> bool:
    """Whether the parser failed at a tab in the indentation."""
    return text.startswith("\t", at) and not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t-?")


def _offset(event: Event) -> int:
    assert event.start_mark is not None, "every event has a mark"
    return event.start_mark.index


class Anchored:
    """An anchored value; while it is open, an alias to it would contain itself."""

    __slots__ = ("height", "length", "nodes", "value")

    def __init__(self, value: Json, length: int, nodes: int = 1, height: int = 0) -> None:
        self.value = value
        self.length = length
        self.nodes = nodes
        self.height = height


class _Reader:
    def __init__(self, text: str, tree: Tree) -> None:
        self.text = text
        self.tree = tree
        self.anchors: dict[str, Anchored | None] = {}
        self.open_anchors: list[str | None] = []
        self.names_next: list[bool] = []
        # Containers used as a member name are refused and skipped; this is the depth inside one.
        self.passing_over = 0
        self.documents = 0

    def run(self) -> None:
        self._refuse_directives(0)
        with closing(yaml.parse(self.text, Loader=LOADER)) as events:
            for event in events:
                if self.passing_over:
                    self._pass_over(event)
                elif isinstance(event, NodeEvent):
                    self._node(event)
                elif isinstance(event, CollectionEndEvent):
                    self._close()
                elif isinstance(event, DocumentStartEvent):
                    self._document(event)
                elif isinstance(event, DocumentEndEvent):
                    self._refuse_directives(_offset(event))

    def _refuse_directives(self, start: int) -> None:
        """Check the only place where the parser accepts directives; it takes quadratic time for many of them."""
        before = _BEFORE_DIRECTIVE.match(self.text, start)
        assert before is not None, "the pattern matches the empty string"
        if self.text.startswith("%", before.end()):
            message = "directives are not supported; leave the line out"
            self.tree.fault("yaml_directive", before.end(), message, path=())
            raise ScanAborted

    def _document(self, event: DocumentStartEvent) -> None:
        self.documents += 1
        if self.documents > 1:
            self.tree.fault("several_documents", _offset(event), "a second document begins here", path=())
            raise ScanAborted

    def _pass_over(self, event: Any) -> None:
        if isinstance(event, CollectionStartEvent):
            self.passing_over += 1
            self._too_deep_to_pass(_offset(event))
        elif isinstance(event, CollectionEndEvent):
            self.passing_over -= 1

    def _too_deep_to_pass(self, offset: int) -> None:
        if len(self.tree.stack) + self.passing_over > self.tree.limits.depth:
            self.tree.fault("key_not_text", offset, "the name of a member is nested too deeply")
            raise ScanAborted

    def _node(self, event: NodeEvent) -> None:
        if getattr(event, "tag", None) is not None:
            self._tag(event)
        if self.names_next and self.names_next[-1]:
            self.names_next[-1] = False
            self._name(event)
            return
        if self.names_next:
            self.names_next[-1] = isinstance(self.tree.stack[-1].container, dict)
        self._value(event)

    def _tag(self, event: Any) -> None:
        message = f"the tag {shown(event.tag)} is refused; types are never named in documents"
        self.tree.fault("explicit_tag", _offset(event), message, event.tag)

    def _name(self, event: NodeEvent) -> None:
        offset = _offset(event)
        if not isinstance(event, ScalarEvent):
            self.tree.key(None, offset)
            self.tree.fault("key_not_text", offset, "the name of a member must be plain text")
            self.passing_over = int(isinstance(event, CollectionStartEvent))
            return
        before = self.tree.length
        name = self._text(event, self.tree.container_path())
        if event.anchor is not None:
            self.anchors[event.anchor] = Anchored(name, self.tree.length - before)
        self.tree.key(name, offset)
        if name == "<<" and not event.style:
            message = "merge keys are not supported; write the members out, or quote the name"
            self.tree.fault("merge_key", offset, message, name)

    def _value(self, event: NodeEvent) -> None:
        offset = _offset(event)
        if isinstance(event, AliasEvent):
            self._alias(str(event.anchor), offset)
        elif isinstance(event, ScalarEvent):
            before = self.tree.length
            value = self._scalar(event)
            self.tree.leaf(value, offset)
            if event.anchor is not None:
                self.anchors[event.anchor] = Anchored(value, self.tree.length - before)
        else:
            self._open(event)

    def _open(self, event: NodeEvent) -> None:
        mapping = isinstance(event, MappingStartEvent)
        self.tree.open({} if mapping else [], _offset(event))
        self.names_next.append(mapping)
        self.open_anchors.append(event.anchor)
        if event.anchor is not None:
            self.anchors[event.anchor] = None

    def _close(self) -> None:
        branch: Branch = self.tree.close()
        self.names_next.pop()
        anchor = self.open_anchors.pop()
        if anchor is not None:
            length = self.tree.length - branch.length_before
            nodes = self.tree.nodes - branch.nodes_before
            self.anchors[anchor] = Anchored(branch.container, length, nodes, branch.height)

    def _alias(self, name: str, offset: int) -> None:
        anchored = self.anchors.get(name)
        if anchored is not None:
            self.tree.length += anchored.length
            self.tree.leaf(anchored.value, offset, nodes=anchored.nodes, height=anchored.height)
            return
        if name in self.anchors:
            self.tree.fault("recursive_alias", offset, f"the alias *{name} is inside the value it refers to", name)
        else:
            self.tree.fault("unknown_alias", offset, f"there is no anchor &{name} before this alias", name)
        self.tree.leaf(None, offset)

    def _scalar(self, event: ScalarEvent) -> Json:
        text = self._text(event, None)
        if event.style:
            return text
        if text in _LITERALS:
            return _LITERALS[text]
        if text[0] not in _BEGINS_NUMBER:
            return text
        try:
            value = number(text, self.tree.limits.digits)
        except NumberTooLong:
            allowed = (f"{self.tree.limits.digits} digits",)
            self.tree.fault(INTEGER_DIGITS.code, _offset(event), "the number is too long", text, allowed)
            return 0
        return text if value is None else value

    def _text(self, event: ScalarEvent, path: tuple[str | int, ...] | None) -> str:
        text: str = event.value
        if text.isascii():
            self.tree.length += len(text)
            return text
        self.tree.length += len(text.encode(errors="surrogatepass"))
        if _SURROGATE.search(text):
            self.tree.fault("lone_surrogate", _offset(event), HALF_A_CHARACTER, path=path)
        return text
