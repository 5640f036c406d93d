"""What whoever owns a pack may write so that nobody has to read whether a user agreed."""

from typing import Any, cast

from bylaw.consent.what_matters import Terms, what_matters
from bylaw.policy.verb import words_of


def consent_hint(found: dict[str, Any], events: list[dict[str, Any]]) -> str:
    """A sentence to ask in, where a rule is open because what was said has to be read; else empty."""
    reasons = [predicate["why"].get("reason") for predicate in found.get("predicates", ()) if predicate.get("why")]
    step: int = found.get("step", len(events))
    call = events[step] if step < len(events) else {}
    if call.get("type") != "call" or "unread" not in reasons:
        return ""
    tool: str = call["tool"]
    given = what_matters(call["arguments"], Terms())
    counts = "a yes counts by itself where the agent shows a card"
    if any(isinstance(each, dict) for value in given.values() for each in _parts(value)):
        # What has parts of its own stands in no sentence.
        return counts
    slots = [f"{' '.join(words_of(name))} {{{name}}}" for name in given]
    sentence = " with ".join(filter(None, (" ".join(words_of(tool)), ", ".join(slots))))
    asks = f"or asks as `put_as` under `{tool}` in tools.yaml says; where there is none yet, for example"
    return f'{counts}, {asks}:\n  put_as: "{sentence}"'


def _parts(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
