"""Where actions of people come in: each is looked at once, and answered as often as it is asked.

An action that came before under the same id is not taken again; but a first word that waits no longer asks anew.
What came of an order is known after the tick.
"""

from collections.abc import Iterable, Sequence

from msgspec import UNSET, Struct, structs

from pendula.fleet.contracts.traffic import OperatorAction, OperatorAnswer
from pendula.fleet.driving.params import TrafficParams
from pendula.fleet.driving.records import Record
from pendula.fleet.health.orders import AppliedOrder, No, Order, not_to_be_freed, stood_upon
from pendula.fleet.model import CONTRACT_VERSION
from pendula.fleet.operators.actions import ABOUT_TASKS, ActionType, order_of, refused
from pendula.fleet.operators.confirmation import CONFIRMATION_NEEDED, TWICE, WITHIN_MS, Draft, is_late, unconfirmed
from pendula.fleet.operators.measure import bytes_of
from pendula.fleet.site.compiled_map import CompiledMap

# So many answers are kept, and no more than so many bytes of them, for they are in every snapshot of the fleet: whoever
# asks again later acts anew.
MOST_KEPT = 1_000
MOST_KEPT_BYTES = 1024 * 1024
# Of an action and its answer beside their texts.
_FORM_BYTES = 512
_DONE = {
    ActionType.PAUSE_ROBOT: "{robot} is paused",
    ActionType.RESUME_ROBOT: "{robot} may go on",
    ActionType.PAUSE_FLEET: "Every truck is paused",
    ActionType.RESUME_FLEET: "Every truck may go on",
    ActionType.CLEAR_FAULT: "The fault of {robot} is cleared",
    ActionType.RELOCATE: "{robot} goes on from there once its poses have been steady",
    ActionType.DECLARE_ABSENT: "{robot} is not waited for",
    ActionType.FORCE_RELEASE: "What {robot} held there is free",
    ActionType.REMOVE_ROBOT: "{robot} is out of the hall, and all that it held is free",
    ActionType.CLOSE_RESOURCE: "Closed: {places}",
    ActionType.OPEN_RESOURCE: "Open: {places}",
    ActionType.CANCEL_TASK: "Task {task} is cancelled",
    ActionType.WITHDRAW_TASK: "Task {task} is taken from its truck, and the next may have it",
    ActionType.HOLD_TASK: "Nobody begins task {task} until it is resumed",
    ActionType.RESUME_TASK: "Task {task} goes on",
}


class DeskStep(Struct, frozen=True):
    """What actions come to before the tick: orders for traffic, what is wanted of tasks, and answers that are final."""

    orders: tuple[Order, ...] = ()
    tasks: tuple[OperatorAction, ...] = ()
    answers: tuple[OperatorAnswer, ...] = ()


class SavedDesk(Struct, frozen=True):
    answers: tuple[tuple[OperatorAction, OperatorAnswer], ...] = ()
    drafts: tuple[Draft, ...] = ()


