"""Checks the theorems over true events, slowly and plainly. It shares no code with Bylaw."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from bylaw_lab.theorems.truth import (
    Allowed,
    CallKey,
    HandedOver,
    Issued,
    Lifted,
    ModelAnswered,
    Note,
    PersonAnswered,
    PersonAsked,
    Pressed,
    Ran,
    Said,
    Shown,
    Stopped,
    True_,
    may_be_one,
    spelled_alike,
)

CARD_LIFETIME = 900.0
"""The lifetime of a card in every generated pack, in seconds."""
SENTENCE_LIFETIME = 7200.0
_UNKNOWN_FEE = "the fee that the user must be shown was not known"
APPROVAL_LIFETIME = 1800.0
MOST_CREDITS, MOST_GIFTS, MOST_PAYOUTS = 2, 1, 2
SLACK = 60.0
"""The maximum difference between the clocks of the conversation and the log, in seconds."""


def rejection(events: Sequence[True_], at: int) -> dict[str, str]:
    """Return why the allowed call at this position is not permitted, by theorem. Empty if it is permitted."""
    allowed = events[at]
    assert isinstance(allowed, Allowed)
    before = events[:at]
    return {name: why for name in allowed.theorems if (why := THEOREMS[name](before, allowed))}


def _consent_card(before: Sequence[True_], allowed: Allowed) -> str:
    return _consent(before, allowed, sentences=False)


def _consent_told(before: Sequence[True_], allowed: Allowed) -> str:
    return _consent(before, allowed, sentences=True)


def _consent_requested(before: Sequence[True_], allowed: Allowed) -> str:
    """Check consent. Either a yes permits the call, as with `told`, or the model must have confirmed exactly this
    attempt.
    """
    why = _consent(before, allowed, sentences=True)
    if why and why != _UNKNOWN_FEE and _is_settled_by_model(before, allowed):
        return ""
    return why


def _fee(before: Sequence[True_], allowed: Allowed) -> str:
    """Return the last fee of the account that the agent saw, as the call spells it. Empty if a later transfer may have
    changed it.
    """
    to = allowed.call.values["to"]
    for event in reversed(before):
        if isinstance(event, Shown) and event.order == to:
            changed = [at for at, each in enumerate(before) if _may_change_fee(each, to)]
            return "" if changed and event.since <= changed[-1] else str(event.left)
    return ""


def _may_change_fee(event: True_, to: str) -> bool:
    if not isinstance(event, Ran) or event.outcome == "did not run" or event.call.tool != "transfer":
        return False
    return spelled_alike(event.call.values["to"], to)


def _is_settled_by_model(before: Sequence[True_], allowed: Allowed) -> bool:
    """Whether the model was asked after all other events and answered yes for exactly this call."""
    for event in reversed(before):
        if isinstance(event, ModelAnswered):
            if event.call == allowed.call:
                return event.yes is True
        elif not isinstance(event, Note | Issued):
            return False
    return False


def _consent(before: Sequence[True_], allowed: Allowed, *, sentences: bool) -> str:
    """Check that a yes from the user permits the call. If none does, return why the last one does not."""
    fee = _fee(before, allowed) if allowed.shows_fee else ""
    if allowed.shows_fee and not fee:
        return _UNKNOWN_FEE
    why = "the user never said yes to this exact call"
    for place in range(len(before) - 1, -1, -1):
        event = before[place]
        if isinstance(event, HandedOver):
            break
        is_yes = _is_yes_in_words(before, place, allowed, fee, sentences=sentences)
        is_yes = is_yes or _is_press(before, place, allowed, fee)
        if not is_yes:
            continue
        fault = _why_not(before, place, allowed)
        if not fault:
            return ""
        why = fault
    return why


def _is_yes_in_words(before: Sequence[True_], place: int, allowed: Allowed, fee: str, *, sentences: bool) -> bool:
    """Whether the user answered yes here to a message with exactly this call and fee."""
    said = before[place]
    if not isinstance(said, Said) or said.by != "user" or said.meaning != "yes":
        return False
    asked = _agent_before(before, place)
    return asked is not None and asked.puts(allowed.call, fee) and (asked.as_card or sentences)


def _agent_before(before: Sequence[True_], place: int) -> Said | None:
    messages = (each for each in reversed(before[:place]) if isinstance(each, Said) and each.by == "agent")
    return next(messages, None)


def _is_press(before: Sequence[True_], place: int, allowed: Allowed, fee: str) -> bool:
    """Whether the user pressed yes here on a card for exactly this call and fee."""
    press = before[place]
    if not isinstance(press, Pressed) or not press.yes or press.call != allowed.call:
        return False
    issued = (each for each in before[:place] if isinstance(each, Issued) and each.card == press.card)
    return any(each.fee == fee for each in issued)


def _why_not(before: Sequence[True_], place: int, allowed: Allowed) -> str:
    """Return why the user's yes to exactly this call does not permit it. Empty if it does."""
    yes = before[place]
    assert isinstance(yes, Said | Pressed)
    if yes.principal != allowed.principal:
        return f"`{yes.principal}` said yes, and the conversation is with `{allowed.principal}`"
    # A press may be reported late, so all events after the press matter.
    since = yes.seen if isinstance(yes, Pressed) else place
    for at in range(since, place):
        event = before[at]
        if isinstance(event, Said) and event.by == "user" and event.meaning not in ("yes", "thanks"):
            return f"the user said something else between the press and its report: {event.text!r}"
    if allowed.has_times and (fault := _too_old(before, place, allowed)):
        return fault
    for at in range(since, len(before)):
        event = before[at]
        if at == place:
            continue
        if isinstance(event, HandedOver):
            return "another principal has continued the conversation"
        if at > place and isinstance(event, Said) and event.by == "user" and not _leaves_standing(before, at, place):
            return f"the user said something else after the yes: {event.text!r}"
        if _declines(before, at, place, allowed.call):
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
        # A copy of a card is as old as the last card for the call that this principal was shown before it.
        copied = next(at for at, each in enumerate(before) if each is asked)
        handed_over = max((at for at, each in enumerate(before[:copied]) if isinstance(each, HandedOver)), default=0)
        shown = before[handed_over:copied]
        issued = [each.at for each in shown if isinstance(each, Issued) and each.call == allowed.call]
        begins = min(asked.at, max(issued, default=asked.at))
        return "the card has expired" if allowed.at >= begins + CARD_LIFETIME else ""
    return "the yes is too old" if allowed.at > yes.at + SENTENCE_LIFETIME else ""


