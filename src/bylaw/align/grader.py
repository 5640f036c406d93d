"""The reward of what a model wrote at a turn: all that `reward` needs, found from the text and the gold turn.

Replies are marked by their slots and thoughts read by their words; or both, as in the paper, by a model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from bylaw.align.matcher import Matcher, Mentions
from bylaw.align.output import Output, events_of, read_output, text_of
from bylaw.align.reward import FLOOR, Judged, Reward, Switches, Text, ToolCall, Turn, score
from bylaw.align.slot import Slot, f1, values_in
from bylaw.align.thoughts import request
from bylaw.engine.session import Session
from bylaw.engine.verdict import Verdict, worst
from bylaw.errors import UsageError
from bylaw.llm import Answer, Chat, Request
from bylaw.llm.chat import ChatError
from bylaw.pack import Pack
from bylaw.trace.event import Call


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
        judge: "ModelJudge | None" = None,
        switches: Switches = FLOOR,
    ) -> None:
        self._pack = pack
        self._reader = Matcher(pack)
        self._policies = "\n".join(
            f"- {each.id}: {each.definition}" for each in pack.policies.values() if each.kind != "knowledge"
        )
        self._judge = judge
        self._switches = switches

    def grade(self, output: str, gold: Gold) -> Reward:
        """The reward of one output; UngradedError where a text was due and there is nothing to mark it by."""
        if gold.needs_judge and self._judge is None:
            hint = "mark it with a judge (--judge MODEL), or leave the row out"
            raise UngradedError("no slots to grade this text by", hint=hint)
        self.prepare([(output, gold)])
        read = read_output(output)
        thought = _thought(read, output)
        found = (
            self._judge.read(thought, self._policies)
            if self._judge is not None
            else self._reader.mentions(thought, _shown(gold.prompt))
        )
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

    def prepare(self, graded: Iterable[tuple[str, Gold]]) -> None:
        """Ask the judge about many outputs together; without one there is nothing to ask."""
        if self._judge is None:
            return
        asked: list[Request] = []
        for output, gold in graded:
            read = read_output(output)
            if thought := _thought(read, output):
                asked.append(recall_question(thought, self._policies))
            due, predicted = gold.due(), _predicted(read)
            if not isinstance(due, ToolCall) and not isinstance(predicted, ToolCall) and predicted.text:
                asked.append(mark_question(due.text, predicted.text))
        self._judge.prepare(asked)

    def _mark(self, predicted: ToolCall | Text, due: Said, slots: Sequence[Slot]) -> float:
        if isinstance(predicted, ToolCall) or not predicted.text:
            return 0.0
        if self._judge is not None:
            return self._judge.mark(due.text, predicted.text)
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


class Mark(Struct, frozen=True):
    """A model's mark of a reply."""

    analysis: str
    mark: Annotated[float, Meta(ge=0, le=10)]


class Recalled(Struct, frozen=True):
    """The policies that a model finds in a thought: the ids of those it states correctly, and rules of no policy."""

    recalled: tuple[str, ...]
    made_up: tuple[str, ...]


_Shape = TypeVar("_Shape", Mark, Recalled)


def mark_question(due: str, given: str) -> Request:
    """Asks how good a reply is next to the one that was due."""
    return request("mark", Mark, {"due": due, "given": given})


def recall_question(thought: str, policies: str) -> Request:
    """Asks which policies a thought states, and which it makes up (the paper's prompts F.10 and F.11)."""
    return request("recall", Recalled, {"policies": policies, "thought": thought})


class ModelJudge:
    """Marks replies and reads thoughts by asking a model. It is asked each question once."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._answers: dict[str, Answer] = {}

    def mark(self, due: str, given: str) -> float:
        """How good a reply is, from 0 to 10."""
        return self._answer(mark_question(due, given), Mark).mark

    def read(self, thought: str, policies: str) -> Mentions:
        """Which policies a thought states, and which it makes up."""
        if not thought:
            return Mentions(frozenset(), ())
        found = self._answer(recall_question(thought, policies), Recalled)
        return Mentions(frozenset(found.recalled), found.made_up)

    def prepare(self, asked: Iterable[Request]) -> None:
        """Ask many questions together."""
        new = list({each.key: each for each in asked if each.key not in self._answers}.values())
        if new:
            self._answers |= {each.key: answer for each, answer in zip(new, self._chat.ask(new), strict=True)}

    def _answer(self, asked: Request, shape: type[_Shape]) -> _Shape:
        """The answer as data; one that cannot be read gives no reward."""
        self.prepare([asked])
        answer = self._answers[asked.key]
        data = answer.read(shape)
        if data is None:
            why = answer.why or f"no {shape.__name__.lower()}: {answer.text[:80]}"
            raise ChatError(f"the judge's answer cannot be read: {why}", place=asked.key)
        return data
