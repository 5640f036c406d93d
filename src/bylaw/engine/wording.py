"""Turns the records in `calls.jsonl` and `findings.jsonl` into text, for audits and live decisions. The text is never
parsed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bylaw.facts.entity import listed

_HOST = "context."
WAITED = "the conversation ended before the required step"


def fact_words(fact: Mapping[str, Any]) -> str:
    """Return the fact as text, for example `Reservation[4WQ150].cabin`, with a question mark for an unknown key."""
    key = fact["key"]
    told = "?" if key is None else ", ".join(map(str, key))
    return f"{fact['entity']}.{fact['field']}" if key == [] else f"{fact['entity']}[{told}].{fact['field']}"


def policy_words(policy: Mapping[str, Any]) -> str:
    """Explain a policy's verdict from its record: the reason, the missing facts and the questions."""
    reason = _record(policy.get("reason"))
    words = str(reason.get("words", ""))
    match reason.get("kind"):
        case "missing":
            return "not looked up: " + ", ".join(map(fact_words, policy["missing"]))
        case "unread":
            told = (
                ("result was not recorded", "not_captured"),
                ("answer could not be read", "not_readable"),
                ("answer was `null`", "not_told"),
                ("answers contradict one another", "contradicted"),
            )
            lost = [(what, ", ".join(map(fact_words, reason[facts]))) for what, facts in told if reason.get(facts)]
            said = [f"looked up, but the {what}: {facts}" for what, facts in lost]
            if spelt := reason.get("spelt_otherwise"):
                facts = ", ".join(map(fact_words, spelt))
                said.append(f"looked up under another spelling, so it may be a different record: {facts}")
            return "; ".join([*said, *map(_not_shown, reason.get("not_shown") or ())])
        case "against_evidence":
            return f"acted against the evidence: {words}"
        case "user":
            return f"depends on a fact that only the user knows; possible reason: {words}"
        case None:
            return str(policy.get("because", ""))
        case _:
            return words


def _not_shown(fact: Mapping[str, Any]) -> str:
    whose = f" of `{fact['tool']}`" if fact.get("tool") else ""
    return f"no result{whose} has `{fact['field']}`: {fact_words(fact)}"


def policy_words_for_reader(policy: Mapping[str, Any]) -> str:
    """Like `policy_words`, but without mentioning the user if only the host can supply the missing facts."""
    facts = [str(_record(ask).get("fact")) for ask in cast("Sequence[Any]", policy.get("asks") or ())]
    reason = _record(policy.get("reason"))
    if reason.get("kind") == "user" and facts and all(map(is_hosts, facts)):
        return f"depends on a fact that only the host knows; possible reason: {reason.get('words', '')}"
    return policy_words(policy)


def rule_words(finding: Mapping[str, Any]) -> str:
    """Explain why a rule is broken or undecided, based on its record. The text lists the values of its predicates at
    the act.
    """
    if limit := finding.get("limit"):
        return f"limit exceeded: {limit}"
    if finding["standing"] == "waiting":
        told = WAITED
    else:
        told = _holding({str(each["name"]): each["value"] for each in finding["predicates"]})
    return told + _binding(finding) + _whys(finding)


def _holding(values: Mapping[str, bool | None]) -> str:
    """Return the predicates as text: `change` holds; `spoke` and `agreed` do not hold; it is unknown whether `rude`
    holds.
    """
    said: list[str] = []
    for value, one, many in _HOLDING:
        if names := [f"`{name}`" for name in values if values[name] is value]:
            said.append((one if len(names) == 1 else many).format(listed(names)))
    return "; ".join(said)


_HOLDING = (
    (True, "{} holds", "{} hold"),
    (False, "{} does not hold", "{} do not hold"),
    (None, "it is unknown whether {} holds", "it is unknown whether {} hold"),
)


