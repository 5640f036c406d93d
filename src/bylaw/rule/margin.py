"""Margins of propositional circuits, one JSON line in and one out: the contract of `bylaw rules margin`."""

from functools import lru_cache
from typing import Any, BinaryIO

import msgspec

from bylaw.errors import FormulaError
from bylaw.rule.circuit import WIDTH_CAP, Circuit
from bylaw.rule.formula import is_propositional
from bylaw.rule.inference import Inference
from bylaw.rule.lines import answer_lines
from bylaw.rule.parser import parse
from bylaw.rule.rule import Rule


class RuleLine(msgspec.Struct, frozen=True):
    """A rule as a question writes it; without a name it goes by its formula."""

    formula: str
    weight: float | None = None
    """1 where it is not given."""
    hard: bool = False
    physical: bool = False
    name: str = ""


class MarginQuestion(msgspec.Struct, frozen=True):
    """One input line."""

    action: str
    rules: tuple[RuleLine, ...]
    evidence: dict[str, bool | float | None] = {}
    """A predicate that is not named is unknown; the action itself is tried both ways, whatever stands here."""
    eps: float = 0.0
    width_cap: int = WIDTH_CAP


def margin_of(question: MarginQuestion) -> dict[str, Any]:
    """What the circuit of a question says of its action: one output line."""
    inference, names = _prepared(question.action, question.rules, question.eps, question.width_cap)
    found = inference.assess(question.evidence)
    told = {name: getattr(found, name) for name in ("safe", "decision", "p_action", "margin", "interval")}
    return told | {"veto": [names[each] for each in found.veto], "conflict": [names[each] for each in found.conflict]}


@lru_cache(maxsize=256)
def _prepared(action: str, rules: tuple[RuleLine, ...], eps: float, width_cap: int) -> tuple[Inference, dict[str, str]]:
    """The circuit, its rules numbered so that equal names do no harm, and the names to answer with."""
    names = {str(number): rule.name or rule.formula for number, rule in enumerate(rules)}
    weighted: list[Rule] = []
    for number, rule in enumerate(rules):
        formula = parse(rule.formula)
        if not is_propositional(formula):
            raise FormulaError(f"`{rule.formula}` speaks of other steps", hint="a margin is asked of one step")
        weighted.append(
            Rule(
                name=str(number),
                formula=formula,
                weight=1.0 if rule.weight is None else rule.weight,
                hard=rule.hard,
                physical=rule.physical,
            )
        )
    return Inference(Circuit(action=action, rules=tuple(weighted), eps=eps, width_cap=width_cap)), names


def margin_lines(stdin: BinaryIO, stdout: BinaryIO) -> int:
    """What `bylaw rules margin` does."""
    decoder = msgspec.json.Decoder(MarginQuestion)
    return answer_lines(stdin, stdout, lambda line: margin_of(decoder.decode(line)))
