"""The theorems, checked the slow and obvious way over true events. Shares no code with Bylaw."""

from collections.abc import Callable, Sequence

from bylaw_lab.theorems.truth import (
    Allowed,
    CallKey,
    HandedOver,
    Issued,
    Pressed,
    Ran,
    Said,
    True_,
    may_be_one,
)

CARD_LIFETIME = 900.0
"""Seconds for which a card is valid, in every pack of the generator."""
SENTENCE_LIFETIME = 7200.0


def rejection(events: Sequence[True_], at: int) -> dict[str, str]:
    """By theorem, why the allowed call at this place is not permitted; empty if it is."""
    allowed = events[at]
    assert isinstance(allowed, Allowed)
    before = events[:at]
    return {name: why for name in allowed.theorems if (why := THEOREMS[name](before, allowed))}


def _consent_card(before: Sequence[True_], allowed: Allowed) -> str:
    return _consent(before, allowed, sentences=False)


def _consent_told(before: Sequence[True_], allowed: Allowed) -> str:
    return _consent(before, allowed, sentences=True)


def _consent(before: Sequence[True_], allowed: Allowed, *, sentences: bool) -> str:
    """Some yes of the user must permit the call. The reason of the last candidate is returned."""
    why = "the user never said yes to this exact call"
    for place in range(len(before) - 1, -1, -1):
        event = before[place]
        if isinstance(event, HandedOver):
            break
        is_yes = _is_yes_in_words(before, place, allowed, sentences=sentences) or _is_press(before, place, allowed)
        if not is_yes:
            continue
        fault = _why_not(before, place, allowed)
        if not fault:
            return ""
        why = fault
    return why


def _is_yes_in_words(before: Sequence[True_], place: int, allowed: Allowed, *, sentences: bool) -> bool:
    """Whether the user said yes here to a message that showed this exact call."""
    said = before[place]
    if not isinstance(said, Said) or said.by != "user" or said.meaning != "yes":
        return False
    asked = _agent_before(before, place)
    return asked is not None and allowed.call in asked.shows and (asked.as_card or sentences)


def _agent_before(before: Sequence[True_], place: int) -> Said | None:
    """The agent's last message before a place."""
    messages = (each for each in reversed(before[:place]) if isinstance(each, Said) and each.by == "agent")
    return next(messages, None)


def _is_press(before: Sequence[True_], place: int, allowed: Allowed) -> bool:
    """Whether the user pressed yes here on a card for this exact call."""
    press = before[place]
    if not isinstance(press, Pressed) or not press.yes or press.call != allowed.call:
        return False
    return any(isinstance(each, Issued) and each.card == press.card for each in before[:place])


def _why_not(before: Sequence[True_], place: int, allowed: Allowed) -> str:
    """Why a yes to this exact call does not permit it; empty if it does."""
    yes = before[place]
    assert isinstance(yes, Said | Pressed)
    if yes.principal != allowed.principal:
        return f"`{yes.principal}` said yes, and the conversation is with `{allowed.principal}`"
    since = place
    if isinstance(yes, Pressed):
        # The press may have been reported late: everything since the user pressed counts.
        since = yes.seen
        if any(isinstance(each, Said) and each.by == "user" and not _is_answer(before, at)
               for at, each in enumerate(before[:place]) if at >= since):  # fmt: skip
            return "the user said something else between the press and its report"
    if allowed.has_times and (fault := _too_old(before, place, allowed)):
        return fault
    for at in range(since, len(before)):
        event = before[at]
        if at == place:
            continue
        if isinstance(event, HandedOver):
            return "another principal has continued the conversation"
        if isinstance(event, Said) and event.by == "user" and not _leaves_standing(before, at, place):
            return f"the user said something else after the yes: {event.text!r}"
        if _declines(before, at, allowed.call):
            return "the user declined this call after the yes"
        if isinstance(event, Ran) and event.outcome != "did not run" and may_be_one(event.call, allowed.call):
            return f"a call that {event.outcome} may have used the yes"
    return ""


def _too_old(before: Sequence[True_], place: int, allowed: Allowed) -> str:
    yes = before[place]
    if isinstance(yes, Pressed):
        issued = [each.at for each in before[:place] if isinstance(each, Issued) and each.card == yes.card]
        return "the card has expired" if allowed.at >= max(issued) + CARD_LIFETIME else ""
    assert isinstance(yes, Said)
    asked = _agent_before(before, place)
    assert asked is not None
    if asked.as_card:
        return "the card has expired" if allowed.at >= asked.at + CARD_LIFETIME else ""
    return "the yes is too old" if allowed.at > yes.at + SENTENCE_LIFETIME else ""


def _is_answer(before: Sequence[True_], at: int) -> bool:
    """Whether the user's message here is a plain yes or no to a message that shows calls."""
    said = before[at]
    assert isinstance(said, Said)
    asked = _agent_before(before, at)
    return said.meaning in ("yes", "no") and asked is not None and bool(asked.shows)


def _leaves_standing(before: Sequence[True_], at: int, yes: int) -> bool:
    """Whether a later message of the user's leaves a yes valid: thanks for nothing new, or an answer to other calls."""
    said = before[at]
    assert isinstance(said, Said)
    if said.meaning == "thanks":
        return not any(isinstance(each, Said) and each.by == "agent" for each in before[yes:at])
    return _is_answer(before, at)


def _declines(before: Sequence[True_], at: int, call: CallKey) -> bool:
    """Whether the user said no here to this call, in any spelling."""
    event = before[at]
    if isinstance(event, Pressed):
        return not event.yes and may_be_one(event.call, call)
    if not isinstance(event, Said) or event.by != "user" or event.meaning != "no":
        return False
    asked = _agent_before(before, at)
    return asked is not None and any(may_be_one(each, call) for each in asked.shows)


THEOREMS: dict[str, Callable[[Sequence[True_], Allowed], str]] = {
    "T1-card": _consent_card,
    "T2-told": _consent_told,
}
