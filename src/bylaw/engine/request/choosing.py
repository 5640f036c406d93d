"""Whether a value is the one of several that the user asked for: the largest file, the channel with the fewest users.

What the choice goes by is a field of the records that show the value, or a count: of what a tool shows of each of them
(the users in a channel), or of the records that name each (the messages of a sender).
"""

from collections.abc import Iterator, Mapping

from bylaw.engine.request.allowance import Choice
from bylaw.facts.provenance import Provenance, Traced, leaf_values
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.text.folding import fold


def is_chosen(
    choice: Choice, value: str | float, sight: Traced, provenance: Provenance, tools: Mapping[str, Tool], before: int
) -> bool:
    """Whether a value has the most, or the least, of what the choice goes by, as far as results show it."""
    assert sight.step is not None
    shown = _by_field(choice, sight, provenance)
    if shown is None:
        counts = _counts(choice, sight, provenance, tools, before)
        mine = counts.get(fold(str(value)))
        shown = None if mine is None or len(counts) < 2 else (mine, [*counts.values()])
    if shown is None:
        return False
    mine, all_of_them = shown
    return mine == (max(all_of_them) if choice.order == "most" else min(all_of_them))


def _by_field(choice: Choice, sight: Traced, provenance: Provenance) -> tuple[float, list[float]] | None:
    """What the field of the choice is here, and in every record of the same result."""
    assert sight.step is not None
    mine = _number(sight.beside.get(choice.field, ""))
    others = [_number(record.get(choice.field, "")) for record in provenance.places(sight.step).records]
    return None if mine is None else (mine, [number for number in others if number is not None])


def _counts(
    choice: Choice, sight: Traced, provenance: Provenance, tools: Mapping[str, Tool], before: int
) -> dict[str, float]:
    """By value, folded: how many things a tool shows of it, else how many records hold it in the same field."""
    assert sight.step is not None
    counted = _shown_of_each(choice, provenance, tools, before)
    among = set(provenance.places(sight.step).values(sight.field))
    counts = {name: count for name, count in counted if name in among}
    if counts:
        return counts
    for step, call, _ in provenance.results(before=before):
        if call.tool == sight.tool:
            for record in provenance.places(step).records:
                name = record.get(sight.field, "")
                if name:
                    counts[name] = counts.get(name, 0) + 1
    return counts


def _shown_of_each(
    choice: Choice, provenance: Provenance, tools: Mapping[str, Tool], before: int
) -> Iterator[tuple[str, float]]:
    """What a call was given, and how many things its result shows, of the tools named after what is counted."""
    thing = words_of(choice.field)
    for step, call, _ in provenance.results(before=before):
        tool = tools.get(call.tool)
        if tool is not None and tool.effect == "read" and set(thing) <= set(words_of(call.tool)):
            for _, given in leaf_values(call.arguments):
                yield fold(str(given)), provenance.places(step).members


def _number(value: str | float) -> float | None:
    try:
        return float(value)
    except (ValueError, TypeError):
        return None
