"""Rules that a call broke or not, hanging on what nobody knows: why each is open, as a word to count by."""

from collections.abc import Mapping

from bylaw.engine.rule_finding import RuleFinding
from bylaw.pack import Pack

OPEN_REASONS: Mapping[str, str] = {
    "unread": "what was said is for a model or a person to read",
    "unanswered": "a question without an answer in the log",
    "perhaps_spent": "a call like it may have been carried out before",
    "no_card": "no answer to a card",
    "expired": "the yes is too old",
    "beside_card": "the question stood beside other words",
    "changed_card": "the text of the card was changed",
    "unrecorded": "what was said was not recorded",
    "question": "a question that only a reader can answer",
    "unseen": "a fact that was not seen",
    "elsewhere": "something earlier in the conversation is open",
}
"""In words, what leaves a rule open."""


def open_reason(pack: Pack, finding: RuleFinding) -> str:
    """Why a rule is open: by the first of its predicates at the act that nobody could tell."""
    whys = dict(finding.whys)
    for name, value in finding.values:
        if value is not None:
            continue
        if (reason := str(whys.get(name, {}).get("reason", ""))) in OPEN_REASONS:
            return reason
        match pack.book.predicates[name].way:
            case "question":
                return "question"
            case "code" | "guard":
                return "unseen"
            case _:
                return "unrecorded"
    return "elsewhere"
