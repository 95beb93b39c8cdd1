"""Reads a settings file (TOML, YAML or JSON); every fault at once, each with its place.

Missing settings have their defaults. Object types and actions are added to the built-in ones.
"""

from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from pathlib import Path
from re import compile as regex
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from pendula.documents import Cursor, Document, DocumentLimits, Members, from_value, read_file
from pendula.documents.toml_text import BYTES_MOST, read_toml
from pendula.documents.typed import read_members
from pendula.jobs.cron import PLAIN, Cron, zone_of
from pendula.jobs.hooks import governance
from pendula.jobs.messages import (
    OBJECT_ID_MOST,
    PLAN_NAME,
    PLAN_NAME_FORM,
    QUEUE,
    QUEUE_FORM,
    Recurring,
)
from pendula.jobs.model import (
    ATTEMPTS_MOST,
    DAY_SEC,
    PAYLOAD_MOST_BYTES,
    PRIORITIES,
    Policy,
    Priority,
    Vocabulary,
)
from pendula.jobs.plans import PLANS_MOST
from pendula.jobs.request_reading import canonical
from pendula.kernel.errors import InputRefused, NotCanonical
from pendula.kernel.wording import shown, suggestion

P = TypeVar("P", Priority, None)

WORDS_MOST = 200
HEAD_START_MOST_SEC = 30 * DAY_SEC
WORD = regex(r"[a-z][a-z0-9_-]{0,63}")
WORD_FORM = "a letter, then at most 63 of a-z, 0-9, _ and -"
OBJECT_ID = r"(?!\s)[^\x00-\x1f\x7f-\x9f]+(?<!\s)"  # not blank at its ends
# Other object types of the trail, and words before a type in a path.
RESERVED = ("decision", "scheduler_job", "persona", "show", "why")


class Configured(Struct, frozen=True):
    """The content of a settings file. `alert_webhook` is None where alerts only go to the log."""

    policy: Policy = Policy()
    worker_interval_sec: Decimal = Decimal(5)
    recurring: tuple[Recurring, ...] = ()
    alert_webhook: str | None = None


POLICY = tuple(name for name in Policy.__struct_fields__ if name not in ("vocabulary", "governance"))
PARAMETERS = tuple(name for name in POLICY if name not in ("default_priority", "head_start_sec"))
BESIDES = (
    "object_types",
    "actions",
    "worker_interval_sec",
    "recurring",
    "alerts",
)
# Of governed objects.
GOVERNED = (
    "machines",
    "auto_verify_budget",
    "uncertainty_ttl",
    "ontic_verify_limit",
    "learning_period_days",
    "min_evidence_count",
)


def load(path: str | Path) -> Configured:
    """The settings in a file; its suffix says the format. Raises `DocumentRefused` with every fault."""
    file = Path(path)
    if file.suffix.lower() == ".toml":
        return read(read_toml(file), file.parent)
    return read(read_file(file, limits=DocumentLimits(size=BYTES_MOST)), file.parent)


def read(document: Document, folder: Path | None = None) -> Configured:
    """The settings in a document; raises `DocumentRefused` with every fault. `folder` is the base of named files."""
    return document.read(lambda root: _configured(root, folder))


def with_words(policy: Policy, object_types: Iterable[str], actions: Iterable[str]) -> Policy:
    """The policy with additional words; raises `DocumentRefused` for an invalid word."""
    there = policy.vocabulary
    # One text in place of a list is refused below; its letters would be valid words.
    new = {
        name: given if isinstance(given, str) else [word for word in given if word not in known]
        for name, given, known in (
            ("object_types", object_types, there.object_types),
            ("actions", actions, there.actions),
        )
    }

    def vocabulary(root: Cursor) -> Vocabulary:
        it = root.object(optional=tuple(new))
        kinds = _added(it["object_types"], there.object_types, RESERVED)
        return Vocabulary(kinds, _added(it["actions"], there.actions))

    return replace(policy, vocabulary=from_value(new, "the words of a scheduler").read(vocabulary))


def _configured(root: Cursor, folder: Path | None) -> Configured:
    it = root.object(optional=(*POLICY, *BESIDES, *GOVERNED))
    plain = Configured()
    vocabulary = Vocabulary(
        _added(it["object_types"], plain.policy.vocabulary.object_types, RESERVED),
        _added(it["actions"], plain.policy.vocabulary.actions),
    )
    return Configured(
        policy=_policy(it, vocabulary, folder),
        worker_interval_sec=it["worker_interval_sec"].decimal(
            min=Decimal("0.05"), max=3600, default=plain.worker_interval_sec
        ),
        recurring=it["recurring"].list_of(_recurring(vocabulary), max=PLANS_MOST, default=()),
        alert_webhook=_webhook(it["alerts"]),
    )


