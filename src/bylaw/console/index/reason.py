"""The reason of a finding, in words that many findings share, so that lists can be grouped."""

import hashlib
import re
from typing import Any

from msgspec import Struct

from bylaw.audit.finding import lacked, rank
from bylaw.audit.report.finding import name as fact_name
from bylaw.audit.report.text import cut
from bylaw.audit.store import JsonRecord
from bylaw.engine.wording import is_hosts, policy_words_for_reader
from bylaw.pack import Criterion

LACKING = {
    "claimed": "taken from the user",
    "stale": "out of date",
    "pending": "changed in the same turn",
    "never_seen": "never looked up",
}
_VALUES = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|[$€£]?\d(?:[\d.,:/T-]*\d)?")


class Reason(Struct, frozen=True):
    """A policy, a verdict and its reason."""

    policy: str
    verdict: str
    severity: str
    words: str

    @property
    def key(self) -> str:
        """Its id in addresses, the same in every audit."""
        text = "\0".join((self.policy, self.verdict, self.words))
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


def reason_of_call(call: JsonRecord, criterion: Criterion) -> Reason:
    """The gravest policy of a flagged call, and its reason."""
    verdict: str = call[criterion]
    guilty = [policy for policy in call["policies"] if policy[criterion] == verdict]
    if not guilty:
        return Reason("", verdict, "", _likeness(str(call.get("because") or "could not be judged")))
    policy = min(guilty, key=lambda each: rank(each["severity"]))
    return Reason(policy["id"], verdict, policy["severity"], _words(policy, verdict, criterion))


def reason_of_rule(policy: str, severity: str, rule: str) -> Reason:
    """All breaches of a rule have the same reason."""
    return Reason(policy, "broken", severity, "rule broken" if rule == policy else f"rule {rule} broken")


def reason_of_open(policy: str, severity: str, rule: str) -> Reason:
    """The reason of an undecided rule."""
    what = "the rule" if rule == policy else f"rule {rule}"
    return Reason(policy, "inconclusive", severity, f"whether {what} was followed is undecided")


def _words(policy: JsonRecord, verdict: str, criterion: Criterion) -> str:
    facts = lacked(policy["missing"], criterion)
    if verdict != "violation" and facts:
        told = dict.fromkeys(f"{fact_name(fact)} {LACKING.get(fact['reason'], fact['reason'])}" for fact in facts)
        more = len(told) - 2
        return cut("; ".join(list(told)[:2]) + (f"; and {more} more" if more > 0 else ""), 200)
    if verdict == "inconclusive" and (asks := policy["asks"]):
        open_facts: list[Any] = [ask["fact"] for ask in asks]
        asked = [ask["question"] for ask in asks if not is_hosts(ask["fact"])]
        return _likeness(asked[0] if asked else f"{open_facts[0]} is not known")
    return _likeness(policy_words_for_reader(policy) or policy["because"] or "forbidden")


def _likeness(words: str) -> str:
    """A text without its values, so that findings that differ only in values share a reason."""
    return cut(_VALUES.sub("…", words), 200)
