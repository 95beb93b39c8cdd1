"""Operator actions on a running fleet: limits, roles, confirmations, and the inbox that answers each once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum

from msgspec import UNSET, Struct, structs

from pendula.fleet.contracts import AnchorPlace, OperatorAction, OperatorAnswer
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.model import CONTRACT_VERSION, NAME_BYTES
from pendula.fleet.sentences import done_sentence, sentence_of
from pendula.fleet.tick.orders import AppliedOrder, Order, OrderKind, check_closable, check_occupied, check_release
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.records import Record
from pendula.fleet.units import FARTHEST_M, micro
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import Refusal
from pendula.kernel.wording import shown

# Limits of an operator action, checked by HTTP, the manager of a live fleet and the reader of scenarios.
# They are needed because the journal stores each action in full, and snapshots store it with its answer.

# No edge is longer than a map may be wide.
LONGEST_EDGE_M = FARTHEST_M
# The key of an edge is made of the names of two nodes.
MOST_KEY_BYTES = 2 * NAME_BYTES + 2
MOST_REASON = 500
MOST_REASON_BYTES = 4 * MOST_REASON
# More than a truck holds.
MOST_RESOURCES = 256
MOST_RESOURCES_BYTES = 16 * 1024
_IDS = ("actionId", "operatorId", "type", "robotId", "taskId", "confirmationOf")


def exceeded_limit(action: OperatorAction) -> str | None:
    """A sentence about the first exceeded limit; None if there is none."""
    return next(_excesses(action), None)


def _excesses(action: OperatorAction) -> Iterator[str]:
    for member in _IDS:
        yield from _too_long(member, getattr(action, member), NAME_BYTES)
    yield from _too_long("reason", action.reason, MOST_REASON_BYTES)
    if action.anchor is not UNSET:
        yield from _too_long("edgeKey", action.anchor.edgeKey, MOST_KEY_BYTES)
        nowhere = anchor_problem(action.anchor)
        yield from () if nowhere is None else (nowhere,)
    if action.resources is not UNSET:
        excess = too_many(action.resources)
        yield from () if excess is None else (excess,)


def _too_long(member: str, text: object, most: int) -> Iterator[str]:
    size = bytes_of(text) if isinstance(text, str) else 0
    if size > most:
        yield f"{member} has {size} bytes; at most {most}"


def too_many(resources: Sequence[str]) -> str | None:
    """A sentence if there are too many resources, or too long ones."""
    if len(resources) > MOST_RESOURCES:
        return f"resources has {len(resources)} entries; at most {MOST_RESOURCES}"
    size = sum(map(bytes_of, resources))
    if size > MOST_RESOURCES_BYTES:
        return f"resources has {size} bytes together; at most {MOST_RESOURCES_BYTES}"
    return None


def anchor_problem(place: AnchorPlace) -> str | None:
    """A sentence if no edge of any map can have this position."""
    s_m: object = place.sM
    # Programs may pass NaN, which compares with nothing, or text.
    if isinstance(s_m, bool) or not isinstance(s_m, Decimal | int):
        return f"sM is {shown(s_m)}; it must be a number"
    if not Decimal(s_m).is_finite() or not 0 <= s_m <= LONGEST_EDGE_M:
        return f"sM is {shown(s_m)}; it must be a number of metres from 0 to {LONGEST_EDGE_M}"
    return None


def bytes_of(text: str) -> int:
    """The encoded length of a text; a lone surrogate counts as a replacement character."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


# The actions of the contract: required members, role, and the order for traffic.
# Nothing about trucks is decided here: traffic applies the orders and reports their results.


