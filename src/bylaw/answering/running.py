"""Runs the steps of a plan that one predicate needs. A model's answer is used only if its quotes occur in the
history.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from bylaw.answering.history import History, Piece, call_text
from bylaw.answering.operation import Check, Detect, Plan, Search, Step, Use, Verify
from bylaw.engine.predicate_values import AnswerQuote
from bylaw.llm import Answer, Request
from bylaw.llm.chat import render, schema_of
from bylaw.rule.detectors import PERSONAL
from bylaw.rule.formula import Formula, atoms, is_propositional, parse
from bylaw.rule.monitor import Act, holds

PROMPTS = Path(__file__).parent / "prompts"
_ARGUMENT = re.compile(r"\{(\w+)\}")

AskModel = Callable[[Request], Answer]


class Operation(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str:
        """The operation's purpose and arguments, as shown to the planner."""
        ...

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Return text for the model, or JSON with a Boolean `value` and optional `quotes` and `because`."""
        ...


class Claim(Struct, frozen=True):
    """The result of a step: either a value, or pieces for later steps."""

    value: bool | None = None
    quotes: tuple[AnswerQuote, ...] = ()
    because: str = ""
    pieces: tuple[Piece, ...] = ()


class Reply(Struct, frozen=True):
    """A model's answer to a check."""

    answer: Literal["yes", "no", "unknown"]
    quotes: tuple[AnswerQuote, ...] = ()
    because: str = ""


class _Told(Struct, frozen=True):
    value: bool | None
    quotes: tuple[AnswerQuote, ...] = ()
    because: str = ""


SCHEMA = schema_of(Reply)


class PlanRun:
    def __init__(
        self, plan: Plan, history: History, act: Act, ask: AskModel, operations: Mapping[str, Operation]
    ) -> None:
        self._steps: dict[str, Step] = plan.by_name()
        self._history = history
        self._act = act
        self._ask = ask
        self._operations = operations
        self._found: dict[str, Claim] = {}

    def find(self, name: str) -> Claim:
        """Return the result of the step with this name. The steps that it needs are run first."""
        if name not in self._found:
            self._found[name] = self._take(self._steps[name])
        return self._found[name]

    def _take(self, step: Step) -> Claim:
        match step:
            case Search():
                return Claim(pieces=self._history.search(step, self._filled(step.words)))
            case Check():
                return self._read("check", self._filled(step.question), self._pieces(step.uses))
            case Detect():
                return self._detect(step)
            case Verify():
                return self._verify(step)
            case Use():
                return self._use(step)

    def _detect(self, step: Detect) -> Claim:
        pieces = self._pieces(step.uses)
        find = PERSONAL.get(step.kind.lower())
        if find is None:
            return self._read("detect", self._filled(step.kind), pieces)
        hits = [(piece.step, found) for piece in pieces for found in itertools.islice(find(piece.text), 3)]
        return Claim(bool(hits), tuple(AnswerQuote(*hit) for hit in hits), f"detector `{step.kind.lower()}`")

    def _read(self, prompt: str, question: str, pieces: Sequence[Piece]) -> Claim:
        act = self._act
        asked = call_text(act.tool, act.arguments) if act.tool is not None else f"a message: {act.text}"
        shown = "\n".join(piece.shown() for piece in pieces) or "(nothing was found)"
        request = render(
            PROMPTS, prompt, {"act": asked, "pieces": shown, "question": question}, schema=SCHEMA, max_tokens=600
        )
        answer = self._ask(request)
        reply = answer.read(Reply)
        if reply is None:
            return Claim(because=answer.why or "no readable answer")
        value = {"yes": True, "no": False, "unknown": None}[reply.answer]
        return self._checked(value, reply.quotes, reply.because)

    def _checked(self, value: bool | None, quotes: tuple[AnswerQuote, ...], because: str) -> Claim:
        """Return the answer as a claim if its quotes occur in the history. A positive answer needs at least one
        quote.
        """
        wrong = [quote for quote in quotes if not self._history.holds(quote)]
        if wrong:
            return Claim(because=f"quotes text that is not in step {wrong[0].step}: {wrong[0].text[:80]}")
        if value and not quotes:
            return Claim(because="said to be so, and nothing is quoted for it")
        return Claim(value, quotes, because)

    def _verify(self, step: Verify) -> Claim:
        formula = parse(step.formula)
        claims = {name: self.find(name) for name in atoms(formula)}
        quotes = tuple(dict.fromkeys(quote for claim in claims.values() for quote in claim.quotes))
        values = {True: "yes", False: "no", None: "not known"}
        told = ", ".join(f"{name} {values[claim.value]}" for name, claim in claims.items())
        return Claim(verified(formula, claims), quotes, f"{step.formula}: {told}")

    def _use(self, step: Use) -> Claim:
        act, whole = self._act, [msgspec.to_builtins(piece) for piece in self._history.pieces]
        of_all = {"{history}": whole, "{call}": {"tool": act.tool, "arguments": act.arguments, "text": act.text}}
        given = {each.name: of_all.get(each.value, self._filled(each.value)) for each in step.arguments}
        try:
            text = self._operations[step.tool].run(given)
        except Exception as error:
            # If a user-defined operation fails, its step stays undecided.
            return Claim(because=f"{step.tool} failed: {type(error).__name__}: {error}")
        try:
            told = msgspec.json.decode(text, type=_Told)
        except (msgspec.DecodeError, RecursionError):
            return Claim(pieces=(Piece(-1, "tool", f"{step.tool}: {text}"),))
        if told.quotes:
            return self._checked(told.value, told.quotes, told.because)
        return Claim(told.value, (), told.because or f"{step.tool} says so")

    def _pieces(self, names: Sequence[str]) -> list[Piece]:
        """Return the results of the named steps in history order, without duplicates."""
        found = {(piece.step, piece.text): piece for name in names for piece in self.find(name).pieces}
        return sorted(found.values(), key=lambda piece: piece.step)

    def _filled(self, text: str) -> str:
        arguments = self._act.arguments

        def value(match: re.Match[str]) -> str:
            found = arguments.get(match[1])
            return "" if found is None else found if isinstance(found, str) else msgspec.json.encode(found).decode()

        return _ARGUMENT.sub(value, text)


def verified(formula: Formula, claims: Mapping[str, Claim]) -> bool | None:
    """Whether a formula holds over claims. None if that depends on an unknown claim.

    Without temporal operators, the formula is evaluated once. With them, it is evaluated over the quoted steps in
    order. A true claim holds at the steps that it quotes, and a false claim holds nowhere.
    """
    if is_propositional(formula):
        return holds(formula, [{name: claim.value for name, claim in claims.items()}])
    quoted = sorted({quote.step for claim in claims.values() if claim.value for quote in claim.quotes}) or [0]
    return holds(
        formula,
        (
            {name: claim.value and any(quote.step == step for quote in claim.quotes) for name, claim in claims.items()}
            for step in quoted
        ),
    )