class Desk:
    def __init__(self, site: CompiledMap, params: TrafficParams) -> None:
        self._site = site
        self._params = params
        self._answered: dict[str, tuple[OperatorAction, OperatorAnswer]] = {}
        self._kept_bytes = 0
        self._drafts: dict[str, Draft] = {}
        # Actions whose orders are on their way through a tick.
        self._waiting: dict[str, OperatorAction] = {}
        # The first words of those, which count again if the tick fails.
        self._spent: dict[str, Draft] = {}

    def take(self, actions: Iterable[OperatorAction], now_ms: int, trucks: Sequence[Record]) -> DeskStep:
        """Looks at actions in the order of their times and ids."""
        self._drafts = {name: one for name, one in self._drafts.items() if now_ms - one.at_ms <= 2 * WITHIN_MS}
        records = {one.robot_id: one for one in trucks}
        orders: list[Order] = []
        tasks: list[OperatorAction] = []
        answers: list[OperatorAnswer] = []
        for action in sorted(actions, key=lambda one: (one.ts, one.actionId)):
            known = self._known(action, now_ms)
            no = None if known is not None else self._no(action, now_ms, records)
            if known is not None:
                answers.append(known)
            elif no is not None:
                answers.append(self._keep(action, _answer(action, no.code, no.message)))
            elif action.type in ABOUT_TASKS:
                self._waiting[action.actionId] = action
                tasks.append(action)
            else:
                self._waiting[action.actionId] = action
                if isinstance(action.confirmationOf, str) and action.type in TWICE:
                    self._spent[action.actionId] = self._drafts.pop(action.confirmationOf)
                orders.append(order_of(action, self._site))
        return DeskStep(tuple(orders), tuple(tasks), tuple(answers))

    def settle(self, applied: Iterable[AppliedOrder], tick: int) -> tuple[OperatorAnswer, ...]:
        """What came of orders, and of what was wanted of tasks. An order of which nothing is heard was in a tick
        that failed: nothing was done, and it may be asked for again; what was said first counts as before."""
        answers = []
        for one in applied:
            action = self._waiting.pop(one.order_id, None)
            if action is not None:
                answers.append(self._keep(action, _settled(action, one, tick)))
        for action in self._waiting.values():
            answers.append(_answer(action, "TICK_FAILED", "The tick failed: nothing was done"))
        self._drafts |= {one.action_id: one for name, one in self._spent.items() if name in self._waiting}
        self._waiting, self._spent = {}, {}
        return tuple(answers)

    def saved(self) -> SavedDesk:
        return SavedDesk(tuple(self._answered.values()), tuple(self._drafts.values()))

    def restore(self, saved: SavedDesk) -> None:
        self._answered = {action.actionId: (action, answer) for action, answer in saved.answers}
        self._kept_bytes = sum(_bytes(*one) for one in self._answered.values())
        self._drafts = {one.action_id: one for one in saved.drafts}

    def _known(self, action: OperatorAction, now_ms: int) -> OperatorAnswer | None:
        """The answer to an action that came before; None for a new one."""
        if action.actionId in self._waiting:
            return _answer(action, "ACTION_ID_TAKEN", f"{action.actionId!r} came twice in one tick")
        before = self._answered.get(action.actionId)
        if before is None:
            return None
        if is_same(before[0], action):
            return None if self._asks_anew(before[1], now_ms) else before[1]
        return _answer(action, "ACTION_ID_TAKEN", f"{action.actionId!r} was another action")

    def _asks_anew(self, answer: OperatorAnswer, now_ms: int) -> bool:
        """Whether the answer to a first word, that it has to be confirmed, is true no longer."""
        draft = self._drafts.get(answer.actionId)
        return answer.code == CONFIRMATION_NEEDED and (draft is None or is_late(draft, now_ms))

    def _no(self, action: OperatorAction, now_ms: int, records: dict[str, Record]) -> No | None:
        no = refused(action, self._site)
        if no is not None or action.type not in TWICE:
            return no
        assert isinstance(action.robotId, str)
        record = records.get(action.robotId)
        if record is None:
            return No("UNKNOWN_ROBOT", f"There is no truck {action.robotId!r}")
        named = () if action.resources is UNSET or action.type != ActionType.FORCE_RELEASE else action.resources
        no = not_to_be_freed(record, now_ms, self._params) or stood_upon(record, named, self._params)
        return no or unconfirmed(action, self._drafts, now_ms)

    def _keep(self, action: OperatorAction, answer: OperatorAnswer) -> OperatorAnswer:
        before = self._answered.get(action.actionId)
        self._kept_bytes += _bytes(action, answer) - (0 if before is None else _bytes(*before))
        self._answered[action.actionId] = (action, answer)
        while len(self._answered) > MOST_KEPT or self._kept_bytes > MOST_KEPT_BYTES:
            self._kept_bytes -= _bytes(*self._answered.pop(next(iter(self._answered))))
        return answer


def is_same(one: OperatorAction, other: OperatorAction) -> bool:
    """Whether two are one action: the time may differ, of a request that was sent again."""
    return structs.replace(one, ts=other.ts) == other


def _bytes(action: OperatorAction, answer: OperatorAnswer) -> int:
    """How much room an action and its answer take where they are kept."""
    said = (*structs.astuple(action), *structs.astuple(answer), *answer.freedResources)
    named = () if action.resources is UNSET else action.resources
    return _FORM_BYTES + sum(bytes_of(one) for one in (*said, *named) if isinstance(one, str))


def _answer(action: OperatorAction, code: str | None, message: str) -> OperatorAnswer:
    return OperatorAnswer(
        CONTRACT_VERSION, action.actionId, code is None, code, message, appliedTick=None, freedResources=()
    )


def _settled(action: OperatorAction, applied: AppliedOrder, tick: int) -> OperatorAnswer:
    if applied.code is not None:
        return _answer(action, applied.code, applied.message)
    places = "" if action.resources is UNSET else ", ".join(action.resources)
    text = _DONE[ActionType(action.type)].format(robot=action.robotId, task=action.taskId, places=places)
    return structs.replace(_answer(action, None, text), appliedTick=tick, freedResources=applied.freed)
