"""The commands `bylaw rules eval`, `margin` and `risk`, which print one JSON line per answer.

`eval` evaluates formulas on traces. `margin` assesses an action. `risk` estimates the probability that an agent breaks
a rule if it continues to act as recorded. It combines a Markov chain of the agent's acts with the automaton of the
rule. A permanently violated state is absorbing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from bylaw.errors import BylawError, FormulaError
from bylaw.rule.automaton import BROKEN, StateVerdict
from bylaw.rule.circuit import WIDTH_CAP, Circuit
from bylaw.rule.formula import Formula, is_propositional, parse
from bylaw.rule.inference import Inference
from bylaw.rule.monitor import States, look, program, skip
from bylaw.rule.progression import TooLargeError, values_of
from bylaw.rule.rule import Rule


class EvalQuestion(msgspec.Struct, frozen=True):
    formula: str
    trace: list[dict[str, bool | None]]


class EvalAnswer(msgspec.Struct, frozen=True):
    """One line of output. A value of None depends on unknown predicates."""

    holds: bool | None
    verdict: StateVerdict | None


class LineFailure(msgspec.Struct, frozen=True):
    """The output for an input line that contains an error."""

    error: str


_decoder = msgspec.json.Decoder(EvalQuestion)


def evaluate_formula(formula: Formula, trace: Sequence[Mapping[str, bool | None]]) -> EvalAnswer:
    """Evaluate a formula at the first step of a trace, with the standard LTL-f semantics."""
    if not trace:
        raise FormulaError("the trace is empty", hint="LTL-f needs traces with at least one step")
    try:
        ready = program(formula)
        face = ready.pair.plain
        states: States = (face.start,)
        for step in trace[:-1]:
            states = skip(ready, face, states, step)
        _, report = look(ready, face, states, trace[-1])
    except TooLargeError:
        return EvalAnswer(values_of(formula, trace)[0], None)
    return EvalAnswer(report.holds, report.verdict)


def answer_lines(stdin: BinaryIO, stdout: BinaryIO, answer: Callable[[bytes], object]) -> int:
    """Answer each line of JSON with one line. Return the exit status, which is 3 if a line could not be answered."""
    status = 0
    for number, line in enumerate(stdin):
        reply: object
        try:
            # Some editors write a byte order mark at the start of the file.
            given = line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
            reply = answer(given) if given.strip() else LineFailure("the line is empty")
        except (msgspec.MsgspecError, UnicodeDecodeError, BylawError) as error:
            reply = LineFailure(str(error))
        except RecursionError:
            reply = LineFailure("the line is nested too deeply")
        if isinstance(reply, LineFailure):
            status = 3
        stdout.write(msgspec.json.encode(reply) + b"\n")
        stdout.flush()
    return status


def eval_lines(stdin: BinaryIO, stdout: BinaryIO) -> int:
    def answer(line: bytes) -> EvalAnswer:
        question = _decoder.decode(line)
        return evaluate_formula(parse(question.formula), question.trace)

    return answer_lines(stdin, stdout, answer)


class RuleLine(msgspec.Struct, frozen=True):
    """A rule in a question. The default name is the formula itself."""

    formula: str
    weight: float | None = None
    """The weight of the rule. None means the default of 1."""
    hard: bool = False
    physical: bool = False
    name: str = ""


class MarginQuestion(msgspec.Struct, frozen=True):
    action: str
    rules: tuple[RuleLine, ...]
    evidence: dict[str, bool | float | None] = {}
    """Predicate values. A predicate that is not listed is unknown. The action is assessed as true and as false, even if
    it is listed.
    """
    eps: float = 0.0
    width_cap: int = WIDTH_CAP


def margin_of(question: MarginQuestion) -> dict[str, Any]:
    inference, names = _prepared(question.action, question.rules, question.eps, question.width_cap)
    found = inference.assess(question.evidence)
    told = {name: getattr(found, name) for name in ("safe", "decision", "p_action", "margin", "interval")}
    return told | {"veto": [names[each] for each in found.veto], "conflict": [names[each] for each in found.conflict]}


@lru_cache(maxsize=256)
def _prepared(action: str, rules: tuple[RuleLine, ...], eps: float, width_cap: int) -> tuple[Inference, dict[str, str]]:
    """Return the circuit and the names of its rules. In the circuit, rules are numbered, because two rules may have the
    same name.
    """
    names = {str(number): rule.name or rule.formula for number, rule in enumerate(rules)}
    weighted: list[Rule] = []
    for number, rule in enumerate(rules):
        formula = parse(rule.formula)
        if not is_propositional(formula):
            raise FormulaError(f"`{rule.formula}` refers to other steps", hint="a margin is computed for a single step")
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
    decoder = msgspec.json.Decoder(MarginQuestion)
    return answer_lines(stdin, stdout, lambda line: margin_of(decoder.decode(line)))


Bits = int
"""The values of the rule's predicates at an act."""
ChainPlace = tuple[Bits | None, int]
"""An act, or None before the first act, and the state of the automaton after the act."""

