"""`bylaw align thoughts`: a thought for every turn of recorded conversations, verified or written by a model."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct, field

from bylaw.align.bearing import Bearing, next_write
from bylaw.align.logged import acts, place_of
from bylaw.align.matcher import Checked, Matcher, check
from bylaw.align.thought import think
from bylaw.align.written import ROUNDS, THRESHOLDS, Rubric, Turn, requests_for, write_thoughts
from bylaw.errors import UsageError
from bylaw.llm.meter import estimate
from bylaw.llm.source import open_chat
from bylaw.pack import Pack
from bylaw.trace import Trajectory
from bylaw.trace.event import Call, Event, Message, Result

NO_WAY = "the call was not permitted on what was seen, or nobody had agreed to it"
"""Why a write has no verified thought."""


class Options(Struct, frozen=True):
    """What is asked for."""

    seed: int = 1
    limit: int | None = None
    written: bool = False
    llm: str = ""
    kept: Path | None = None
    thresholds: dict[Rubric, int] = field(default_factory=lambda: dict(THRESHOLDS))
    rounds: int = ROUNDS
    whole_policy: bool = False
    dry_run: bool = False


class _Place(Struct, frozen=True):
    """A turn, with its verified thought and what that rests on."""

    id: str
    before: tuple[Event, ...]
    turn: tuple[Event, ...]
    thought: str
    bearing: Bearing


def make_thoughts(pack: Pack, trajectories: Iterable[Trajectory], options: Options) -> Iterator[bytes]:
    """One JSON line for every turn."""
    places = islice(_places(pack, trajectories, options.seed), options.limit)
    if not options.written:
        for place in places:
            yield _line(place, {"thought": place.thought} if place.thought else {"thought": None, "why": NO_WAY})
        return
    found = list(places)
    policy = policy_text(pack, whole=options.whole_policy)
    turns = [Turn(place.id, policy, conversation_text(place.before), conversation_text(place.turn)) for place in found]
    if options.dry_run:
        taken = estimate(requests_for(turns))
        told = {"turns": len(turns), "first_step": str(taken), "requests_at_most": _most(turns, options.rounds)}
        yield msgspec.json.encode(told) + b"\n"
        return
    reader = Matcher(pack)
    by_id = {place.id: place for place in found}

    def checked(name: str, thought: str) -> Checked:
        place = by_id[name]
        return check(pack, thought, place.bearing, reader, conversation_text((*place.before, *place.turn)))

    chat = open_chat(options.llm, kept=options.kept)
    results = write_thoughts(turns, chat, thresholds=options.thresholds, rounds=options.rounds, check=checked)
    for place, result in zip(found, results, strict=True):
        yield _line(place, {"thought": result.thought, "rounds": result.rounds, "why": result.why})


class _ReadLine(Struct, frozen=True):
    """What data takes from a line of thoughts."""

    turn: str
    thought: str | None


def read_thoughts(path: Path) -> dict[str, str | None]:
    """The thoughts of a file that `bylaw align thoughts` wrote, by turn."""
    found: dict[str, str | None] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            read = msgspec.json.decode(line, type=_ReadLine)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = "a file that `bylaw align thoughts --out` wrote"
            raise UsageError(f"not a thought: {error}", place=f"{path}:{number}", hint=hint) from None
        if read.thought is not None and ("<think>" in read.thought or "</think>" in read.thought):
            raise UsageError("a thought stands without its tags", place=f"{path}:{number}")
        found[read.turn] = read.thought
    return found


def _most(turns: list[Turn], rounds: int) -> int:
    """Requests where every turn takes every round: a draft and four reviews, each time after the first a summary."""
    return len(turns) * (5 + 6 * rounds)


def _places(pack: Pack, trajectories: Iterable[Trajectory], seed: int) -> Iterator[_Place]:
    for trajectory in trajectories:
        events = tuple(trajectory.events)
        for span in acts(events):
            serving = next_write(pack, events, span.start)
            thought = think(pack, events, span, serving, seed=f"{seed}/{trajectory.id}", working=True)
            turn = events[span.start : span.end]
            yield _Place(place_of(trajectory, span), events[: span.start], turn, thought.text, thought.bearing)


def _line(place: _Place, more: dict[str, object]) -> bytes:
    found = place.bearing
    return (
        msgspec.json.encode({"turn": place.id, "purpose": found.purpose, "required": sorted(found.required), **more})
        + b"\n"
    )


_LONGEST = 1500
"""Characters of one result that are shown."""


def conversation_text(events: Sequence[Event]) -> str:
    """A conversation, a line an event."""
    return "\n".join(event_text(event) for event in events) or "(nothing yet)"


def event_text(event: Event) -> str:
    """One event on a line."""
    match event:
        case Message():
            return f"{'User' if event.by == 'user' else 'Assistant'}: {_shortened(event.text)}"
        case Call():
            return f"Assistant calls {event.tool} {msgspec.json.encode(event.arguments).decode()}"
        case Result():
            content = event.content if isinstance(event.content, str) else bytes(event.content).decode()
            return f"Result: {_shortened(content) if event.captured else '(not recorded)'}"


def policy_text(pack: Pack, *, whole: bool = False) -> str:
    """The policy: the whole document, or each policy in a sentence."""
    if whole and pack.document is not None:
        return pack.document.text.strip()
    return "\n".join(f"- {policy.definition}" for policy in pack.policies.values() if policy.kind != "knowledge")


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else plain[:_LONGEST] + " ..."
