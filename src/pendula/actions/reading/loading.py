"""A file into the document that a run takes; what spoils the whole is refused, every fault with its place.

Such faults are: a section that is missing or of the wrong kind, an epoch or a carry that cannot be, a setting that no
world can be made of. Faults of single definitions, instances and requests do not spoil a run, they become rejections
and diagnostics; `checking` lists them. The rules themselves are the engine's; here its readers are asked about each
piece alone, so that one fault does not hide the next.
"""

from collections.abc import Callable, Collection, Mapping
from importlib.resources import files
from pathlib import Path as FilePath
from re import compile as regex
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from pendula.actions.configuration import FIELDS, InvalidCarryOver, InvalidEpoch, Setting
from pendula.actions.engine import World
from pendula.actions.model import Options
from pendula.actions.runs.batch import EPOCHS_MOST
from pendula.documents import Cursor, Document, DocumentRefused, Fault, Format, Path, read_bytes, read_file
from pendula.documents.faults import suggestion
from pendula.documents.places import Step
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import Instant, format_iso, parse_iso, plus_minutes

REQUIRED = ("epoch", "action_defs", "actions_submitted")
LISTS = ("actions_submitted", "interrupts", "commands")
OPTIONAL = tuple(name for name in (*FIELDS, *LISTS, "epochs") if name not in REQUIRED)
SECTIONS = (*REQUIRED, *OPTIONAL)

# What stands for a required value that was refused, so that the rest of its object is read too.
STAND_INS: Mapping[str, Json] = {
    "actor": "?",
    "amount": 0,
    "base_duration_min": 1,
    "effort": "low",
    "factor": 1,
    "id": "?",
    "index": 0,
    "interruptible": True,
    "name": "?",
    "priority": 0,
    "target": "?",
    "verb": "?",
}

NO_CODES: Mapping[Step, str] = {}

