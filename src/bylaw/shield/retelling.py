"""Merges unwritten local events with log entries from another worker, which may come from the same history.

Each message counts once. If two workers report a confirmation, it is still one confirmation.
"""

from collections.abc import Sequence

from bylaw.engine.conversation import Mutation
from bylaw.engine.told_again import Word, words_of
from bylaw.trace.event import Event, Message


def told_once(unwritten: Sequence[Mutation], news: Sequence[Event]) -> list[Mutation]:
    """Return the mutations without the messages at the start of `news`.

    If `news` contains other messages, the order is unknown. Everything that depends on messages is then undecided.
    """
    known = words_of(news)
    left, place, end = list[Mutation](), 0, 0
    is_same = True
    for mutation in unwritten:
        said = _said(mutation)
        if known and said and mutation.kind != "begin_turn":
            end = len(left) + 1
        if is_same and said and place < len(known):
            is_same = known[place : place + len(said)] == said
            place += len(said) if is_same else 0
            if is_same and mutation.kind in ("user", "agent"):
                end = len(left)
                continue
        left.append(mutation)
    if place < len(known) and any(map(_said, unwritten)):
        left.insert(end, Mutation("unheard"))
    return left


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
