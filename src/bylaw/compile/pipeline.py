"""All stages, one after the other: run until nothing is left to ask."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from bylaw.compile.desk import Desk
from bylaw.compile.extract import Extraction, cover, extract
from bylaw.compile.sort import Sorted, sort
from bylaw.compile.things import Things, describe
from bylaw.compile.tools import Card
from bylaw.policy.document import Document
from bylaw.trace import Trajectory


class Source(Struct, frozen=True):
    """What a pack is made of."""

    document: Document
    title: str
    cards: Mapping[str, Card]
    trajectories: Sequence[Trajectory] = ()


class Work(Struct):
    """What the stages have made so far; None where a stage has yet to end."""

    things: Things | None = None
    first: Extraction | None = None
    second: Extraction | None = None
    sorted: dict[str, Sorted] | None = None


def run(desk: Desk, source: Source) -> Work:
    """Run every stage as far as the answers go; what is missing is then wanted at the desk."""
    work = Work()
    work.things = describe(desk, source.cards, source.trajectories)
    work.first = extract(desk, source.document, source.title)
    if work.first is None:
        return work
    early = sort(desk, work.first.drafts, source.cards)
    work.second = cover(desk, source.document, source.title, work.first)
    late = sort(desk, work.second.drafts, source.cards) if work.second is not None else None
    if early is not None and late is not None:
        work.sorted = early | late
    return work
