"""Thoughts that a model writes: generated, judged on four rubrics, summed up and refined, round by round.

After PA3, 3.1: a thought passes when every rubric reaches its threshold; what does not pass after the last round is
dropped. All questions of one step are asked together, so that a batch can answer them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from msgspec import Meta, Struct, field

from bylaw.align.matcher import Checked
from bylaw.llm import Answer, Chat, ModelMessage, Request
from bylaw.llm.chat import schema_of

Rubric = Literal["faithfulness", "completeness", "atomicity", "style"]
RUBRICS: tuple[Rubric, ...] = get_args(Rubric)
THRESHOLDS: dict[Rubric, int] = {"faithfulness": 10, "completeness": 9, "atomicity": 7, "style": 6}
"""The paper's Table 6."""
ROUNDS = 4
"""Refinements before a turn is dropped."""
_PROMPTS = Path(__file__).parent / "prompts"
_Shape = TypeVar("_Shape")


class Turn(Struct, frozen=True):
    """One turn that needs a thought, in words."""

    id: str
    policy: str
    conversation: str
    act: str


class Draft(Struct, frozen=True):
    """A generated or refined thought."""

    notes: str
    thought: str


class Review(Struct, frozen=True):
    """One reviewer's word: analysed first, then rated."""

    analysis: str
    rating: Annotated[int, Meta(ge=1, le=10)]
    advice: str = ""


class Fault(Struct, frozen=True):
    """One thing that is wrong with a thought."""

    words: str
    why: str
    grave: Annotated[int, Meta(ge=1, le=5)]


class Summary(Struct, frozen=True):
    """What the reviewers found, for whoever mends it."""

    errors: list[Fault]
    good: str
    advice: str


class Round(Struct, frozen=True):
    """One version of a thought, with its scores."""

    round: int
    """0 for the first version."""
    thought: str
    scores: dict[str, int]
    passed: bool
    faithful: bool | None = None
    """By the guards' evaluation of the turn, where it was checked."""
    complete: bool | None = None


class Written(Struct, frozen=True):
    """What became of one turn."""

    id: str
    thought: str | None
    """None where it was dropped."""
    rounds: list[Round] = field(default_factory=list[Round])
    why: str = ""
    """Why it was dropped."""


class _Work(Struct):
    """A turn on its way."""

    turn: Turn
    thought: str = ""
    reviews: dict[Rubric, Review] = field(default_factory=dict[Rubric, Review])
    summary: Summary | None = None
    rounds: list[Round] = field(default_factory=list[Round])
    dropped: str = ""

    @property
    def has_passed(self) -> bool:
        return bool(self.rounds) and self.rounds[-1].passed


Check = Callable[[str, str], Checked]
"""Checks the thought of a turn, by its id, against the guards."""


def write_thoughts(
    turns: Sequence[Turn],
    chat: Chat,
    *,
    thresholds: Mapping[Rubric, int] = THRESHOLDS,
    rounds: int = ROUNDS,
    check: Check | None = None,
) -> list[Written]:
    """Generate, branch, evaluate, refine, for every turn."""
    works = [_Work(turn) for turn in turns]
    for number in range(rounds + 1):
        going = [work for work in works if not work.has_passed and not work.dropped]
        if not going:
            break
        if number:
            _sum_up(going, chat)
            _draft(going, chat, "refine")
        else:
            _draft(going, chat, "generate")
        going = [work for work in going if not work.dropped]
        _review(going, chat)
        for work in going:
            if not work.dropped:
                work.rounds.append(_scored(work, number, thresholds, check))
    return [_result(work) for work in works]


def requests_for(turns: Sequence[Turn]) -> list[Request]:
    """The questions of the first step, for an estimate."""
    return [request("generate", Draft, _fields(_Work(turn))) for turn in turns]


def _draft(works: Sequence[_Work], chat: Chat, prompt: str) -> None:
    asked = [request(prompt, Draft, _fields(work)) for work in works]
    for work, answer in zip(works, chat.ask(asked), strict=True):
        draft = _read(work, answer, Draft)
        if draft is not None:
            work.thought = " ".join(draft.thought.replace("<think>", "").replace("</think>", "").split())


def _review(works: Sequence[_Work], chat: Chat) -> None:
    pairs: list[tuple[_Work, Rubric]] = [(work, rubric) for work in works for rubric in RUBRICS]
    asked = [request(rubric, Review, _fields(work)) for work, rubric in pairs]
    for (work, rubric), answer in zip(pairs, chat.ask(asked), strict=True):
        review = _read(work, answer, Review)
        if review is not None:
            work.reviews[rubric] = review


def _sum_up(works: Sequence[_Work], chat: Chat) -> None:
    asked = [request("summary", Summary, _fields(work)) for work in works]
    for work, answer in zip(works, chat.ask(asked), strict=True):
        work.summary = _read(work, answer, Summary)


def _read(work: _Work, answer: Answer, shape: type[_Shape]) -> _Shape | None:
    """An answer as data; a turn whose answer cannot be read is dropped, and says why."""
    found = answer.read(shape)
    if found is None:
        work.dropped = answer.why or f"an answer is no {shape.__name__.lower()}: {answer.text[:80]}"
    return found


def _scored(work: _Work, number: int, thresholds: Mapping[Rubric, int], check: Check | None) -> Round:
    scores = {rubric: work.reviews[rubric].rating for rubric in RUBRICS}
    passed = all(scores[rubric] >= least for rubric, least in thresholds.items())
    found = check(work.turn.id, work.thought) if check is not None else None
    faithful, complete = (None, None) if found is None else (found.is_faithful, found.is_complete)
    return Round(number, work.thought, {str(name): score for name, score in scores.items()}, passed, faithful, complete)


def _result(work: _Work) -> Written:
    if work.has_passed:
        return Written(work.turn.id, work.thought, work.rounds)
    why = work.dropped or f"not good enough after {len(work.rounds) - 1} refinements"
    return Written(work.turn.id, None, work.rounds, why)


def request(prompt: str, shape: type, fields: Mapping[str, str]) -> Request:
    """A question, from the prompt's file and what it needs."""
    text = (_PROMPTS / f"{prompt}.md").read_text(encoding="utf-8")
    # Not str.format: policies and conversations hold braces of their own.
    filled = re.sub(r"\{(\w+)\}", lambda match: fields[match[1]], text)
    return Request((ModelMessage("user", filled.strip()),), schema_of(shape), prompt)


def _fields(work: _Work) -> dict[str, Any]:
    reviews = [
        f"{rubric}, rated {review.rating} of 10: {review.analysis} {review.advice}".strip()
        for rubric, review in work.reviews.items()
    ]
    fields = {"thought": work.thought, "reviews": "\n\n".join(reviews), "act": work.turn.act}
    if work.summary is not None:
        errors = [f"- ({each.grave}/5) {each.words}: {each.why}" for each in work.summary.errors]
        fields["summary"] = "\n".join([*errors, f"Good: {work.summary.good}", f"Advice: {work.summary.advice}"])
    return {**fields, "conversation": work.turn.conversation, "policy": work.turn.policy}
