"""What a compile would ask, before anything is asked: the first round as it is, later ones by what they depend on."""

from bylaw.compile.desk import Desk
from bylaw.compile.guards import TOGETHER as GUARDS_TOGETHER
from bylaw.compile.pipeline import Source, run
from bylaw.compile.section import sections
from bylaw.compile.sort import TOGETHER as SORTED_TOGETHER
from bylaw.llm.meter import Price, estimate

_POLICIES_PER_SENTENCE = 0.5
_GUARDS_PER_POLICY = 0.75
_DISPUTED = 0.4
"""The share of guards on which readings differ, so that a referee, and perhaps a repair, is asked."""


def forecast(source: Source, price: Price = Price()) -> list[str]:  # noqa: B008
    """What asking would take, in lines to print."""
    desk = Desk()
    run(desk, source, [])
    first = estimate(list(desk.wanted.values()), price)
    if source.earlier is not None:
        then = (
            "then what the policies found there need" if first.requests else "nothing has changed that is asked about"
        )
        return [f"first round, as it is: {first}", then]
    sentences = len(source.document.sentences)
    policies = max(1, round(sentences * _POLICIES_PER_SENTENCE))
    guards = max(1, round(policies * _GUARDS_PER_POLICY))
    later = {
        "uncovered sentences": len(sections(source.document)),
        "kinds and tools": -(-policies // SORTED_TOGETHER),
        "cases and guards": 3 * -(-guards // GUARDS_TOGETHER),
        "rules": 2,
        "referee and repairs": round(2 * guards * _DISPUTED),
    }
    return [
        f"the document has {sentences} sentences, the catalogue {len(source.cards)} tools",
        f"first round, as it is: {first}",
        *(f"then about {count:>3} for {what}" for what, count in later.items()),
        f"in all about {first.requests + sum(later.values())} requests for about {policies} policies",
    ]


def toolguard_calls(items_by_tool: dict[str, int]) -> int:
    """What ToolGuard asks by its own build: 4 for each tool, and 11 for each policy item of it."""
    return sum(4 + 11 * items for items in items_by_tool.values())