_INNER = regex(r"(?s)(.*) - at `\$(.*)`")
_STEP = regex(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
_FIELD = regex(r"(?:required|unknown) field `(.+)`")


class FileRefused(DocumentRefused):
    """A file of actions with faults; on a terminal each line ends with its code."""

    def render(self) -> str:
        coded = [msgspec.structs.replace(fault, allowed=(), message=_with_code(fault)) for fault in self.faults]
        return DocumentRefused(coded, self.source_name, self.more).render()


class EpochRefused(FileRefused, InvalidEpoch):
    """Nothing but the epoch is wrong."""

    code = "InvalidEpoch"


class CarryRefused(FileRefused, InvalidCarryOver):
    """Nothing but the carry is wrong."""

    code = "InvalidCarryOver"


class Complaint(Struct, frozen=True):
    """What a reader of the engine says about a value."""

    code: str
    message: str


Judge: TypeAlias = Callable[[Any], Complaint | None]


def load(path: FilePath | str) -> dict[str, Any]:
    """The document in a file, for `run_document`; raises `DocumentRefused` where it is refused as a whole."""
    return accept(read_file(path))


def town() -> Document:
    """The example that comes with the package: a small town over three days."""
    name = "town.yaml"
    return read_bytes((files("pendula.actions") / "example" / name).read_bytes(), Format.YAML, name)


def accept(document: Document) -> dict[str, Any]:
    """The document as a run takes it; raises `FileRefused` with every fault that spoils the whole."""
    Sections(document)
    refuse_if_faulty(document)
    assert isinstance(document.value, dict)
    return document.value


def unknown_sections(value: Mapping[str, Any]) -> list[str]:
    """A sentence for each member that is not a section: a run passes over it, but hardly anybody means that."""
    return [f"{name!r} is not a section{suggestion(name, SECTIONS)}" for name in value if name not in SECTIONS]


def refuse_if_faulty(document: Document) -> None:
    """Raise what was noted; the code of the refusal is that of its faults when they are all about epoch or carry."""
    try:
        document.done()
    except DocumentRefused as refused:
        kind = FileRefused
        for special in (EpochRefused, CarryRefused):
            if all(fault.code == special.code for fault in refused.faults):
                kind = special
        raise kind(refused.faults, refused.source_name, refused.more) from None


class Sections:
    """The sections of a file. Faults that spoil the whole are noted in the document; what is good is kept."""

    def __init__(self, document: Document) -> None:
        self.root = document.root()
        self.at = self.root.object(required=REQUIRED, optional=OPTIONAL, unknown="keep")
        self.good: dict[str, Any] = {}
        self.used_ids: Collection[str] = ()
        self._members: dict[str, dict[str, Cursor]] = {}
        if not self.root.is_object:
            return
        for name in LISTS:
            if not self.at[name].is_list:
                self.at[name].unless_null().list_of(Cursor.any, default=())
        self.at["epochs"].unless_null().integer(min=1, max=EPOCHS_MOST, default=1)
        self._options()
        self._epoch()
        self._world_state()
        for name in ("action_defs", "skills", "skill_weights"):
            self.good[name] = {key: at.any() for key, at in self.members(name).items()}
        amounts = self.members("resources")
        good = [name for name, at in amounts.items() if self._usable(at, "resources", name)]
        self.good["resources"] = {name: amounts[name].any() for name in good}
        self._carry()

    def members(self, name: str) -> dict[str, Cursor]:
        """The members of a section that is an object; null is an empty one. What is not an object is noted once."""
        if name not in self._members:
            self._members[name] = self.at[name].unless_null().map_of(_itself, default={})
        return self._members[name]

    def elements(self, name: str) -> tuple[Cursor, ...]:
        at = self.at[name]
        return at.list_of(_itself) if at.is_list else ()

    def parts_of_the_world(self, name: str) -> tuple[Cursor, ...]:
        """The elements of a list in `world_state`."""
        at = self.members("world_state").get(name)
        return at.list_of(_itself) if at is not None and at.is_list else ()

    def _options(self) -> None:
        members = self.members("options")
        bad = {inner[0] for inner in note_all(self.at["options"], judged_as(Options)) if inner} if members else set()
        self.good["options"] = {name: at.any() for name, at in members.items() if name not in bad}

    def _epoch(self) -> None:
        """Judged by its length only where the options say how long it has to be."""
        at, options = self.at["epoch"], self.good["options"]
        sized = all(name in options for name in ("slots", "slot_minutes") if name in self.members("options"))

        def judge(raw: Json) -> Complaint | None:
            try:
                Setting.read({"epoch": raw, "options": options})
            except InputRefused as fault:
                if sized or fault.details.get("path") != "$.epoch.end_at":
                    return Complaint(fault.code, fault.message)
            return None

        faulty = not at.given or bool(note_all(at, judge))
        self._epoch_stands = sized and not faulty
        self.good["epoch"] = at.any() if self._epoch_stands else self._some_epoch()

    def _some_epoch(self) -> dict[str, Json]:
        """A frame of the right length and of the file's kind of time, to judge the rest by."""
        given = self.at["epoch"].any()
        texts = [given.get("start_at"), given.get("end_at")] if isinstance(given, dict) else []
        texts += [
            raw.get("submitted_at")
            for raw in map(Cursor.any, self.elements("actions_submitted"))
            if isinstance(raw, dict)
        ]
        start = next((instant for instant in map(_instant, texts) if instant is not None), Instant(0))
        options = msgspec.convert(self.good["options"], Options)
        end = plus_minutes(start, options.slots * options.slot_minutes)
        return {"index": 0, "start_at": format_iso(start), "end_at": format_iso(end)}

    def _world_state(self) -> None:
        good: dict[str, Any] = {}
        for name in ("modifiers", "knowledge"):
            at = self.members("world_state").get(name)
            if at is not None and not at.is_list:
                at.unless_null().list_of(Cursor.any, default=())
            parts = self.parts_of_the_world(name)
            good[name] = [part.any() for part in parts if self._usable(part, "world_state", name)]
        self.good["world_state"] = good

    def _usable(self, at: Cursor, section: str, name: str) -> bool:
        """Whether a world can be made of this piece of a section alone."""

        def judge(raw: Json) -> Complaint | None:
            alone = {name: [raw] if section == "world_state" else raw}
            try:
                Setting.read({"epoch": self.good["epoch"], "options": self.good["options"], section: alone})
            except InputRefused as fault:
                # Readers speak of the path in the section; the first step leads to this piece.
                return Complaint(fault.code, fault.message.removeprefix(f"{name}: ").removeprefix(f"{section}: "))
            return None

        return not note_all(at, judge, skip=1)

    def _carry(self) -> None:
        """Judged only beside the epoch it has to continue."""
        at = self.at["carry"].unless_null()
        if not at.given or not self._epoch_stands:
            return
        try:
            self.used_ids = World.create({**self.good, "action_defs": {}, "carry": at.any()}).current.used_ids
        except InputRefused as fault:
            at.refuse(fault.message, code=fault.code)


def judged_as(kind: type[Struct], code: str = "InvalidSetting") -> Judge:
    """Whether a value can be read as a struct."""

    def judge(raw: Json) -> Complaint | None:
        try:
            msgspec.convert(raw, kind)
        except msgspec.ValidationError as fault:
            return Complaint(code, f"{fault}")
        return None

    return judge


def note_all(at: Cursor, judge: Judge, skip: int = 0, codes: Mapping[Step, str] = NO_CODES) -> list[Path]:
    """Note every fault of a value at its place; returns where, inside the value. A field that is refused is replaced
    or left out and the rest judged again, because readers stop at the first fault. `codes` are those of some fields."""
    raw: Any = at.any()
    found: list[Path] = []
    replaced: set[object] = set()
    while (complaint := judge(raw)) is not None:
        message, inner = taken_apart(complaint.message)
        inner = inner[skip:]
        named = _FIELD.search(message) if not inner else None
        field = named[1] if named else inner[0] if inner else None
        if field in replaced:
            break
        code = codes.get(inner[0], complaint.code) if inner else complaint.code
        below(at, inner).refuse(message, code=code)
        found.append(inner)
        if not isinstance(raw, dict) or field is None:
            break
        replaced.add(field)
        raw = {name: value for name, value in raw.items() if name != field}
        if isinstance(field, str) and field in STAND_INS:
            raw[field] = STAND_INS[field]
    return found


def below(at: Cursor, steps: Path) -> Cursor:
    """The cursor of a value inside another."""
    for step in steps:
        if isinstance(step, int):
            at = at.list_of(_itself)[step]
        else:
            at = at.object(optional=(step,), unknown="keep")[step]
    return at


def taken_apart(message: str) -> tuple[str, Path]:
    """A reader's message without its path, and the path; it ends before a member whose name readers do not tell."""
    match = _INNER.fullmatch(message)
    if match is None:
        return message, ()
    steps: list[str | int] = []
    for step in _STEP.finditer(match[2]):
        if step[0] == "[...]":
            break
        steps.append(step[1] or int(step[2]))
    return match[1], tuple(steps)


def _itself(at: Cursor) -> Cursor:
    return at


def _instant(text: Any) -> Instant | None:
    try:
        return parse_iso(text)
    except InputRefused:
        return None


def _with_code(fault: Fault) -> str:
    allowed = f"; allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
    return f"{fault.message}{allowed} ({fault.code})"
