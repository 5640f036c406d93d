"""Merges unwritten local events with another worker's log entries, because both may come from the same history.

Each message counts once. If two workers report the same confirmation, it is still one confirmation. If the other worker
has reported anything that may change the meaning of a message or a look-up, the order of the two is unknown, and
neither counts.
"""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from bylaw.engine.conversation import Mutation
from bylaw.engine.told_again import Word, words_of
from bylaw.trace.event import Call, Event, Message


def without_repetitions(unwritten: Sequence[Mutation], news: Sequence[Event], reads: Collection[str]) -> list[Mutation]:
    """Return the mutations without the messages with which `news` begins. `reads` names the tools that change nothing.

    If `news` contains other messages, answers to cards or writes, their order is unknown. Everything that depends on
    messages is then undecided, and reported look-ups count as having shown nothing.
    """
    known = words_of(news)
    is_overtaken = any(_may_matter(event, reads) for event in news)
    left, place, end = list[Mutation](), 0, 0
    is_same, has_new_words = True, False
    for mutation in unwritten:
        said = _said(mutation)
        if said and mutation.kind != "begin_turn" and (known or is_overtaken):
            end = len(left) + 1
        if is_same and said and place < len(known):
            is_same = known[place : place + len(said)] == said
            place += len(said) if is_same else 0
            if is_same and mutation.kind in ("user", "agent"):
                end = len(left)
                continue
            has_new_words |= not is_same
        else:
            has_new_words |= bool(said)
        if is_overtaken and mutation.kind == "messages":
            mutation = replace(mutation, given={**mutation.given, "late": True})
        left.append(mutation)
    if (place < len(known) and any(map(_said, unwritten))) or (is_overtaken and has_new_words):
        left.insert(end, Mutation("unheard"))
    return left


def _may_matter(event: Event, reads: Collection[str]) -> bool:
    if isinstance(event, Call):
        return not event.refused and event.tool not in reads
    return isinstance(event, Message) and (event.confirmation is not None or event.handover is not None)


def _said(mutation: Mutation) -> list[Word]:
    given = mutation.given
    match mutation.kind:
        case "messages":
            return words_of(given["messages"])
        case "user" if not given.get("whole", True):
            return []
        case "user":
            return words_of([Message("user", given["text"])])
        case "agent" | "begin_turn":
            return words_of([Message("agent", given.get("text", ""))])
        case _:
            return []
