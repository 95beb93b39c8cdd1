"""Attempts of a tick: payments of its plan or an earlier one, and clearings scheduled by the scenario."""

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from pendula.credit.model import Code
from pendula.credit.money import CENT, InvalidAmount, atoms, cents_text
from pendula.credit.planning.planner import Planned
from pendula.credit.state.run_state import RunState
from pendula.credit.state.waiting import Waiting


class Attempt(NamedTuple):
    """One payment to try, with ids and amount as written; `code` is set if it cannot be tried."""

    tick: int
    seq: int
    sender: str
    receiver: str
    equivalent: str
    amount: str
    wanted: int
    planned: Planned | None
    code: Code | None = None

    def planned_tick(self, now: int) -> int | UnsetType:
        """The tick whose plan it belongs to, if that is an earlier one."""
        return UNSET if self.tick == now else self.tick

    def waiting(self) -> Waiting:
        return Waiting(
            tick=self.tick,
            seq=self.seq,
            sender=self.sender,
            receiver=self.receiver,
            equivalent=self.equivalent,
            amount=self.amount,
            wanted=self.wanted,
        )

    def line(self) -> str:
        """Its line in the digest of plans."""
        return f"{self.tick}|{self.seq}|{self.sender}|{self.receiver}|{self.equivalent}|{self.amount}\n"


class DueClearing(NamedTuple):
    """A clearing of one equivalent scheduled by the scenario."""

    equivalent: str


def attempt_of(planned: Planned, tick: int, run: RunState) -> Attempt:
    names = run.network.people.names
    ends = names[planned.sender], names[planned.receiver]
    return Attempt(
        tick,
        planned.seq,
        *ends,
        equivalent=planned.book.code,
        amount=cents_text(planned.cents),
        wanted=planned.wanted,
        planned=planned,
    )


def resolve_payment(run: RunState, waiting: Waiting) -> Attempt:
    """Resolve the ids of a payment against the current network; an impossible payment gets the code of its failure."""
    tick, seq, sender, receiver, equivalent, amount, wanted = (
        waiting.tick,
        waiting.seq,
        waiting.sender,
        waiting.receiver,
        waiting.equivalent,
        waiting.amount,
        waiting.wanted,
    )
    index, ledger = run.network.people.index, run.network.ledgers.get(equivalent)
    cents, code = _cents(amount), None
    planned = None
    if ledger is None:
        code = Code.EQUIVALENT_NOT_FOUND
    elif sender not in index or receiver not in index:
        code = Code.PARTICIPANT_NOT_FOUND
    elif cents is None or sender == receiver:
        code = Code.INVALID_INPUT
    else:
        planned = Planned(seq, ledger.book, index[sender], index[receiver], cents, wanted)
        amount = cents_text(cents)
    return Attempt(
        tick=tick,
        seq=seq,
        sender=sender,
        receiver=receiver,
        equivalent=equivalent,
        amount=amount,
        wanted=wanted,
        planned=planned,
        code=code,
    )


def _cents(amount: str) -> int | None:
    """The amount in cents if it is positive and in whole cents."""
    try:
        value = atoms(amount)
    except InvalidAmount:
        return None
    return value // CENT if value > 0 and value % CENT == 0 else None
