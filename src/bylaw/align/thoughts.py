"""Implements `bylaw align thoughts`: a thought for every recorded turn, either verified or written by a model."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct, field

from bylaw.align.lesson import acts, place_of
from bylaw.align.matcher import Checked, Matcher, check
from bylaw.align.thought import think
from bylaw.align.turn_evidence import TurnEvidence, next_write
from bylaw.errors import UsageError
from bylaw.llm import Chat, ModelMessage, Request
from bylaw.llm.chat import estimate, schema_of
from bylaw.llm.source import open_chat
from bylaw.pack import Pack
from bylaw.trace import Trajectory
from bylaw.trace.event import Call, Event, Message, Result

Rubric = Literal["faithfulness", "completeness", "atomicity", "style"]
RUBRICS: tuple[Rubric, ...] = get_args(Rubric)
THRESHOLDS: dict[Rubric, int] = {"faithfulness": 10, "completeness": 9, "atomicity": 7, "style": 6}
"""The minimum ratings, from Table 6 of the paper."""
ROUNDS = 4
"""The maximum number of times to refine a thought before its turn is dropped."""
_PROMPTS = Path(__file__).parent / "prompts"
_Shape = TypeVar("_Shape")


class Turn(Struct, frozen=True):
    """A turn that needs a thought, described in words."""

    id: str
    policy: str
    conversation: str
    act: str


class Draft(Struct, frozen=True):
    """A generated or refined thought."""

    notes: str
    thought: str


class Review(Struct, frozen=True):
    """A reviewer's analysis and rating."""

    analysis: str
    rating: Annotated[int, Meta(ge=1, le=10)]
    advice: str = ""


class Fault(Struct, frozen=True):
    words: str
    why: str
    grave: Annotated[int, Meta(ge=1, le=5)]


class Summary(Struct, frozen=True):
    """The reviewers' findings, summarised for refining the thought."""

    errors: list[Fault]
    good: str
    advice: str


class Round(Struct, frozen=True):
    """A version of a thought with its ratings."""

    round: int
    """The number of refinements. 0 for the first version."""
    thought: str
    scores: dict[str, int]
    passed: bool
    faithful: bool | None = None
    """Whether the guards' findings confirm the thought. None if this was not checked."""
    complete: bool | None = None


class Written(Struct, frozen=True):
    id: str
    thought: str | None
    """The thought, or None if its turn was dropped."""
    rounds: list[Round] = field(default_factory=list[Round])
    why: str = ""
    """The reason why the turn was dropped."""


class _Work(Struct):
    turn: Turn
    thought: str = ""
    reviews: dict[str, Review] = field(default_factory=dict[str, Review])
    summary: Summary | None = None
    rounds: list[Round] = field(default_factory=list[Round])
    dropped: str = ""

    @property
    def is_done(self) -> bool:
        return bool(self.dropped or (self.rounds and self.rounds[-1].passed))


Check = Callable[[str, str], Checked]
"""Checks the thought for a turn against the guards. The id names the turn."""


def write_thoughts(
    turns: Sequence[Turn],
    chat: Chat,
    *,
    thresholds: Mapping[Rubric, int] = THRESHOLDS,
    rounds: int = ROUNDS,
    check: Check | None = None,
) -> list[Written]:
    """Generate, branch, evaluate and refine a thought for every turn. All questions of one step are asked together."""
    works = [_Work(turn) for turn in turns]
    for number in range(rounds + 1):
        if number:
            for work, _, summary in _answers(works, chat, ("summary",), Summary):
                work.summary = summary
        for work, _, draft in _answers(works, chat, ("refine" if number else "generate",), Draft):
            work.thought = " ".join(draft.thought.replace("<think>", "").replace("</think>", "").split())
        for work, rubric, review in _answers(works, chat, RUBRICS, Review):
            work.reviews[rubric] = review
        for work in works:
            if not work.is_done:
                work.rounds.append(_scored(work, number, thresholds, check))
    return [_result(work) for work in works]


def requests_for(turns: Sequence[Turn]) -> list[Request]:
    """Return the questions of the first step, which are used to estimate the cost."""
    return [request("generate", Draft, _fields(_Work(turn))) for turn in turns]


def _answers(
    works: Sequence[_Work], chat: Chat, prompts: Sequence[str], shape: type[_Shape]
) -> list[tuple[_Work, str, _Shape]]:
    """Return a model's answers to prompts for all unfinished turns. A turn is dropped if its answer cannot be
    parsed.
    """
    pairs = [(work, prompt) for work in works if not work.is_done for prompt in prompts]
    asked = [request(prompt, shape, _fields(work)) for work, prompt in pairs]
    found: list[tuple[_Work, str, _Shape]] = []
    for (work, prompt), answer in zip(pairs, chat.ask(asked) if asked else (), strict=True):
        data = answer.read(shape)
        if data is None:
            work.dropped = answer.why or f"an answer is not a valid {shape.__name__.lower()}: {answer.text[:80]}"
        else:
            found.append((work, prompt, data))
    return found


def _scored(work: _Work, number: int, thresholds: Mapping[Rubric, int], check: Check | None) -> Round:
    scores = {name: review.rating for name, review in work.reviews.items()}
    passed = all(scores[rubric] >= least for rubric, least in thresholds.items())
    found = check(work.turn.id, work.thought) if check is not None else None
    faithful, complete = (None, None) if found is None else (found.is_faithful, found.is_complete)
    return Round(number, work.thought, scores, passed, faithful, complete)