NO_CHANCE = 1e-12
"""Probabilities below this are treated as zero."""
LONGEST = 100_000


class Chain(Struct, frozen=True):
    """A Markov chain: how often one act follows another. The remaining probability is that of the end of the
    episode.
    """

    names: tuple[str, ...]
    first: dict[Bits, float]
    next: dict[Bits, dict[Bits, float]]


class Risk(Struct, frozen=True):
    """The probability of each outcome for one rule."""

    within: tuple[float, ...]
    """The probabilities that a rule is permanently violated within the first k acts, for k = 1, 2, ..."""
    ever: float
    unmet: float
    """The probability that the episode ends while the rule still waits for an event."""


def learn_chain(rule: Rule, episodes: Sequence[Sequence[Mapping[str, bool]]]) -> Chain:
    """Learn the Markov chain of the predicates of the rule from these episodes. Empty episodes are ignored."""
    names = program(rule.formula).names
    first: Counter[Bits] = Counter()
    follows: dict[Bits, Counter[Bits | None]] = defaultdict(Counter)
    for episode in episodes:
        acts = [sum(1 << place for place, name in enumerate(names) if act[name]) for act in episode]
        if acts:
            first[acts[0]] += 1
            for act, after in zip(acts, [*acts[1:], None], strict=True):
                follows[act][after] += 1
    if not first:
        raise FormulaError(f"no acts to learn from for rule `{rule.name}`", hint="pass at least one episode")
    return Chain(
        names,
        {act: count / first.total() for act, count in first.items()},
        {
            act: {after: count / counts.total() for after, count in counts.items() if after is not None}
            for act, counts in follows.items()
        },
    )


def risk(rule: Rule, chain: Chain, *, steps: int = 20) -> Risk:
    """Return the risk that the rule is broken under the chain. Events after the first violation are ignored."""
    ready = program(rule.formula)
    face = ready.pair.plain
    letters = {act: ready.letters(_values(chain, act))[0] for act in (*chain.first, *chain.next)}
    now: dict[ChainPlace, float] = {(None, face.start): 1.0}
    within: list[float] = []
    broken = unmet = 0.0
    # The loop ends: every recorded episode ended, so the probability of continuing falls to zero.
    while len(within) < steps or (sum(now.values()) > NO_CHANCE and len(within) < LONGEST):
        later: dict[ChainPlace, float] = defaultdict(float)
        for (act, state), chance in now.items():
            follows = chain.first if act is None else chain.next.get(act, {})
            unmet += 0.0 if face.accepts(state) else chance * max(0.0, 1.0 - sum(follows.values()))
            for other, share in follows.items():
                reached, verdict = face.step(state, letters[other])
                if verdict == BROKEN:
                    broken += chance * share
                else:
                    later[other, reached] += chance * share
        now = later
        within.append(broken)
    return Risk(tuple(within[:steps]), broken, unmet)


def _values(chain: Chain, act: Bits) -> dict[str, bool]:
    return {name: bool(act >> place & 1) for place, name in enumerate(chain.names)}
