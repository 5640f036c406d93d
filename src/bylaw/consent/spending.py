"""What calls did to an agreement: spent by the accepted write it was given for, given back by a sure refusal; and those
that may have put something to the user, who answered there: after one, nobody proves that nothing was put.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from bylaw.consent.what_matters import Terms, what_matters
from bylaw.facts.call_record import CallRecord, could_be_same_call, is_readable, may_have_run
from bylaw.facts.leaf import leaves
from bylaw.facts.ledger import Ledger
from bylaw.facts.value import alike
from bylaw.policy.tool import Tool
from bylaw.policy.verb import VERBS, words_of
from bylaw.trace.event import Call


class Writes:
    """The writes of one conversation that a yes may have been used by; the ledger may grow while it is in use."""

    def __init__(self, ledger: Ledger, terms: Terms) -> None:
        self._ledger = ledger
        self._terms = terms
        self._alike: dict[str, list[CallRecord]] = {}
        """By the terms that the user agrees to, the writes whose records are readable."""
        self._unreadable: dict[str, list[CallRecord]] = {}
        """By tool, all other writes."""
        self._counted = 0

    def spending(self, call: CallRecord, since: int) -> tuple[CallRecord, bool] | None:
        """The call between a step and this one that used the yes to it, and whether that is certain.

        A certain one comes first, then the earliest that may have used it. Calls that differ only in arguments that
        need not be shown count as one call. A tool's own text that it refused is no proof of a refusal.
        """
        writes = self._ledger.writes
        if not writes or writes[-1].step <= since:
            return None
        for write in writes[self._counted :]:
            if is_readable(write.call, write.tool):
                self._alike.setdefault(self._agreed(write), []).append(write)
            else:
                self._unreadable.setdefault(write.call.tool, []).append(write)
        self._counted = len(writes)
        made = self._between(self._alike.get(self._agreed(call), ()), since, call)
        for each in made:
            is_certain = each.counts_at(call.step) and not each.is_doubtful() and _is_repeated(each, call)
            if is_certain:
                return each, True
        unreadable = self._between(self._unreadable.get(call.call.tool, ()), since, call)
        made += [each for each in unreadable if could_be_same_call(each, call, self._ignored(each, call))]
        return (min(made, key=_step), False) if made else None

    def _ignored(self, *calls: CallRecord) -> frozenset[str]:
        """The arguments of these calls that a user does not agree to."""
        return frozenset(
            name
            for each in calls
            for name in each.call.arguments.keys() - what_matters(each.call.arguments, self._terms).keys()
        )

    def _between(self, writes: Sequence[CallRecord], since: int, call: CallRecord) -> list[CallRecord]:
        """Those of these writes after a step and before a call that may have run."""
        later = islice(writes, bisect_right(writes, since, key=_step), None)
        return [each for each in later if each.step < call.step and may_have_run(each, call.step)]

    def _agreed(self, call: CallRecord) -> str:
        """The same for two calls of a tool that one yes may be for, however their values are written."""
        return repr((call.call.tool, alike(what_matters(call.call.arguments, self._terms))))


def _is_repeated(earlier: CallRecord, call: CallRecord) -> bool:
    """Whether two calls of a tool are the same in everything, however their values are written."""
    return bool(alike(earlier.call.arguments) == alike(call.call.arguments))


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