def rule_words_for_reader(finding: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    """Like `rule_words`, but with the pack's descriptions of the predicates. The keys of `meanings` are names as
    displayed.
    """
    predicates = [_record(each) for each in cast("Sequence[Any]", finding.get("predicates") or ())]
    if not predicates or not any(meanings.values()) or any({"name", "value"} - each.keys() for each in predicates):
        return str(finding.get("because", ""))
    said: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for each in predicates:
        name = str(each["name"])
        said[each["value"]].append(meanings.get(name.replace("_", " ")) or f"`{name}` holds")
    leads = {
        True: ("", ", "),
        False: ("not true: ", "; nor: "),
        None: ("code cannot tell whether ", ", or "),
    }
    told = "; ".join(f"{leads[value][0]}{leads[value][1].join(parts)}" for value, parts in said.items() if parts)
    return told + _binding(finding) + _whys(finding)


def rule_words_in_a_row(finding: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    """Like `rule_words_for_reader`, but shorter, for a table row. For consent, the text contains only the reason."""
    return _whys(finding).removeprefix(": ") or rule_words_for_reader(finding, meanings)


def consent_words(why: Mapping[str, Any]) -> str:
    """Explain the value of a predicate, based on its record. Empty if the user simply said yes."""
    answered = why.get("answered_at")
    match why.get("reason"):
        case "not_looked_up":
            return f"not looked up: {', '.join(map(fact_words, why['facts']))}"
        case "denied":
            return str(why.get("words", ""))
        case "unrecorded":
            return "the message was not recorded"
        case "never_put":
            return "the agent had not asked the user about this, so the user could not agree to it"
        case "declined":
            return f"the user's answer at step {answered} was no"
        case "spent":
            return f"the yes at step {answered} was used up by the call at step {why.get('spent_by')}"
        case "perhaps_spent":
            return f"the call at step {why.get('spent_by')} may have used up the yes at step {answered}"
        case "unanswered":
            return f"the user's messages contain no answer to the question at step {why.get('told_at')}"
        case "unread":
            return f"a model or a person must read the messages up to step {answered}"
        case "model":
            where = f" from the message at step {answered}" if answered is not None else ""
            reason = f": {words}" if (words := str(why.get("words") or "")) else ""
            return f"a model judged it {'true' if why.get('holds') else 'false'}{where}{reason}"
        case "person":
            return person_words("the rule was not followed", str(why.get("by", "")), str(why.get("words", "")))
        case "unseen":
            return "the agent had not looked up a fact that the user must see with this call"
        case "no_card":
            return "the pack requires the user's answer to a card, but no card was answered"
        case "expired":
            return f"the answer at step {answered} is too old"
        case "changed_card":
            return f"the text of the card at step {why.get('told_at')} was changed"
        case "interrupted":
            return "another message came between the card and the user's answer"
        case "conditional":
            return f"the answer at step {answered} attaches a condition"
        case "other_language":
            return f"the answer at step {answered} is in an unsupported language"
        case "unclear":
            return f"the answer at step {answered} is neither a clear yes nor a clear no"
        case "beside_card":
            return f"the question at step {why.get('told_at')} came with other words that may change its meaning"
        case _:
            return ""


def person_words(said: str, by: str, reason: str) -> str:
    """Describe a person's answer about an undecided call. A redacted audit omits the name and the reason."""
    who = f"a reviewer ({by})" if by else "a reviewer"
    return f"{who} says that {said}{f': {reason}' if reason else ''}"


AFTER_NO = "Make the call only if the user changes their mind"
_TO_AGENT = {
    "unrecorded": "it is unknown whether the user agreed: a message was not recorded, or the call cannot be read",
    "never_put": "the user has not been asked to confirm this call",
    "declined": f"the user said no to this call. {AFTER_NO}",
    "spent": "the user's yes was already used for an earlier call",
    "perhaps_spent": "this call or an equivalent one was made before and may have run",
    "unanswered": "the user's answer was not recorded",
    "changed_card": "the text of the card was changed or is no longer true, so the user's answer does not count",
    "unread": "the messages do not show clearly that the user agrees: the user must answer a card that shows this call",
    "no_card": "the user must answer a card that shows this call",
    "expired": "the user's last answer is too old to count",
    "interrupted": "another message came between the card and the answer; the answer must directly follow the card",
    "conditional": "the user's yes came with a condition, so it does not count; make a call that meets the condition",
    "other_language": "the user's answer is in an unsupported language; they must answer in the language of the card",
    "unclear": "the user's answer is neither a clear yes nor a clear no; if they asked something, answer it first",
    "unseen": "a fact that the user must see with this call is unknown",
    "beside_card": "the question came with other words, so the answer does not count; show the card alone",
}
"""The text for the agent about each consent finding: the finding and, if no card states it, what to do next."""


def consent_words_for_agent(why: Mapping[str, Any]) -> str:
    """Explain a consent finding to the agent, so that it can ask the user again."""
    return _TO_AGENT.get(str(why.get("reason")), "")


def _whys(finding: Mapping[str, Any]) -> str:
    predicates = [_record(each) for each in cast("Sequence[Any]", finding.get("predicates") or ())]
    told = [words for each in predicates if each.get("why") and (words := consent_words(_record(each["why"])))]
    return f": {'; '.join(told)}" if told else ""


def _binding(finding: Mapping[str, Any]) -> str:
    binding = _record(finding.get("binding"))
    return f" ({binding['name']} {binding['value']})" if binding else ""


def is_hosts(fact: str) -> bool:
    """Whether the host supplies this fact, such as the time of a call."""
    return fact.startswith(_HOST)


def host_words(fact: str) -> str:
    """Explain why a host fact is unknown and how to supply it."""
    if fact == f"{_HOST}now":
        return (
            "the time of the call is unknown, because the log has no readable time and the pack has no `now:`; "
            "log a `timestamp` with each message (ISO 8601 or seconds), or set `now:` in pack.yaml"
        )
    return f"only the host knows {fact}, and recorded logs do not contain it"


def _record(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def origin_words(origin: Mapping[str, Any]) -> str:
    """Describe an argument and its origin, in the wording of the audit report."""
    return f"`{origin['argument']}`: {source_words(origin)}"


def source_words(origin: Mapping[str, Any]) -> str:
    source, step = origin["source"], origin.get("step")
    at = "" if step is None else f" at step {step}"
    match source:
        case "user":
            told = f"said by the user{at}"
        case "host":
            told = "supplied by the host"
        case "agent":
            told = "no known source"
        case _:
            field = f" (`{origin['field']}`)" if origin.get("field") else ""
            kind = "a record" if source == "record" else "content"
            told = f"{kind}: a result of `{origin.get('tool', '')}`{field}{at}"
            told += "" if origin.get("whole", True) else ", inside a text"
            told += ", in a place that the user named" if origin.get("named_by_user") else ""
    if parts := origin.get("parts"):
        made = "may be a sum of values from" if source == "agent" else "combined from"
        told += f"; {made}: {', '.join(parts)}"
    if written := origin.get("written_at"):
        told += f"; written at step {', '.join(map(str, written))}"
        again = origin.get("shown_again_at")
        told += f" and shown again at step {', '.join(map(str, again))}" if again else ""
    return told