def _result(work: _Work) -> Written:
    if work.rounds and work.rounds[-1].passed:
        return Written(work.turn.id, work.thought, work.rounds)
    why = work.dropped or f"not good enough after {len(work.rounds) - 1} refinements"
    return Written(work.turn.id, None, work.rounds, why)


def request(prompt: str, shape: type, fields: Mapping[str, str]) -> Request:
    text = (_PROMPTS / f"{prompt}.md").read_text(encoding="utf-8")
    # `str.format` would fail on braces in policies or conversations.
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


NO_WAY = "the facts seen did not permit the call, or the user had not agreed to it"
"""The reason why a write has no verified thought."""


class _Place(Struct, frozen=True):
    id: str
    before: tuple[Event, ...]
    turn: tuple[Event, ...]
    thought: str
    evidence: TurnEvidence


def verified_lines(
    pack: Pack, trajectories: Iterable[Trajectory], *, seed: int, limit: int | None = None
) -> Iterator[bytes]:
    """Yield one JSON line per turn, with a thought derived from the guards."""
    for place in islice(_places(pack, trajectories, seed), limit):
        yield _line(place, {"thought": place.thought} if place.thought else {"thought": None, "why": NO_WAY})


def written_lines(
    pack: Pack,
    trajectories: Iterable[Trajectory],
    *,
    seed: int,
    limit: int | None = None,
    llm: str = "",
    kept: Path | None = None,
    thresholds: Mapping[Rubric, int] = THRESHOLDS,
    rounds: int = ROUNDS,
    whole_policy: bool = False,
    dry_run: bool = False,
) -> Iterator[bytes]:
    """Yield one JSON line per turn, with a thought written by a model. A dry run yields only the cost."""
    found = list(islice(_places(pack, trajectories, seed), limit))
    policy = policy_text(pack, whole=whole_policy)
    turns = [Turn(place.id, policy, conversation_text(place.before), conversation_text(place.turn)) for place in found]
    if dry_run:
        taken = estimate(requests_for(turns))
        # A turn needs at most one draft and four reviews. Each refinement also needs a summary.
        most = len(turns) * (5 + 6 * rounds)
        told = {"turns": len(turns), "first_step": str(taken), "requests_at_most": most}
        yield msgspec.json.encode(told) + b"\n"
        return
    reader = Matcher(pack)
    by_id = {place.id: place for place in found}

    def checked(name: str, thought: str) -> Checked:
        place = by_id[name]
        return check(pack, thought, place.evidence, reader, conversation_text((*place.before, *place.turn)))

    chat = open_chat(llm, kept=kept)
    results = write_thoughts(turns, chat, thresholds=thresholds, rounds=rounds, check=checked)
    for place, result in zip(found, results, strict=True):
        yield _line(place, {"thought": result.thought, "rounds": result.rounds, "why": result.why})


class _ReadLine(Struct, frozen=True):
    turn: str
    thought: str | None


def read_thoughts(path: Path) -> dict[str, str | None]:
    """Return the thoughts in a file from `bylaw align thoughts`, by turn."""
    found: dict[str, str | None] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            read = msgspec.json.decode(line, type=_ReadLine)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = "pass a file written by `bylaw align thoughts --out`"
            raise UsageError(f"not a thought: {error}", place=f"{path}:{number}", hint=hint) from None
        if read.thought is not None and ("<think>" in read.thought or "</think>" in read.thought):
            raise UsageError("a thought must not contain `<think>` tags", place=f"{path}:{number}")
        found[read.turn] = read.thought
    return found


def _places(pack: Pack, trajectories: Iterable[Trajectory], seed: int) -> Iterator[_Place]:
    for trajectory in trajectories:
        events = tuple(trajectory.events)
        for span in acts(events):
            target = next_write(pack, events, span.start)
            thought = think(pack, events, span, target, seed=f"{seed}/{trajectory.id}")
            turn = events[span.start : span.end]
            yield _Place(place_of(trajectory, span), events[: span.start], turn, thought.text, thought.evidence)


def _line(place: _Place, more: dict[str, object]) -> bytes:
    found = place.evidence
    return (
        msgspec.json.encode({"turn": place.id, "purpose": found.purpose, "required": sorted(found.required), **more})
        + b"\n"
    )


_LONGEST = 1500
"""The maximum length of a result in a prompt, in characters."""


def conversation_text(events: Sequence[Event]) -> str:
    """Return a conversation, one event per line."""
    return "\n".join(map(_event_text, events)) or "(nothing yet)"


def _event_text(event: Event) -> str:
    match event:
        case Message():
            return f"{'User' if event.by == 'user' else 'Assistant'}: {_shortened(event.text)}"
        case Call():
            return f"Assistant calls {event.tool} {msgspec.json.encode(event.arguments).decode()}"
        case Result():
            return f"Result: {_shortened(event.text) if event.captured else '(not recorded)'}"


def policy_text(pack: Pack, *, whole: bool = False) -> str:
    """Return the policy: the whole document, or one sentence per policy."""
    if whole and pack.document is not None:
        return pack.document.text.strip()
    return "\n".join(f"- {policy.definition}" for policy in pack.policies.values() if policy.kind != "knowledge")


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else plain[:_LONGEST] + " ..."