def _is_answer(before: Sequence[True_], at: int) -> bool:
    """Whether the user's message here is a plain yes or no to a message that shows calls."""
    said = before[at]
    assert isinstance(said, Said)
    asked = _agent_before(before, at)
    return said.meaning in ("yes", "no") and asked is not None and bool(asked.shows)


def _leaves_standing(before: Sequence[True_], at: int, yes: int) -> bool:
    """Whether a yes stays valid after a later user message. It does after thanks without a request, and after an answer
    to other calls.
    """
    said = before[at]
    assert isinstance(said, Said)
    if said.meaning == "thanks":
        # Thanks refer to the answer directly before them.
        earlier = (each for each in reversed(before[yes:at]) if isinstance(each, Said) and each.by != "other")
        return next((each.by == "user" for each in earlier if each.meaning != "thanks"), True)
    return _is_answer(before, at)


def _declines(before: Sequence[True_], at: int, yes: int, call: CallKey) -> bool:
    """Whether the user refused this call here, in any spelling, after confirming it elsewhere."""
    event = before[at]
    if isinstance(event, Pressed):
        return not event.yes and event.seen > yes and may_be_one(event.call, call)
    if not isinstance(event, Said) or event.by != "user" or event.meaning != "no":
        return False
    asked = _agent_before(before, at)
    return asked is not None and any(may_be_one(each, call) for each in asked.shows)


def _requests(before: Sequence[True_], allowed: Allowed) -> str:
    """Check that the user asked for this call, and that no other call has used the request."""
    unused: list[CallKey] = []
    has_asked = False
    for event in before:
        if isinstance(event, HandedOver):
            unused = []
        elif isinstance(event, Said) and event.by == "user":
            unused = [] if event.withdraws else [*unused, *event.requests]
            has_asked = has_asked or any(may_be_one(each, allowed.call) for each in event.requests)
        elif isinstance(event, Ran) and event.outcome != "did not run":
            used = next((each for each in unused if may_be_one(each, event.call)), None)
            if used is not None:
                unused.remove(used)
    if any(may_be_one(each, allowed.call) for each in unused):
        return ""
    return "the request was used or taken back" if has_asked else "the user never asked for this call"


def _limits(before: Sequence[True_], allowed: Allowed) -> str:
    """Check that fewer calls than the limit ran for the customer or account, or that a reviewer approved one more."""
    made = [each for each in before if isinstance(each, Ran) and each.outcome != "did not run"]
    if allowed.call.tool != "gift":
        tool, principal = allowed.call.tool, allowed.principal
        counted = [each for each in made
                   if each.call.tool == tool and spelled_alike(each.principal, principal)]  # fmt: skip
        if len(counted) < (MOST_CREDITS if tool == "credit" else MOST_PAYOUTS):
            return ""
    else:
        to = allowed.call.values["to"]
        counted = [each for each in made if each.call.tool == "gift" and spelled_alike(each.call.values["to"], to)]
        if len(counted) < MOST_GIFTS:
            return ""
    unapproved = _approvals(before, allowed)
    return unapproved and f"{len(counted)} calls may have run within the limit's time, and {unapproved}"


