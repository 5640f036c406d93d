"""Words for what the engine found: the one place where records become text."""

from bylaw.engine.conduct import RuleFinding

WAITED = "the conversation ended before what it waits for"


def because_of_rule(finding: RuleFinding) -> str:
    """Why a rule is broken or open: the values of its predicates at the act, in words."""
    if finding.standing == "waiting":
        told = WAITED
    else:
        shown = {True: "", False: "not ", None: "perhaps "}
        told = ", ".join(f"{shown[value]}{name.replace('_', ' ')}" for name, value in finding.values)
    return f"{told} ({finding.rule.for_each} {finding.binding})" if finding.binding else told
