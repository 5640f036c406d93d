"""Computes the reward for a model output from its text and the gold turn.

By default, replies are graded by their slots and thoughts by their words. As in the paper, a model can judge both
instead.
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
    """Raised if a text was expected that cannot be graded."""


class Gold(Struct, frozen=True):
    """The correct turn, with the data from an RL row that the reward needs."""

    required: tuple[str, ...]
    expected: dict[str, Any]
    """`{"tool": ..., "arguments": {...}}` or `{"text": ...}`."""
    slots: tuple[Slot, ...] = ()
    prompt: tuple[dict[str, Any], ...] = ()
    """The messages before the turn. The guards read the facts of the case from them."""

    def due(self) -> ToolCall | Text:
        return msgspec.convert(self.expected, ToolCall if "tool" in self.expected else Text)

    @property
    def needs_judge(self) -> bool:
        """Whether only a judge can grade the output, because the expected output is a text without slots."""
        return "tool" not in self.expected and not self.slots


class Grader:
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
        """Return the reward for an output. Raises UngradedError if a text was expected and cannot be graded."""
        if gold.needs_judge and self._judge is None:
            hint = "have a judge model grade it (--judge MODEL), or leave the row out"
            raise UngradedError("this text has no slots, so code cannot grade it", hint=hint)
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
        """Ask the judge about many outputs at once. Does nothing without a judge."""
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

    def _mark(self, predicted: ToolCall | Text, due: Text, slots: Sequence[Slot]) -> float:
        if isinstance(predicted, ToolCall) or not predicted.text:
            return 0.0
        if self._judge is not None:
            return self._judge.mark(due.text, predicted.text)
        return 10 * f1(slots, predicted.text, gold=due.text)

    def _verdict(self, predicted: ToolCall | Text, prompt: Sequence[Mapping[str, Any]]) -> Verdict | None:
        """Return the guards' verdict on a write, given the facts that the agent has seen. None for any other turn."""
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
    """Return the gold turn of a row. A field may be JSON text, because some trainers store only text."""
    known = {name: row[name] for name in ("required", "expected", "slots", "prompt") if row.get(name) is not None}
    parsed = {
        name: msgspec.json.decode(value) if isinstance(value, str) and name != "prompt" else value
        for name, value in known.items()
    }
    return msgspec.convert(parsed, Gold)


def _predicted(read: Output) -> ToolCall | Text:
    return ToolCall(read.tool, read.arguments) if read.tool is not None else Text(read.text or read.rest)


def _thought(read: Output, output: str) -> str:
    """Return the thought. An unclosed thought extends to the end of the output, and its full length is penalised."""
    if read.thought is not None:
        return read.thought
    _, opened, rest = output.partition("<think>")
    return rest if opened else ""


def _shown(prompt: Sequence[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    texts = [text_of(message.get("content")) for message in prompt if message.get("role") in ("user", "tool")]
    return frozenset(value.key for text in texts for value in values_in(text))


class Mark(Struct, frozen=True):
    analysis: str
    mark: Annotated[float, Meta(ge=0, le=10)]


class Recalled(Struct, frozen=True):
    """A model's answer about a thought: the ids of correctly stated policies, and the made-up rules."""

    recalled: tuple[str, ...]
    made_up: tuple[str, ...]


_Shape = TypeVar("_Shape", Mark, Recalled)


def mark_question(due: str, given: str) -> Request:
    """Return the question that asks a model to compare a reply with the expected reply."""
    return request("mark", Mark, {"due": due, "given": given})


def recall_question(thought: str, policies: str) -> Request:
    """Return the question which policies a thought states and which rules it makes up (prompts F.10 and F.11 of the
    paper).
    """
    return request("recall", Recalled, {"policies": policies, "thought": thought})


class ModelJudge:
    """Asks a model to grade replies and thoughts. Each question is asked only once."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._answers: dict[str, Answer] = {}

    def mark(self, due: str, given: str) -> float:
        """Return the rating of a reply, from 0 to 10."""
        return self._answer(mark_question(due, given), Mark).mark

    def read(self, thought: str, policies: str) -> Mentions:
        """Return the policies and the made-up rules in a thought."""
        if not thought:
            return Mentions(frozenset(), ())
        found = self._answer(recall_question(thought, policies), Recalled)
        return Mentions(frozenset(found.recalled), found.made_up)

    def prepare(self, asked: Iterable[Request]) -> None:
        new = list({each.key: each for each in asked if each.key not in self._answers}.values())
        if new:
            self._answers |= {each.key: answer for each, answer in zip(new, self._chat.ask(new), strict=True)}

    def _answer(self, asked: Request, shape: type[_Shape]) -> _Shape:
        """Return the answer as data. An answer that cannot be parsed earns no reward."""
        self.prepare([asked])
        answer = self._answers[asked.key]
        data = answer.read(shape)
        if data is None:
            why = answer.why or f"no {shape.__name__.lower()}: {answer.text[:80]}"
            raise ChatError(f"the judge's answer cannot be read: {why}", place=asked.key)
        return data
