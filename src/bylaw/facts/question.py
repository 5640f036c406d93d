"""A fact that nobody knows, as a question that people can read: in the pack's own words, or made of its names."""

import re

from bylaw.facts.entity import Entity, Fact, Field, FieldType

_KINDS: dict[FieldType, str] = {
    "integer": "number", "number": "number", "money": "amount", "date": "date", "datetime": "date and time"
}  # fmt: skip
_STARTS = {"is": "Is", "was": "Was", "are": "Are", "can": "Can", "may": "May", "will": "Will", "must": "Must"}
"""How a name may begin that turns into a question when its thing comes second: `is_late`."""
_OF_HOST = {"now": "When is this call made?", "history": "What came before this call?"}
"""What every host knows, whatever a pack declares."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def question_about(fact: Fact, entity: Entity | None) -> str:
    """What to ask where only somebody's word can tell it."""
    field = entity.fields.get(fact.field) if entity is not None else None
    if field is not None and field.question:
        return field.question
    thing = "" if not fact.key and fact.key is not None else _thing(fact)
    if fact.entity == "context":
        asked = _OF_HOST.get(fact.field) or _asked(fact.field, field, "")
        return f"{asked} The host did not say: it belongs in the `context` of the session."
    return _asked(fact.field, field, thing)


def _asked(name: str, field: Field | None, thing: str) -> str:
    words, of = name.replace("_", " ").strip(), f" of {thing}" if thing else ""
    kind = field.type if field is not None else "string"
    first, _, rest = words.partition(" ")
    if name == "exists":
        return f"Is there {thing}?" if thing else "Does it exist?"
    if kind == "boolean" and thing and rest and first in _STARTS:
        return f"{_STARTS[first]} {thing} {rest}? (yes or no)"
    if kind == "boolean" and thing and rest and first == "has":
        return f"Does {thing} have {rest}? (yes or no)"
    if kind == "boolean":
        # A name may be any part of speech; quoted, it reads as what it is.
        return f'Is this so{of}: "{words}"? (yes or no)'
    if kind == "enum" and field is not None and field.values:
        return f'Which one is the "{words}"{of}: {_either(field.values)}?'
    if kind in _KINDS:
        return f'What {_KINDS[kind]} is the "{words}"{of}?'
    return f'What is the "{words}"{of}?'


def _thing(fact: Fact) -> str:
    """The thing in words: `order 7`; `the order`, where nobody knows which."""
    kind = _CAPITAL.sub(" ", fact.entity).replace("_", " ").lower()
    return f"{kind} {', '.join(map(str, fact.key))}" if fact.key else f"the {kind}"


def _either(values: tuple[str, ...]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"
