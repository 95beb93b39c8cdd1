"""Reads the settings of governed objects from a document: limits, and custom state machines.

Every fault at once, each with its place. Names and shapes are checked here; whether states can be reached and left, and
whether the rules hold, is checked by `machines.faults`.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import asdict

from pendula.documents import Cursor, DocumentRefused, Members, read_file
from pendula.documents.typed import read_at
from pendula.governance.decisions import Limits
from pendula.governance.inputs import DEFAULT, Rules
from pendula.governance.machines import INVALIDATE, REFERENCE, STATES_MOST, USE, Machine, MachineForm, faults
from pendula.jobs.model import Vocabulary
from pendula.jobs.settings_file import among

CHAIN = (USE, INVALIDATE)  # actions of programs that use objects, not of jobs
NOTHING = Machine(object_type="", first="", trust={}, arrows=(), follow={}, never=())


def read_settings(it: Members, vocabulary: Vocabulary, folder: Path | None) -> Rules | None:
    """The settings among the members of a settings file, None for the defaults; `folder` is the base of named files."""
    rules = Rules(_machines(it["machines"], vocabulary, folder), read_at(it.owner, Limits))
    return None if rules == DEFAULT else rules


def _machines(at: Cursor, vocabulary: Vocabulary, folder: Path | None) -> Mapping[str, Machine]:
    """The reference machines and those of the file, which may replace a reference machine."""
    if not at.given:
        return REFERENCE

    def known(name: Cursor) -> None:
        among(name, vocabulary.object_types)

    own = at.map_of(lambda one: read_machine(one, str(one.path[-1]), vocabulary.actions, folder), key=known)
    return {**REFERENCE, **own}


def read_machine(at: Cursor, object_type: str, actions: Collection[str], folder: Path | None) -> Machine:
    """The machine at this place, or in the file named there, relative to the settings."""
    if not at.is_text:
        return _checked(at, object_type, actions)
    name = at.text(min=1)
    if folder is None:
        at.refuse("a file can be named only in a settings file")
        return NOTHING
    try:
        return read_file(folder / name).read(lambda root: _checked(root, object_type, actions))
    except DocumentRefused as refused:
        for fault in refused.faults:
            at.refuse(fault.text(name))
        return NOTHING


def _checked(at: Cursor, object_type: str, actions: Collection[str]) -> Machine:
    machine = Machine(object_type=object_type, **asdict(read_at(at, MachineForm)))
    if not at.is_object:
        return NOTHING
    members = at.object(optional=MachineForm.__struct_fields__, unknown="keep")
    if len(machine.trust) > STATES_MOST:
        allowed = (f"at most {STATES_MOST} states",)
        members["trust"].refuse(f"{len(machine.trust)} states are too many", allowed=allowed)
    elif all(name in members for name in ("first", "trust", "arrows", "follow", "never")):
        for sentence in faults(machine, (*actions, *CHAIN)):
            at.refuse(sentence)
    return machine
