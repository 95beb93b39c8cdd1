"""Faults by path, before their lines are known; all places are looked up together."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from pendula.documents.faults import DocumentRefused, Fault, presentable
from pendula.documents.places import Place, Spot, path_text
from pendula.kernel.canonical import Json

Locate: TypeAlias = Callable[[Sequence[Spot]], list[Place]]


class Finding(Struct, frozen=True):
    """A fault without its line and column."""

    spot: Spot
    code: str
    message: str
    value: Json | UnsetType = UNSET
    allowed: tuple[str, ...] = ()

    def at(self, place: Place) -> Fault:
        return Fault(
            code=self.code,
            path=path_text(self.spot.path),
            line=place.line,
            column=place.column,
            value=presentable(self.value),
            message=self.message,
            allowed=self.allowed,
        )


class Findings:
    """The findings of one reading; keeps the first `most` and counts the rest."""

    __slots__ = ("kept", "more", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: list[Finding] = []
        self.more = 0

    def __len__(self) -> int:
        return len(self.kept) + self.more

    def add(self, finding: Finding) -> None:
        if self.full:
            self.more += 1
        else:
            self.kept.append(finding)

    @property
    def full(self) -> bool:
        return len(self.kept) >= self.most


def refusals(groups: Iterable[Findings], locate: Locate, source_name: str) -> list[DocumentRefused]:
    """One refusal per group of findings; the text is read once for all of them."""
    groups = list(groups)
    places = iter(locate([finding.spot for group in groups for finding in group.kept]))
    return [
        DocumentRefused([finding.at(next(places)) for finding in group.kept], source_name, group.more)
        for group in groups
    ]