def _approvals(before: Sequence[True_], allowed: Allowed) -> str:
    """Check that a reviewer approved exactly this call with these facts, and that the approval is unused."""
    if allowed.resumes >= 0:
        return _why_not_resumed(before, allowed)
    why = "no person was asked about this exact call"
    for place in range(len(before) - 1, -1, -1):
        asked = before[place]
        if isinstance(asked, HandedOver):
            break
        if isinstance(asked, PersonAsked) and asked.call == allowed.call:
            fault = _why_not_approved(before, asked, allowed)
            if not fault:
                return ""
            why = fault
    return why


def _why_not_resumed(before: Sequence[True_], allowed: Allowed) -> str:
    first = before[allowed.resumes]
    assert isinstance(first, Allowed)
    if any(isinstance(each, Allowed) and each.resumes == allowed.resumes for each in before):
        return "the paused call was resumed before"
    if first.facts != allowed.facts:
        return f"the call was approved on other facts: {first.facts}, not {allowed.facts}"
    noes = [each for each in before[allowed.resumes :] if isinstance(each, PersonAnswered) and not each.yes]
    asked = {each.approval: each.call for each in before if isinstance(each, PersonAsked)}
    if any(may_be_one(asked[each.approval], allowed.call) for each in noes):
        return "a person rejected the call after it was allowed"
    return ""


def _why_not_approved(before: Sequence[True_], asked: PersonAsked, allowed: Allowed) -> str:
    answers = [at for at, each in enumerate(before)
               if isinstance(each, PersonAnswered) and each.approval == asked.approval]  # fmt: skip
    if not answers:
        return "nobody answered"
    answer = before[answers[0]]
    assert isinstance(answer, PersonAnswered)
    if not answer.yes:
        return "a person rejected it"
    if asked.principal != allowed.principal:
        return "it was approved for another principal"
    if asked.chat != allowed.chat:
        return "it was approved in another conversation"
    # An edited history may lack a later look-up.
    if asked.facts != allowed.facts and (allowed.has_times or asked.facts):
        return f"it was approved on other facts: {asked.facts}, not {allowed.facts}"
    if allowed.at >= answer.at + APPROVAL_LIFETIME + SLACK:
        return "the approval has expired"
    for event in before[answers[0] :]:
        mine = (allowed.call, allowed.chat)
        if isinstance(event, Allowed) and (event.call, event.chat) == mine and event.resumes < 0:
            return "the approval was used"
        if isinstance(event, PersonAnswered) and not event.yes:
            rejected = next(each for each in before
                            if isinstance(each, PersonAsked) and each.approval == event.approval)  # fmt: skip
            if rejected.chat == allowed.chat and may_be_one(rejected.call, allowed.call):
                return "a person rejected the call in another spelling later"
    return ""


def _stops(before: Sequence[True_], allowed: Allowed) -> str:
    """Check that no active stop covers the call."""
    lifted = {each.stop for each in before if isinstance(each, Lifted)}
    for event in before:
        if not isinstance(event, Stopped) or event.stop in lifted or allowed.at >= event.until:
            continue
        if event.tool in ("", allowed.call.tool):
            return f"{event.stop} stops {event.tool or 'all writes'}"
    return ""


def _facts(before: Sequence[True_], allowed: Allowed) -> str:
    """Check that the agent saw a record that permits the call, after the last call that may have changed it."""
    order, amount = allowed.call.values["order_id"], Decimal(allowed.call.values["amount"])
    changed = [at for at, each in enumerate(before) if _may_change(each, order)]
    for event in reversed(before):
        if isinstance(event, Shown) and spelled_alike(event.order, order) and event.by == allowed.agent:
            if allowed.fresh_for and allowed.at > event.at + allowed.fresh_for:
                return "the record is too old"
            if changed and event.since <= changed[-1]:
                return "the record is older than a refund that may have changed it"
            return "" if amount <= event.left else f"{amount} is more than the {event.left} that the record shows"
    return "the record was never seen"


def _may_change(event: True_, order: str) -> bool:
    if not isinstance(event, Ran) or event.outcome == "did not run" or event.call.tool not in ("refund", "pay_out"):
        return False
    return spelled_alike(event.call.values["order_id"], order)


THEOREMS: dict[str, Callable[[Sequence[True_], Allowed], str]] = {
    "T1-card": _consent_card,
    "T2-told": _consent_told,
    "T3-requested": _consent_requested,
    "T4-requests": _requests,
    "T5-limits": _limits,
    "T6-approvals": _approvals,
    "T7-stops": _stops,
    "T8-facts": _facts,
}
