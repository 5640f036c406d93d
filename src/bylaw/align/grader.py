"""The reward of what a model wrote at a turn: all that `reward` needs, found from the text and the gold turn.

Replies are marked by their slots, or, as in the paper, by a model.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from bylaw.align.matcher import Matcher
from bylaw.align.output import Output, events_of, read_output, text_of
from bylaw.align.reward import FLOOR, Judged, Reward, Switches, Text, ToolCall, Turn, score
from bylaw.align.slot import Slot, f1
from bylaw.align.stem import values_in
from bylaw.align.written import request
from bylaw.engine.session import Session
from bylaw.engine.verdict import Verdict, worst
from bylaw.errors import UsageError
from bylaw.llm import Chat, Request
from bylaw.llm.chat import ChatError
from bylaw.pack import Pack
from bylaw.trace.event import Call

Judge = Callable[[str, str], float]
"""Marks a reply from 0 to 10 beside the gold reply (the paper's way, with a model)."""


class UngradedError(UsageError):
    """A text was due, and nothing says what a good one tells."""


class Said(Struct, frozen=True):
    """The reply that was due."""

    text: str


class Gold(Struct, frozen=True):
    """One turn as it should be: a row of the data for reinforcement learning, as far as the reward needs it."""

    required: tuple[str, ...]
    expected: dict[str, Any]
    """`{"tool": ..., "arguments": {...}}` or `{"text": ...}`."""
    slots: tuple[Slot, ...] = ()
    prompt: tuple[dict[str, Any], ...] = ()
    """The messages before the turn: facts of the case stand in them, and the guards look at them."""

    def due(self) -> ToolCall | Said:
        """What was due."""
        return msgspec.convert(self.expected, ToolCall if "tool" in self.expected else Said)

    @property
    def needs_judge(self) -> bool:
        """Whether only a judge can mark what comes: a text is due, and no slots say what it must tell."""
        return "tool" not in self.expected and not self.slots


class Grader:
    """Grades outputs against gold turns under one pack."""

    def __init__(
        self,
        pack: Pack,
        *,
        judge: Judge | None = None,
        switches: Switches = FLOOR,
    ) -> None:
        self._pack = pack
        self._reader = Matcher(pack)
        self._judge = judge
        self._switches = switches

    def grade(self, output: str, gold: Gold) -> Reward:
        """The reward of one output; UngradedError where a text was due and there is nothing to mark it by."""
        if gold.needs_judge and self._judge is None:
            hint = "mark it with a judge (--judge MODEL), or leave the row out"
            raise UngradedError("nothing says what a text must tell here", hint=hint)
        read = read_output(output)
        thought = _thought(read, output)
        found = self._reader.mentions(thought, _shown(gold.prompt))
        predicted = _predicted(read)
        due = gold.due()
        expected = due if isinstance(due, ToolCall) else Judged(self._mark(predicted, due, gold.slots))
        verdict = self._verdict(predicted, gold.prompt) if self._switches.compliance else None
        turn = Turn(
            frozenset(gold.required),
            found.recalled,
            len(found.made_up),
            len(thought.split()),
            read.is_formatted,
            expected,
            predicted,
            verdict,
        )
        return score(turn, self._switches)

    def asked(self, output: str, gold: Gold) -> tuple[str, str] | None:
        """What a judge would be asked about an output: the reply that was due, and the one that came."""
        due, predicted = gold.due(), _predicted(read_output(output))
        if self._judge is None or isinstance(due, ToolCall) or isinstance(predicted, ToolCall) or not predicted.text:
            return None
        return due.text, predicted.text

    def _mark(self, predicted: ToolCall | Text, due: Said, slots: Sequence[Slot]) -> float:
        if isinstance(predicted, ToolCall) or not predicted.text:
            return 0.0
        if self._judge is not None:
            return min(10.0, max(0.0, self._judge(due.text, predicted.text)))
        return 10 * f1(slots, predicted.text, gold=due.text)

    def _verdict(self, predicted: ToolCall | Text, prompt: Sequence[Mapping[str, Any]]) -> Verdict | None:
        """What the guards say of a write on what was seen; None where nothing is written."""
        if isinstance(predicted, Text):
            return None
        tool = self._pack.schema.tools.get(predicted.tool)
        if tool is not None and tool.effect != "write":
            return None
        session = Session(self._pack, mode="none")
        session.observe_all(events_of(prompt))
        session.judge(Call(predicted.tool, predicted.arguments, turn=len(prompt) + 1))
        return worst([verdict.determined for verdict in session.settle()[-1:]])


def gold_of(row: Mapping[str, Any]) -> Gold:
    """The gold turn of a row of data; a field may hold JSON text, as some trainers keep only texts."""
    known = {name: row[name] for name in ("required", "expected", "slots", "prompt") if row.get(name) is not None}
    parsed = {
        name: msgspec.json.decode(value) if isinstance(value, str) and name != "prompt" else value
        for name, value in known.items()
    }
    return msgspec.convert(parsed, Gold)


def _predicted(read: Output) -> ToolCall | Text:
    return ToolCall(read.tool, read.arguments) if read.tool is not None else Text(read.text or read.rest)


def _thought(read: Output, output: str) -> str:
    """The thought; one that is never closed is a thought to its end, and costs what it is long."""
    if read.thought is not None:
        return read.thought
    _, opened, rest = output.partition("<think>")
    return rest if opened else ""


def _shown(prompt: Sequence[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """The values that users and tools gave."""
    texts = [text_of(message.get("content")) for message in prompt if message.get("role") in ("user", "tool")]
    return frozenset(value.key for text in texts for value in values_in(text))


_Shape = TypeVar("_Shape")


class Mark(Struct, frozen=True):
    """A model's mark of a reply."""

    analysis: str
    mark: Annotated[float, Meta(ge=0, le=10)]


class ModelJudge:
    """Marks replies by asking a model; a `Judge` of the grader."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, due: str, given: str) -> float:
        self.prepare([(due, given)])
        return self._known[due, given]

    def prepare(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Ask about many replies together; each is marked once, however often it comes."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        asked = [request("mark", Mark, {"due": due, "given": given}) for due, given in new]
        self._known |= {pair: found.mark for pair, found in zip(new, _ask(self._chat, asked, Mark), strict=True)}


def _ask(chat: Chat, asked: Sequence[Request], shape: type[_Shape]) -> list[_Shape]:
    """The answers as data; one that cannot be read gives no reward."""
    if not asked:
        return []
    found: list[_Shape] = []
    for question, answer in zip(asked, chat.ask(asked), strict=True):
        data = answer.read(shape)
        if data is None:
            why = answer.why or f"no {shape.__name__.lower()}: {answer.text[:80]}"
            raise ChatError(f"the judge's answer cannot be read: {why}", place=question.key)
        found.append(data)
    return found
