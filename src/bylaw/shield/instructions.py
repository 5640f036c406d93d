"""Writes the text for an agent's system prompt: which writes need confirmation, how to ask the user, and what to look
up.

An agent that follows the text asks the user only once per write, with a sentence from the pack or with a card.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, cast

from msgspec import Struct

from bylaw.consent.card import CALL, SLOT, what_matters
from bylaw.facts.entity import Entity
from bylaw.facts.schema import CardFact
from bylaw.pack import Pack
from bylaw.pack.predicate import Predicate
from bylaw.pack.rules import TOLD
from bylaw.policy.tool import Tool
from bylaw.rule.formula import atoms
from bylaw.rule.monitor import Act, holds
from bylaw.rule.rule import Rule
from bylaw.text.number import amount_spellings, quantity_spellings

_ANSWERS = """\
# Changes: look up, ask once, then call

Each tool call is checked before it runs. If a call is stopped, the answer begins with:

- **Not done yet**: nothing was changed. Do what the answer says next.
- **Done**: the change was made earlier. Do not make the call again.
- **May have been done**: it is unknown whether the change was made. Tell the user, and do not make the call again."""
_ASKING = """\
To ask the user for a yes:

- First make the look-ups listed for the tool, if they apply and you have not seen their results yet.
- Send the question as your whole message, word for word, with the values of the call and of your look-ups in place of
  `{...}` (in an option, write a space for each `_`). If you add other words, the user's yes does not count.
- After a yes, make the call with exactly these values. One yes covers one call.
- If there is no question, or a value is unknown, empty, a long text or an object, make the call without asking. The
  answer contains a card: show the user that card, word for word, as your whole message.
- Never use your own wording to ask for a yes."""
_CALLING = """\
To get the user's yes:

- First make the look-ups listed for the tool, if they apply and you have not seen their results yet.
- Make the call without asking. Either your application asks the user, or the answer contains a card. Show the user
  the card, word for word, as your whole message, and make the call again after their yes.
- Never use your own wording to ask for a yes."""


class WriteInstruction(Struct, frozen=True):
    tool: str
    look_ups: tuple[str, ...] = ()
    """Look-ups that policies require before a call to the tool, such as `get_order(order_id)`."""
    questions: tuple[str, ...] = ()
    """Sentences that ask the user for confirmation. Each value is written as `{argument}`."""
    needs_card: bool = False
    """Whether confirmation requires an answer to a card."""
    unnamed: tuple[str, ...] = ()
    """Optional arguments that no question mentions. A call with such an argument needs a card."""
    written: dict[str, str] = {}
    """Values in a question for which the agent must write a currency or unit, each with an example."""
    of: tuple[str, ...] = ()
    """For an action: the tools that perform it."""


def write_instructions(pack: Pack) -> tuple[WriteInstruction, ...]:
    """Return the instructions for each write that needs a look-up or a confirmation, in the order of the catalogue."""
    rules = [(rule, found) for rule in pack.book.rules if (found := _consents(pack, rule))]
    made = (_instruction(pack, tool, rules) for tool in pack.schema.tools.values() if tool.effect == "write")
    return tuple(each for each in made if each.look_ups or each.questions or each.needs_card)


def instructions(pack: Pack, *, heard: bool = True) -> str:
    """Return the instructions as Markdown. Empty if no write needs a look-up or a confirmation.

    Set `heard` to False if the host may not report the conversation, as with an MCP proxy. The text then tells the
    agent not to ask.
    """
    writes = write_instructions(pack)
    if not writes:
        return ""
    asks = []
    if any(each.questions or each.needs_card for each in writes):
        asks = [_ASKING if heard else _CALLING]
    if not heard:
        writes = [WriteInstruction(each.tool, each.look_ups, of=each.of) for each in writes if each.look_ups]
    return "\n\n".join((_ANSWERS, *asks, *map(_section, writes))) + "\n"


def _section(write: WriteInstruction) -> str:
    lines = [f"## {write.tool}", ""]
    if write.of:
        lines.append(f"- Call it through: {', '.join(f'`{each}`' for each in write.of)}")
    if write.look_ups:
        lines.append(f"- Look up first: {', '.join(f'`{each}`' for each in write.look_ups)}")
    lines += [f"- Ask: `{each}`" for each in write.questions]
    if write.written:
        lines.append(f"- Write {', '.join(f'`{{{name}}}` like `{each}`' for name, each in write.written.items())}")
    if write.unnamed:
        given = " or ".join(f"`{each}`" for each in write.unnamed)
        lines.append(f"- With {given}: call without asking; the answer contains a card.")
    if write.needs_card:
        lines.append("- Call without asking; the answer contains a card.")
    return "\n".join(lines)


def _instruction(pack: Pack, tool: Tool, rules: Sequence[tuple[Rule, Sequence[Predicate]]]) -> WriteInstruction:
    wanted = [each for rule, found in rules if _needs_yes(pack, rule, tool) for each in found]
    wanted = [each for each in wanted if each.consent != "requested"]
    questions, unnamed = _questions(tool, wanted)
    written = _written(pack, tool, wanted[0]) if questions else {}
    return WriteInstruction(
        tool.name,
        tuple(dict.fromkeys(_look_ups(pack, tool))),
        questions,
        bool(wanted) and not questions,
        unnamed,
        written,
        tool.of,
    )


def _consents(pack: Pack, rule: Rule) -> list[Predicate]:
    if rule.policy in pack.held_back:
        return []
    return [each for name in atoms(rule.formula) if (each := pack.book.predicates[name]).consent]


def _needs_yes(pack: Pack, rule: Rule, tool: Tool) -> bool:
    """Whether a call may break a rule if the user has not confirmed the call."""
    act = Act(0, tool.name, {}, "", (), (), 1, 1, False, tool.effect)
    values: dict[str, bool | None] = {}
    for name in atoms(rule.formula):
        each = pack.book.predicates[name]
        if each.way in TOLD:
            is_named = each.names(tool.name, tool.effect)
            values[name] = each.find(act) if each.find is not None else None if is_named else False
    agreed, refused = (
        holds(rule.formula, [values | {each.name: answer for each in _consents(pack, rule)}])
        for answer in (True, False)
    )
    return refused is not True and agreed is not False


def _questions(tool: Tool, wanted: Sequence[Predicate]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sentences that mention every required argument, and the optional arguments that none of them has."""
    if not wanted or any(each.consent == "card" for each in wanted):
        return (), ()
    asks = [ask for ask in wanted[0].words.asks if all(ask in each.words.asks for each in wanted)]
    matters = [name for name in tool.parameters if any(_matters(tool, name, each) for each in wanted)]
    required = {name for name in matters if name in tool.required}
    whole = [phrase for phrase in tool.put_as if required <= set(SLOT.findall(phrase))]
    if not asks or not whole:
        return (), ()
    named = {name for phrase in whole for name in SLOT.findall(phrase)}
    return tuple(asks[0].replace(CALL, phrase) for phrase in whole), tuple(
        each for each in matters if each not in named
    )