class ActionType(StrEnum):
    PAUSE_ROBOT = "PAUSE_ROBOT"
    RESUME_ROBOT = "RESUME_ROBOT"
    PAUSE_FLEET = "PAUSE_FLEET"
    RESUME_FLEET = "RESUME_FLEET"
    CLEAR_FAULT = "CLEAR_FAULT"
    RELOCATE = "RELOCATE"
    DECLARE_ABSENT = "DECLARE_ABSENT"
    FORCE_RELEASE = "FORCE_RELEASE"
    REMOVE_ROBOT = "REMOVE_ROBOT"
    CLOSE_RESOURCE = "CLOSE_RESOURCE"
    OPEN_RESOURCE = "OPEN_RESOURCE"
    CANCEL_TASK = "CANCEL_TASK"
    WITHDRAW_TASK = "WITHDRAW_TASK"
    HOLD_TASK = "HOLD_TASK"
    RESUME_TASK = "RESUME_TASK"


class Role(StrEnum):
    """The roles of operators; each includes the one before."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


# Actions on tasks; traffic does not see them.
ABOUT_TASKS = frozenset(
    {ActionType.CANCEL_TASK, ActionType.WITHDRAW_TASK, ActionType.HOLD_TASK, ActionType.RESUME_TASK}
)
# The order for traffic of every other action.
ORDERS: Mapping[ActionType, OrderKind] = {
    ActionType.PAUSE_ROBOT: OrderKind.PAUSE,
    ActionType.RESUME_ROBOT: OrderKind.RESUME,
    ActionType.PAUSE_FLEET: OrderKind.PAUSE,
    ActionType.RESUME_FLEET: OrderKind.RESUME,
    ActionType.CLEAR_FAULT: OrderKind.CLEAR,
    ActionType.RELOCATE: OrderKind.RELOCATE,
    ActionType.DECLARE_ABSENT: OrderKind.ABSENT,
    ActionType.FORCE_RELEASE: OrderKind.FORCE_RELEASE,
    ActionType.REMOVE_ROBOT: OrderKind.REMOVE,
    ActionType.CLOSE_RESOURCE: OrderKind.CLOSE,
    ActionType.OPEN_RESOURCE: OrderKind.OPEN,
}
OF_FLEET = frozenset({ActionType.PAUSE_FLEET, ActionType.RESUME_FLEET})
OF_MAP = frozenset({ActionType.CLOSE_RESOURCE, ActionType.OPEN_RESOURCE})
# Required members besides operator and reason.
_OF_ROBOT = ("robotId",)
NEEDS: Mapping[ActionType, tuple[str, ...]] = {
    **dict.fromkeys(sorted(OF_FLEET), ()),
    **dict.fromkeys(sorted(OF_MAP), ("resources",)),
    ActionType.RELOCATE: ("robotId", "anchor"),
    ActionType.FORCE_RELEASE: ("robotId", "resources"),
    **dict.fromkeys(sorted(ABOUT_TASKS), ("taskId",)),
}


def refused(action: OperatorAction, site: CompiledMap) -> Refusal | None:
    """The refusal of an invalid action."""
    if action.type not in set(ActionType):
        return Refusal("UNKNOWN_ACTION", {"type": action.type, "allowed": [*ActionType]})
    if action.role not in (UNSET, Role.OPERATOR, Role.ADMIN):
        return Refusal("ROLE_TOO_LOW", {"operatorId": action.operatorId})
    if not action.operatorId.strip() or not action.reason.strip():
        return Refusal("OPERATOR_AND_REASON_NEEDED")
    kind = ActionType(action.type)
    missing = [one for one in NEEDS.get(kind, _OF_ROBOT) if getattr(action, one) in (UNSET, "", ())]
    if missing:
        return Refusal("ACTION_INCOMPLETE", {"type": kind.value, "missing": [*missing]})
    if kind in OF_FLEET and action.robotId is not UNSET:
        return _contradicts(kind, "robotId", kind.replace("_FLEET", "_ROBOT"))
    if kind in OF_MAP and action.robotId is not UNSET:
        return _contradicts(kind, "robotId")
    if action.force is True and kind is not ActionType.CLOSE_RESOURCE:
        return _contradicts(kind, "force")
    if action.resources is not UNSET and "resources" not in NEEDS.get(kind, _OF_ROBOT):
        return _contradicts(kind, "resources", ActionType.FORCE_RELEASE.value)
    if kind in OF_MAP and action.resources is not UNSET:
        unknown = next((no for name in action.resources if (no := check_closable(site, name)) is not None), None)
        if unknown is not None:
            return unknown
    if action.anchor is UNSET:
        return None
    if action.anchor.edgeKey not in site.edge_number:
        return Refusal("UNKNOWN_PLACE", {"edgeKey": action.anchor.edgeKey})
    if anchor_problem(action.anchor) is not None:
        return Refusal("UNKNOWN_PLACE", {"sM": shown(action.anchor.sM), "allowedM": LONGEST_EDGE_M})
    return None


def _contradicts(kind: ActionType, member: str, instead: str | None = None) -> Refusal:
    return Refusal("ACTION_CONTRADICTS", {"type": kind.value, "member": member, "instead": instead})


def order_of(action: OperatorAction, site: CompiledMap) -> Order:
    """The order for traffic of a valid action that is not about a task."""
    anchor = action.anchor
    return Order(
        order_id=action.actionId,
        kind=ORDERS[ActionType(action.type)],
        robot_id=None if action.robotId is UNSET else action.robotId,
        at_ms=action.ts,
        edge=None if anchor is UNSET else site.edge_number[anchor.edgeKey],
        s_um=0 if anchor is UNSET else micro(anchor.sM),
        resources=() if action.resources is UNSET else action.resources,
        operator=action.operatorId,
        reason=action.reason,
        force=action.force is True,
    )


# Confirmations: an action that frees the place of a truck must be sent twice, stating that the truck is secured.
# The second action names the first, is otherwise equal, and comes within a minute.

WITHIN_MS = 60_000
# Unconfirmed actions; they are in every snapshot of the fleet.
MOST_DRAFTS = 100
CONFIRMATION_NEEDED = "CONFIRMATION_NEEDED"
TWICE = frozenset({ActionType.FORCE_RELEASE, ActionType.REMOVE_ROBOT})


class Draft(Struct, frozen=True, array_like=True):
    """An unconfirmed action."""

    action_id: str
    at_ms: int
    about: tuple[str, str, tuple[str, ...]]


def about(action: OperatorAction) -> tuple[str, str, tuple[str, ...]]:
    """What both actions must have in common."""
    robot = "" if action.robotId is UNSET else action.robotId
    return action.type, robot, () if action.resources is UNSET else tuple(sorted(action.resources))


def unconfirmed(action: OperatorAction, drafts: dict[str, Draft], now_ms: int) -> Refusal | None:
    """The refusal of an unconfirmed action; its draft is kept until the second one takes effect."""
    if action.physicallySecured is not True:
        return Refusal("NOT_SECURED", {"type": action.type})
    if action.confirmationOf is UNSET:
        drafts[action.actionId] = Draft(action.actionId, now_ms, about(action))
        if len(drafts) > MOST_DRAFTS:
            del drafts[next(iter(drafts))]
        return Refusal(CONFIRMATION_NEEDED, {"actionId": action.actionId, "withinS": WITHIN_MS // 1_000})
    draft = drafts.get(action.confirmationOf)
    if draft is None:
        return Refusal("CONFIRMATION_UNKNOWN", {"actionId": action.confirmationOf})
    if is_late(draft, now_ms):
        return Refusal("CONFIRMATION_LATE", {"actionId": draft.action_id, "withinS": WITHIN_MS // 1_000})
    if draft.about != about(action):
        return Refusal("CONFIRMATION_DIFFERS", {"actionId": draft.action_id})
    return None


def is_late(draft: Draft, now_ms: int) -> bool:
    return now_ms - draft.at_ms > WITHIN_MS


# Operator actions: each takes effect once, and is answered as often as it is sent.
# An action with a known id gets the stored answer, except a draft that has expired. The result of an order is known
# after the tick.

# Limits of the stored answers, which are in every snapshot of the fleet. An action that is repeated after its answer
# was dropped is a new action.
MOST_KEPT = 1_000
MOST_KEPT_BYTES = 1024 * 1024
# The size of an action and its answer without their texts.
_FORM_BYTES = 512


class ActionResult(Struct, frozen=True):
    """The result of an action. `facts` say why it was rejected, or what an accepted one is about."""

    actionId: str
    code: str | None
    facts: dict[str, Json]
    appliedTick: int | None = None
    freedResources: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        return self.code is None

    @property
    def message(self) -> str:
        return done_sentence(self.facts) if self.code is None else sentence_of(self.code, self.facts)

    @property
    def answer(self) -> OperatorAnswer:
        """In the form of the contract."""
        return OperatorAnswer(
            CONTRACT_VERSION,
            self.actionId,
            accepted=self.accepted,
            code=self.code,
            message=self.message,
            appliedTick=self.appliedTick,
            freedResources=self.freedResources,
        )


class InboxStep(Struct, frozen=True):
    """The outcome of actions before the tick: orders for traffic, actions on tasks, and final answers."""

    orders: tuple[Order, ...] = ()
    tasks: tuple[OperatorAction, ...] = ()
    answers: tuple[ActionResult, ...] = ()


class SavedInbox(Struct, frozen=True):
    answers: tuple[tuple[OperatorAction, ActionResult], ...] = ()
    drafts: tuple[Draft, ...] = ()


class ActionInbox:
    def __init__(self, site: CompiledMap, params: TrafficParams) -> None:
        self._site = site
        self._params = params
        self._answered: dict[str, tuple[OperatorAction, ActionResult]] = {}
        self._kept_bytes = 0
        self._drafts: dict[str, Draft] = {}
        # Actions whose orders are in the current tick.
        self._waiting: dict[str, OperatorAction] = {}
        # Their drafts, restored if the tick fails.
        self._spent: dict[str, Draft] = {}

    def take(self, actions: Iterable[OperatorAction], now_ms: int, trucks: Sequence[Record]) -> InboxStep:
        """Take actions in the order of their times and ids."""
        self._drafts = {name: draft for name, draft in self._drafts.items() if now_ms - draft.at_ms <= 2 * WITHIN_MS}
        records = {record.robot_id: record for record in trucks}
        orders: list[Order] = []
        tasks: list[OperatorAction] = []
        answers: list[ActionResult] = []
        for action in sorted(actions, key=lambda action: (action.ts, action.actionId)):
            known = self._known(action, now_ms)
            refusal = None if known is not None else self._refusal(action, now_ms, records)
            if known is not None:
                answers.append(known)
            elif refusal is not None:
                answers.append(self._store(action, _rejected(action, refusal)))
            elif action.type in ABOUT_TASKS:
                self._waiting[action.actionId] = action
                tasks.append(action)
            else:
                self._waiting[action.actionId] = action
                if isinstance(action.confirmationOf, str) and action.type in TWICE:
                    self._spent[action.actionId] = self._drafts.pop(action.confirmationOf)
                orders.append(order_of(action, self._site))
        return InboxStep(tuple(orders), tuple(tasks), tuple(answers))

    def settle(self, applied: Iterable[AppliedOrder], tick: int) -> tuple[ActionResult, ...]:
        """Answer the actions of a tick. An order without a result was in a failed tick: it had no effect and may be
        sent again, and its draft is restored."""
        answers = []
        for order in applied:
            action = self._waiting.pop(order.order_id, None)
            if action is not None:
                answers.append(self._store(action, _settled(action, order, tick)))
        for action in self._waiting.values():
            answers.append(_rejected(action, Refusal("TICK_FAILED")))
        self._drafts |= {draft.action_id: draft for name, draft in self._spent.items() if name in self._waiting}
        self._waiting, self._spent = {}, {}
        return tuple(answers)

    def saved(self) -> SavedInbox:
        return SavedInbox(tuple(self._answered.values()), tuple(self._drafts.values()))

    def restore(self, saved: SavedInbox) -> None:
        self._answered = {action.actionId: (action, answer) for action, answer in saved.answers}
        self._kept_bytes = sum(_bytes(*entry) for entry in self._answered.values())
        self._drafts = {draft.action_id: draft for draft in saved.drafts}

    def _known(self, action: OperatorAction, now_ms: int) -> ActionResult | None:
        """The stored answer of a repeated action; None for a new one."""
        if action.actionId in self._waiting:
            return _taken(action, same_tick=True)
        before = self._answered.get(action.actionId)
        if before is None:
            return None
        if is_same(before[0], action):
            return None if self._has_expired(before[1], now_ms) else before[1]
        return _taken(action, same_tick=False)

    def _has_expired(self, answer: ActionResult, now_ms: int) -> bool:
        """Whether the answer asks for a confirmation whose time is over."""
        draft = self._drafts.get(answer.actionId)
        return answer.code == CONFIRMATION_NEEDED and (draft is None or is_late(draft, now_ms))

    def _refusal(self, action: OperatorAction, now_ms: int, records: dict[str, Record]) -> Refusal | None:
        refusal = refused(action, self._site)
        if refusal is not None or action.type not in TWICE:
            return refusal
        assert isinstance(action.robotId, str)
        record = records.get(action.robotId)
        if record is None:
            return Refusal("UNKNOWN_ROBOT", {"robotId": action.robotId})
        named = () if action.resources is UNSET or action.type != ActionType.FORCE_RELEASE else action.resources
        refusal = check_release(record, now_ms, self._params) or check_occupied(record, named, self._params)
        return refusal or unconfirmed(action, self._drafts, now_ms)

    def _store(self, action: OperatorAction, answer: ActionResult) -> ActionResult:
        before = self._answered.get(action.actionId)
        self._kept_bytes += _bytes(action, answer) - (0 if before is None else _bytes(*before))
        self._answered[action.actionId] = (action, answer)
        while len(self._answered) > MOST_KEPT or self._kept_bytes > MOST_KEPT_BYTES:
            self._kept_bytes -= _bytes(*self._answered.pop(next(iter(self._answered))))
        return answer


def is_same(one: OperatorAction, other: OperatorAction) -> bool:
    """Whether two actions are equal except for their times, as in a repeated request."""
    return structs.replace(one, ts=other.ts) == other


def _bytes(action: OperatorAction, answer: ActionResult) -> int:
    """The approximate stored size of an action and its answer."""
    texts = (*structs.astuple(action), answer.actionId, answer.code, *answer.freedResources)
    named = () if action.resources is UNSET else action.resources
    size = sum(bytes_of(text) for text in (*texts, *named) if isinstance(text, str))
    return _FORM_BYTES + len(encode(answer.facts)) + size


def _rejected(action: OperatorAction, refusal: Refusal) -> ActionResult:
    return ActionResult(action.actionId, refusal.code, refusal.facts)


def _taken(action: OperatorAction, *, same_tick: bool) -> ActionResult:
    return ActionResult(action.actionId, "ACTION_ID_TAKEN", {"actionId": action.actionId, "sameTick": same_tick})


def _settled(action: OperatorAction, applied: AppliedOrder, tick: int) -> ActionResult:
    if applied.code is not None:
        return ActionResult(action.actionId, applied.code, applied.facts)
    facts: dict[str, Json] = {"type": action.type}
    if action.robotId is not UNSET:
        facts["robotId"] = action.robotId
    if action.taskId is not UNSET:
        facts["taskId"] = action.taskId
    if action.resources is not UNSET:
        facts["resources"] = [*action.resources]
    return ActionResult(action.actionId, None, facts, tick, applied.freed)
