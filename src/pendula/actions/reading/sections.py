"""The sections of a file of actions: their valid parts, and every fault that makes the file unusable.

Such faults are a missing section or one of the wrong type, an invalid epoch or carry, an invalid setting. The engine's
readers check each piece alone, so that one fault does not hide the next.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from pendula.actions.configuration import InvalidEpoch, Setting, default_epoch
from pendula.actions.engine import World
from pendula.actions.model import ActionDef, EpochFrame, FollowUp, KnowledgeItem, Modifier, Need, Options
from pendula.actions.reading.complaints import Complaint, below, elements, itself, judged_as, known, note_all
from pendula.actions.rules.conditions import unknown_in
from pendula.actions.rules.names import FIELDS, WORLD_STATE, idle_message, idle_of, is_fact, known_names
from pendula.actions.rules.skills import Matrix, SkillRule
from pendula.actions.runs.batch import EPOCHS_MOST
from pendula.documents import Cursor, Document
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.time import Instant, format_iso, parse_iso, plus_minutes

REQUIRED = ("action_defs", "actions_submitted")
LISTS = ("actions_submitted", "interrupts", "commands")
OPTIONAL = tuple(name for name in (*FIELDS, *LISTS, "epochs") if name not in REQUIRED)
SECTIONS = (*REQUIRED, *OPTIONAL)


class Sections:
    """The sections of a file. Faults are noted in the document; `good` has the valid parts."""

    def __init__(self, document: Document) -> None:
        self.root = document.root()
        self.at = self.root.object(required=REQUIRED, optional=OPTIONAL)
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
        rules = self.members("locks")
        self.good["locks"] = {name: at.any() for name, at in rules.items() if self._usable(at, "locks", name)}
        self._names()
        self._carry()

    def members(self, name: str) -> dict[str, Cursor]:
        """The members of an object section; null counts as empty, another type is noted once."""
        if name not in self._members:
            self._members[name] = self.at[name].unless_null().map_of(itself, default={})
        return self._members[name]

    def elements(self, name: str) -> tuple[Cursor, ...]:
        at = self.at[name]
        return at.list_of(itself) if at.is_list else ()

    def parts_of_the_world(self, name: str) -> tuple[Cursor, ...]:
        """The elements of a list in `world_state`."""
        at = self.members("world_state").get(name)
        return at.list_of(itself) if at is not None and at.is_list else ()

    def _options(self) -> None:
        members = self.members("options")
        bad = {inner[0] for inner in note_all(self.at["options"], judged_as(Options)) if inner} if members else set()
        self.good["options"] = {name: at.any() for name, at in members.items() if name not in bad}

    def _epoch(self) -> None:
        """Check the epoch; its length only if the options that define it are valid."""
        at, options = self.at["epoch"], self.good["options"]
        sized = all(name in options for name in ("slots", "slot_minutes") if name in self.members("options"))

        def judge(raw: Json) -> Complaint | None:
            try:
                Setting.read({"epoch": raw, "options": options}, check_names=False)
            except InputRefused as fault:
                if sized or fault.details.get("path") != "$.epoch.end_at":
                    return Complaint(fault.code, fault.details.get("complaint", fault.message), fault.message)
            return None

        if not at.given:
            self._usual_epoch()
            return
        faulty = bool(note_all(at, judge))
        self._is_epoch_valid = sized and not faulty
        self.good["epoch"] = at.any() if self._is_epoch_valid else self._some_epoch()

    def _usual_epoch(self) -> None:
        """Without `epoch`, the day of the earliest submission is the epoch."""
        try:
            self.good["epoch"] = default_epoch(
                [at.any() for at in self.elements("actions_submitted")], self.good["options"]
            )
            self._is_epoch_valid = True
        except InvalidEpoch as fault:
            self.at["epoch"].refuse(fault.message, code=fault.code)
            self.good["epoch"], self._is_epoch_valid = self._some_epoch(), False

    def _some_epoch(self) -> dict[str, Json]:
        """A placeholder of the right length and kind of time, to check the rest with."""
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
        facts = {name: at for name, at in self.members("world_state").items() if name not in WORLD_STATE}
        for name, at in facts.items():
            if is_fact(at.any()) and self._usable(at, "world_state", name, as_list=False):
                good[name] = at.any()
        self.good["world_state"] = good

    def _usable(self, at: Cursor, section: str, name: str, *, as_list: bool = True) -> bool:
        """Whether this piece of a section is valid on its own."""

        def judge(raw: Json) -> Complaint | None:
            alone = {name: [raw] if section == "world_state" and as_list else raw}
            try:
                config = {"epoch": self.good["epoch"], "options": self.good["options"], section: alone}
                Setting.read(config, check_names=False)
            except InputRefused as fault:
                # The path of a reader is inside the section; its first step leads to this piece.
                texts = (fault.details.get("complaint", fault.message), fault.message)
                inner = (text.removeprefix(f"{name}: ").removeprefix(f"{section}: ") for text in texts)
                return Complaint(fault.code, *inner)
            return None

        return not note_all(at, judge, skip=1)

    def _names(self) -> None:
        """Note unknown members: an ignored name would be a rule without effect."""
        known(self.at["epoch"], EpochFrame)
        known(self.at["options"], Options)
        if self.at["world_state"].is_object:
            members = self.members("world_state").items()
            self.at["world_state"].object(optional=(*WORLD_STATE, *(name for name, at in members if is_fact(at.any()))))
        for name, kind in (("modifiers", Modifier), ("knowledge", KnowledgeItem)):
            for at in self.parts_of_the_world(name):
                known(at, kind)
                self._condition(at)
        for at in self.members("action_defs").values():
            known(at, ActionDef)
            for need in elements(at, "resources"):
                known(need, Need)
            for follow in elements(at, "followups"):
                known(follow, FollowUp)
                self._condition(follow)
            for member in idle_of(at.any()):
                below(at, (member,)).refuse(idle_message(member), code="InvalidSetting")
        for at in self.members("skill_weights").values():
            known(at, SkillRule)
        for at in self.members("skills").values():
            if at.is_object and "matrix" in at.map_of(itself):
                known(at, Matrix)

    def _condition(self, at: Cursor) -> None:
        """Note conditions on names that are not in `world_state`."""
        when = below(at, ("when",)) if at.is_object else at
        if when is at or not when.given or not when.is_object:
            return
        facts = [name for name in self.members("world_state") if name not in WORLD_STATE]
        for name, message in unknown_in(when.map_of(itself), facts):
            below(when, (name,)).refuse(message, code="InvalidSetting")

    def _carry(self) -> None:
        """Check the carry, if the epoch that it continues is valid."""
        at = self.at["carry"].unless_null()
        if not at.given or not self._is_epoch_valid:
            return
        try:
            good = {**self.good, "world_state": {}, "skill_weights": {}, "skills": {}, "action_defs": {}}
            for name, kind in (("epoch", EpochFrame), ("options", Options)):
                good[name] = {key: value for key, value in good[name].items() if key in known_names(kind)}
            self.used_ids = World.create({**good, "carry": at.any()}).current.used_ids
        except InputRefused as fault:
            at.refuse(fault.message, code=fault.code)


def _instant(text: Any) -> Instant | None:
    try:
        return parse_iso(text)
    except InputRefused:
        return None
