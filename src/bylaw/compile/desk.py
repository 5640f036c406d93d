"""Where stages ask: what is answered already, and what has yet to be asked.

A stage never waits. It asks for what it needs and ends where an answer is missing; everything that was missing is
then asked at once, and the stages run again. So a stage is a pure function of its input and the answers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.llm import Answer, Chat, ModelMessage, Request, Usage
from bylaw.llm.chat import ChatError, bare_json, schema_of, unfenced
from bylaw.llm.chat import render as render_file
from bylaw.policy.yaml import YamlError, read_yaml

Given = ParamSpec("Given")
Item = TypeVar("Item")
Made = TypeVar("Made")
Data = TypeVar("Data")
Judge = Callable[[Data], tuple[Made, list[str]]]
"""Makes something of an answer, and says what is wrong with it, in words for whoever answered."""


FAULTY = "the answer was "
"""How a complaint begins about an answer that was refused, cut or malformed."""


class Outcome(Struct, Generic[Made], frozen=True):
    """What came of a question in the end."""

    made: Made
    complaints: tuple[str, ...]
    """What was still wrong with the last answer."""
    rounds: int
    """How often it was asked."""


class Unanswered(Exception):
    """An answer is missing; its request is wanted at the desk."""


def stage(work: Callable[Given, Made]) -> Callable[Given, Made | None]:
    """Work that may ask: it gives None while an answer is missing."""

    @wraps(work)
    def made(*args: Given.args, **named: Given.kwargs) -> Made | None:
        try:
            return work(*args, **named)
        except Unanswered:
            return None

    return made


class Desk:
    """Answers by request; a request without one is noted as wanted."""

    def __init__(self, at_hand: Callable[[Request], Answer | None] | None = None) -> None:
        self._at_hand = at_hand
        """Finds an answer that is there already, without asking."""
        self._answers: dict[str, Answer] = {}
        self.wanted: dict[str, Request] = {}
        self.asked: dict[str, Request] = {}
        """Every request whose answer was used in the last run."""
        self.usage = Usage()
        """Tokens of these requests and their answers, where whoever answered counted them."""
        self.can_ask = True
        """Whether whoever answers can be asked anything new; recordings cannot."""
        self.gives_up = False
        """Whether what has no answer now counts as having none: its policy is then without a check."""

    def begin(self) -> None:
        """Before the stages run (again)."""
        self.wanted.clear()
        self.asked.clear()
        self.usage = Usage()

    def answer(self, request: Request) -> Answer:
        """The answer; where there is none, the request is wanted, and the work ends."""
        found = self._answers.get(request.key)
        if found is None and self._at_hand is not None:
            found = self._at_hand(request)
        if found is None:
            self.wanted[request.key] = request
            raise Unanswered
        if request.key not in self.asked:
            self.asked[request.key] = request
            self.usage += found.usage
        return found

    def each(self, items: Iterable[Item], work: Callable[[Item], Made]) -> list[Made]:
        """What work makes of each item. All are tried before a missing answer ends it, so that all is asked at once."""
        made: list[Made] = []
        is_missing = False
        for item in items:
            try:
                made.append(work(item))
            except Unanswered:
                is_missing = True
        if is_missing:
            raise Unanswered
        return made

    def attempt(self, work: Callable[[], Made]) -> Made | None:
        """What work makes; None if it needs an answer that nobody can be asked for."""
        wanted = dict(self.wanted)
        try:
            return work()
        except Unanswered:
            if self.can_ask:
                raise
            self.wanted = wanted
            return None

    def fetch(self, chat: Chat) -> None:
        """Ask everything that is wanted; `Pending` where answers have yet to come."""
        requests = list(self.wanted.values())
        answers = chat.ask(requests)
        if answers and all(each.fault == "failed" for each in answers):
            raise ChatError(f"none of {len(answers)} requests was answered: {answers[0].why}")
        self._answers.update(zip((each.key for each in requests), answers, strict=True))

    def ask(
        self,
        prompt: "Prompt[Data]",
        shown: Mapping[str, str],
        judge: Judge[Data, Made],
        *,
        empty: Made,
        attempt: int = 1,
    ) -> Outcome[Made]:
        """Ask a stage's question. An answer that cannot be read makes `empty`."""
        request = prompt.request(shown, attempt)
        return self.converse(request, lambda text: prompt.judged(text, judge, empty), rounds=prompt.rounds)

    def converse(self, request: Request, judge: Judge[str, Made], *, rounds: int) -> Outcome[Made]:
        """Ask, and send back what is wrong, `rounds` times in all at most."""
        for number in range(1, rounds + 1):
            answer = self.answer(request)
            made, complaints = judge(answer.text)
            if answer.fault:
                complaints = _of_fault(answer, complaints)
            if not complaints or number == rounds:
                return Outcome(made, tuple(complaints), number)
            request = sent_back(request, answer.text, complaints)
            if answer.fault == "truncated":
                request = replace(request, max_tokens=2 * request.max_tokens)
        raise AssertionError("a question is asked at least once")


