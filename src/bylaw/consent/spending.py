"""What calls did to an agreement: spent by the accepted write it was given for, given back by a sure refusal; and those
that may have put something to the user, who answered there: after one, nobody proves that nothing was put.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import islice

from bylaw.consent.what_matters import Terms, what_matters
from bylaw.facts.call_record import CallRecord
from bylaw.facts.leaf import leaves
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import alike
from bylaw.policy.tool import Tool
from bylaw.policy.verb import VERBS, words_of
from bylaw.trace.event import Call


class Writes:
    """The writes of one conversation, by what they did; the ledger may grow while it is in use."""

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger = ledger
        self._terms = terms
        self._alike: dict[str, list[CallRecord]] = {}
        """By what one yes may be for, the writes that it may have been for."""
        self._counted = 0

    def spending(self, call: CallRecord, since: int) -> tuple[CallRecord, bool] | None:
        """Of the calls after a step and before this one that did, as far as anybody can tell, what the user agreed
        to, the first that surely used it up; else the first that may have.

        Those are among them that differ only in what need not be told: a yes covers one of them. Where nothing but a
        tool's own text says that it refused, it is among them, too: it may tell back what it was told.
        """
        writes = self._ledger.writes
        if not writes or writes[-1].step <= since:
            return None
        for write in writes[self._counted :]:
            self._alike.setdefault(self._agreed(write), []).append(write)
        self._counted = len(writes)
        made = self._alike.get(self._agreed(call), ())
        first: CallRecord | None = None
        for each in islice(made, bisect_right(made, since, key=_step), None):
            if each.step >= call.step:
                break
            if may_be_done(each, call.step):
                first = first or each
                if each.counts_at(call.step) and not each.is_doubtful() and _is_repeated(each, call):
                    return each, True
        return (first, False) if first is not None else None

    def _agreed(self, call: CallRecord) -> str:
        """The same for two calls of a tool that one yes may be for, however their values are written."""
        return repr((call.call.tool, alike(what_matters(call.call.arguments, self._terms))))


def _is_repeated(earlier: CallRecord, call: CallRecord) -> bool:
    """Whether two calls of a tool are the same in everything, however their values are written."""
    return bool(alike(earlier.call.arguments) == alike(call.call.arguments))


def may_be_done(write: CallRecord, step: int) -> bool:
    """Whether a write may have been carried out before a step."""
    return write.counts_at(step) or not write.is_surely_refused()


def _step(write: CallRecord) -> int:
    return write.step


_ASKS = """
ask asks question questions confirm confirmation approve approval authorize authorise authorization authorisation
consent permission prompt prompts dialog dialogue input elicit elicitation clarify clarification
"""
_ASKING = frozenset(_ASKS.split())
_PEOPLE = "user users customer client human person people caller member guest patient"
_PERSONS = frozenset(_PEOPLE.split())
_MESSAGES = "message messages sms mms text email mail chat whatsapp notification reply form forms dialog dialogue popup"
_SENT = frozenset(_MESSAGES.split())
_SENDS = frozenset(("send", "sends", "notify", "show", "display", "present", "push", "post"))
_LOOKING = frozenset(("get", "list", "find", "search", "read", "fetch", "look", "view", "check"))
_QUESTION = re.compile(r"[?\u061f\uff1f](?=[\"')\]*\s]|$)")


def may_ask(call: Call, tool: Tool | None) -> bool:
    """Whether a call may have asked the user something: it was given a question, or is named or described so, or sends
    a message, which may put whatever it likes.

    What is known to write asks only where its name has a person in it, too: `confirm_booking` does not.
    """
    effect = "none" if tool is None else tool.effect
    is_asking = _is_asking(call.tool, tool.description if tool is not None and effect == "none" else "", effect)
    if is_asking is not None or call.refused:
        return bool(is_asking) and not call.refused
    return any(isinstance(value, str) and _QUESTION.search(value) for value in leaves(call.arguments))


@lru_cache(maxsize=1024)
def _is_asking(name: str, description: str, effect: str, /) -> bool | None:
    """Whether a tool asks, whatever it is given; None where only that tells."""
    words, described = set(words_of(name)), set(re.findall("[a-z]+", description.lower()))
    if effect == "none" and any(VERBS.get(word) == "none" for word in words):
        # What an agent thinks or works out goes to nobody.
        return False
    # `get_consent` and `list_approvals` look something up.
    is_looked_up = effect == "read" and not words.isdisjoint(_LOOKING)
    is_named = words & _ASKING and not is_looked_up and (effect != "write" or words & _PERSONS)
    is_sent = "notify" in words or (words & _SENT and (effect == "none" or words & _SENDS))
    return True if is_named or is_sent or (described & _ASKING and described & _PERSONS) else None
