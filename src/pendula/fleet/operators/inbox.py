"""Operator actions: each takes effect once, and is answered as often as it is sent.

An action with a known id gets the stored answer, except a draft that has expired. The result of an order is known after
the tick.
"""

from collections.abc import Iterable, Sequence

from msgspec import UNSET, Struct, structs

from pendula.fleet.contracts.traffic import OperatorAction, OperatorAnswer
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.health.orders import AppliedOrder, Order, check_occupied, check_release
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.operators.actions import ABOUT_TASKS, ActionType, order_of, refused
from pendula.fleet.operators.confirmation import CONFIRMATION_NEEDED, TWICE, WITHIN_MS, Draft, is_late, unconfirmed
from pendula.fleet.operators.measure import bytes_of
from pendula.fleet.sentences import done_sentence, sentence_of
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.kernel.canonical import Json, encode
from pendula.kernel.engine import Refusal

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