def _of_fault(answer: Answer, complaints: list[str]) -> list[str]:
    """What is wrong with an answer that came back with a fault; of one that is no answer, nothing else is told."""
    if answer.fault == "truncated":
        return [f"{FAULTY}truncated: it was longer than it may be; answer in full, in fewer words"]
    complaint = f"{FAULTY}{answer.fault}: {answer.why}"
    return [complaint] if answer.fault in ("refused", "malformed") else [complaint, *complaints]


def grouped(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Items that are asked about together, `size` at most in one question."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def sent_back(request: Request, answer: str, complaints: Sequence[str]) -> Request:
    """The same question, with the answer it got and what is wrong with it."""
    listed = "\n".join(f"- {each}" for each in complaints)
    ask = "Answer again, in full, in the same form. Keep what was right."
    text = f"Your answer cannot be used as it is:\n\n{listed}\n\n{ask}"
    talk = (*request.messages, ModelMessage("assistant", answer), ModelMessage("user", text))
    return replace(request, messages=talk)


_FOLDER = Path(__file__).parent / "prompts"

render = partial(render_file, _FOLDER)
"""The request that a prompt makes with the values given."""


class Unreadable(Exception):
    """An answer is not in the form asked for; the message says so to whoever answered."""


class Prompt(Struct, Generic[Data], frozen=True):
    """The question of one stage, how its answer is read, and how often it is asked in all."""

    name: str
    """Of the file in `prompts/`."""
    read: Callable[[str], Data]
    """Raises `Unreadable`."""
    max_tokens: int = 4096
    rounds: int = 2
    schema: dict[str, Any] | None = None
    folder: Path = _FOLDER

    def request(self, shown: Mapping[str, str], attempt: int = 1) -> Request:
        """The request with these values."""
        return render_file(
            self.folder, self.name, shown, schema=self.schema, attempt=attempt, max_tokens=self.max_tokens
        )

    def judged(self, text: str, judge: Judge[Data, Made], empty: Made) -> tuple[Made, list[str]]:
        """What an answer makes, and what is wrong with it."""
        try:
            data = self.read(text)
        except Unreadable as error:
            return empty, [str(error)]
        return judge(data)


def json_prompt(name: str, shape: type[Data], *, max_tokens: int = 4096, folder: Path = _FOLDER) -> Prompt[Data]:
    """A question with an answer in JSON of this shape."""

    def read(text: str) -> Data:
        try:
            return msgspec.json.decode(bare_json(text), type=shape)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unreadable(f"not the JSON asked for: {error}") from None

    return Prompt(name, read, max_tokens, schema=schema_of(shape), folder=folder)


def yaml_answer(text: str) -> dict[str, Any]:
    """The YAML of an answer; Unreadable if it is not YAML."""
    try:
        return read_yaml(unfenced(text), file="answer").data
    except YamlError as error:
        raise Unreadable(f"not the YAML asked for: {error}") from None


def prompt_text(name: str) -> str:
    """A part of a prompt that only some requests need."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