def _policy(it: Members, vocabulary: Vocabulary, folder: Path | None) -> Policy:
    plain = Policy()
    policy = Policy(
        vocabulary=vocabulary,
        default_priority=_priority(it["default_priority"], plain.default_priority),
        head_start_sec=_head_start(it["head_start_sec"], plain.head_start_sec),
        governance=governance().read_settings(it, vocabulary, folder)
        if any(it[name].given for name in GOVERNED)
        else None,
        **read_members(it, Policy, PARAMETERS),
    )
    if policy.pull_default_limit > policy.pull_max_limit:
        named = "pull_default_limit" if "pull_default_limit" in it else "pull_max_limit"
        it[named].refuse(
            f"a pull gives {policy.pull_default_limit} jobs by default, and may give {policy.pull_max_limit} at most",
            allowed=("pull_default_limit up to pull_max_limit",),
        )
    return policy


def _head_start(at: Cursor, plain: tuple[int, int, int]) -> tuple[int, int, int]:
    if not at.given:
        return plain
    it = at.object(optional=tuple(PRIORITIES))
    high, medium, low = (
        it[word].integer(min=0, max=HEAD_START_MOST_SEC, default=plain[priority])
        for word, priority in PRIORITIES.items()
    )
    return high, medium, low


def _added(at: Cursor, there: tuple[str, ...], reserved: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The built-in words and those of the file."""
    words = list(there)

    def word(one: Cursor) -> None:
        text = one.text(pattern=WORD, form=WORD_FORM)
        if text in reserved:
            one.refuse(f"{text!r} is reserved by the scheduler", allowed=("another word",))
        elif text in words:
            one.refuse(f"{text!r} exists already")
        elif text:
            words.append(text)

    at.list_of(word, max=WORDS_MOST, default=())
    return tuple(words)


def _recurring(vocabulary: Vocabulary) -> Callable[[Cursor], Recurring]:
    """A reader of entries; a repeated name is a fault at its second place."""
    seen: set[str] = set()

    def read(at: Cursor) -> Recurring:
        it = at.object(
            required=("name", "cron", "object_type", "object_id", "action"),
            optional=("zone", "priority", "max_attempts", "queue", "payload"),
        )
        name = it["name"].text(pattern=PLAN_NAME, form=PLAN_NAME_FORM)
        if name and name in seen:
            it["name"].refuse(f"{name!r} is there twice", code="not_unique")
        seen.add(name)
        return Recurring(
            name=name,
            cron=it["cron"].parsed(_cron, stand_in=""),
            object_type=among(it["object_type"], vocabulary.object_types),
            object_id=it["object_id"].text(min=1, max=OBJECT_ID_MOST, pattern=OBJECT_ID),
            action=among(it["action"], vocabulary.actions),
            priority=_priority(it["priority"], None),
            max_attempts=it["max_attempts"].integer(min=1, max=ATTEMPTS_MOST, default=None),
            queue=it["queue"].text(pattern=QUEUE, form=QUEUE_FORM, default="default"),
            zone=it["zone"].parsed(_zone, stand_in=PLAIN, default=PLAIN),
            payload=_payload(it["payload"]),
        )

    return read


def _payload(at: Cursor) -> str | None:
    """Canonical JSON; null where there is none."""
    if (value := at.any()) is None:
        return None
    try:
        text = canonical(value)
    except NotCanonical as wrong:
        at.refuse(f"this cannot be the payload of a job: {wrong.message}", allowed=("a JSON value",))
        return None
    if len(text) > PAYLOAD_MOST_BYTES:
        at.refuse(f"the payload has {len(text)} bytes", allowed=(f"at most {PAYLOAD_MOST_BYTES} bytes",))
    return text.decode()


def _priority(at: Cursor, default: P) -> Priority | P:
    return PRIORITIES.get(among(at, PRIORITIES), default)


def among(at: Cursor, allowed: Collection[str]) -> str:
    """One of these words, which are data and not an enumeration."""
    value = at.any()
    if isinstance(value, str) and value in allowed:
        return value
    if at.given:
        hint = suggestion(value, tuple(allowed)) if isinstance(value, str) else ""
        at.refuse(f"{shown(value)} is not among the words{hint}", code="invalid_enum", allowed=tuple(allowed))
    return ""


def _webhook(at: Cursor) -> str | None:
    if not at.given:
        return None
    it = at.object(optional=("webhook",))
    return it["webhook"].unless_null().parsed(_address, stand_in="", default=None)


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits or not text.isascii() or not text.isprintable() or " " in text:
        raise InputRefused("the webhook is not a URL; write https://host/path")
    return text


def _cron(text: str) -> str:
    return Cron.parse(text).expression


def _zone(text: str) -> str:
    return zone_of(text).name