def _written(pack: Pack, tool: Tool, wanted: Predicate) -> dict[str, str]:
    facts = pack.schema.card_facts.get(tool.name, ())
    schemas: dict[str, Any] = tool.parameters | {each.name: {**_currency(pack, each), **each.schema} for each in facts}
    found: dict[str, str] = {}
    for name in dict.fromkeys(name for phrase in tool.put_as for name in SLOT.findall(phrase)):
        declared = cast("dict[str, Any]", schemas[name]) if isinstance(schemas.get(name), dict) else {}
        if currency := declared.get("currency"):
            found[name] = amount_spellings(Decimal("1234.5"), str(currency), wanted.words.decimal)[0]
        elif unit := declared.get("unit"):
            found[name] = quantity_spellings(Decimal("2.5"), str(unit), wanted.words.decimal)[0]
    return found


def _currency(pack: Pack, fact: CardFact) -> dict[str, str]:
    """Return the currency of a fact on the card, if all its amounts are in one currency."""
    entities, read = pack.schema.entities, (each.partition(".") for each in fact.reads)
    fields = (entities[entity].fields.get(name) for entity, _, name in read)
    found = {field.currency for field in fields if field is not None} - {""}
    return {"currency": found.pop()} if len(found) == 1 else {}


def _matters(tool: Tool, name: str, wanted: Predicate) -> bool:
    declared: Any = tool.parameters[name]
    kind = cast("dict[str, Any]", declared).get("type") if isinstance(declared, dict) else None
    return bool(what_matters({name: "" if kind == "string" else 0}, wanted.terms))


def _look_ups(pack: Pack, tool: Tool) -> Iterator[str]:
    """Yield the look-ups for the facts that a tool's guards read. Facts whose keys are arguments of the call come
    first.
    """
    guards = [guard for policy, guard in pack.by_tool.get(tool.name, ()) if policy.id not in pack.held_back]
    read: dict[str, set[str]] = {}
    facts = [fact for guard in guards for fact in guard.facts]
    facts += [fact for shown in pack.schema.card_facts.get(tool.name, ()) for fact in shown.reads]
    for entity, _, field in (fact.partition(".") for fact in facts):
        read.setdefault(entity, set()).add(field)
    entities = [each for each in pack.schema.entities.values() if each.name in read]
    for entity in sorted(entities, key=lambda each: not set(each.key) <= tool.parameters.keys()):
        yield from _ways(pack, entity, read[entity.name])


def _ways(pack: Pack, entity: Entity, fields: set[str]) -> Iterator[str]:
    """Yield the look-ups that show these fields to an agent: the entity's own look-up or, if it has none, any tool that
    shows the entity.
    """
    known = [name for name in entity.fields if name in fields and entity.fields[name].origin == "system"]
    if entity.origin != "system" or not (known or "exists" in fields):
        return
    own = [ways[0].tool for name in known or ["exists"] if (ways := pack.schema.ways[entity.name, name])]
    shown = [tool for tool, kinds in pack.schema.shows.items() if entity.name in kinds]
    for name in own or [" or ".join(_called(pack, each) for each in shown if _is_read(pack, each))]:
        if name:
            yield _called(pack, name) if own else name


def _is_read(pack: Pack, tool: str) -> bool:
    return tool in pack.schema.tools and pack.schema.tools[tool].effect == "read"


def _called(pack: Pack, tool: str) -> str:
    declared = pack.schema.tools.get(tool)
    return f"{tool}({', '.join(declared.parameters)})" if declared is not None else tool
