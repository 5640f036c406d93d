"""Words for what was found: the one place where records become text.

Works on the records of `calls.jsonl` and `findings.jsonl`, so that terminal, report, SARIF and JUnit, which read an
audit's folder, say what a live session says. Nothing ever parses a text made here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

_HOST = "context."
WAITED = "the conversation ended before what it waits for"


def fact_words(fact: Mapping[str, Any]) -> str:
    """`Reservation[4WQ150].cabin`; a question mark for a key that is not known."""
    key = fact["key"]
    told = "?" if key is None else ", ".join(map(str, key))
    return f"{fact['entity']}.{fact['field']}" if key == [] else f"{fact['entity']}[{told}].{fact['field']}"


def policy_words(policy: Mapping[str, Any]) -> str:
    """Why a policy says what it says of a call, from its record: its reason, what is missing and what is asked."""
    reason = _record(policy.get("reason"))
    words = str(reason.get("words", ""))
    match reason.get("kind"):
        case "missing":
            return "not looked up: " + ", ".join(map(fact_words, policy["missing"]))
        case "unread":
            told = (("result was not recorded", "not_captured"), ("answer could not be read", "not_readable"))
            lost = [(what, ", ".join(map(fact_words, reason[facts]))) for what, facts in told if reason.get(facts)]
            return "; ".join(f"looked up, but the {what}: {facts}" for what, facts in lost)
        case "against_evidence":
            return f"acted against what it had seen: {words}"
        case "user":
            return f"depends on what only the user can say; otherwise {words}"
        case None:
            return str(policy.get("because", ""))
        case _:
            return words


def policy_words_for_reader(policy: Mapping[str, Any]) -> str:
    """The same, without the user in it where all that it asks for is the host's to say."""
    facts = [str(_record(ask).get("fact")) for ask in cast("Sequence[Any]", policy.get("asks") or ())]
    reason = _record(policy.get("reason"))
    if reason.get("kind") == "user" and facts and all(map(is_hosts, facts)):
        return f"depends on what the host supplies; otherwise {reason.get('words', '')}"
    return policy_words(policy)


def rule_words(finding: Mapping[str, Any]) -> str:
    """Why a rule is broken or open, from its record: the values of its predicates at the act."""
    if finding["standing"] == "waiting":
        told = WAITED
    else:
        shown = {True: "", False: "not ", None: "perhaps "}
        told = ", ".join(f"{shown[each['value']]}{each['name'].replace('_', ' ')}" for each in finding["predicates"])
    return told + _binding(finding)


def rule_words_for_reader(finding: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    """The same, told with what the pack says of each predicate, where it says anything; `meanings` by spelt name."""
    predicates = [_record(each) for each in cast("Sequence[Any]", finding.get("predicates") or ())]
    if not predicates or not any(meanings.values()) or any({"name", "value"} - each.keys() for each in predicates):
        return str(finding.get("because", ""))
    said: dict[str, list[str]] = {"": [], "not so": [], "not known": []}
    signs = {True: "", False: "not so", None: "not known"}
    for each in predicates:
        name = str(each["name"]).replace("_", " ")
        said[signs[each["value"]]].append(meanings.get(name) or name)
    told = "; ".join(
        f"{word}: {', '.join(parts)}" if word else ", ".join(parts) for word, parts in said.items() if parts
    )
    return told + _binding(finding)


def _binding(finding: Mapping[str, Any]) -> str:
    binding = _record(finding.get("binding"))
    return f" ({binding['name']} {binding['value']})" if binding else ""


def is_hosts(fact: str) -> bool:
    """Whether the host supplies it, as it does the time of a call."""
    return fact.startswith(_HOST)


def host_words(fact: str) -> str:
    """Why a fact of the host is not known, and what to do."""
    if fact == f"{_HOST}now":
        return (
            "the time of the call is not known: the log carries no time and the pack no `now:`; "
            "log a `timestamp` with each message, or set `now:` in pack.yaml"
        )
    return f"{fact} is the host's to supply, and a recorded log does not carry it"


def _record(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
