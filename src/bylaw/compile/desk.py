"""Answers the questions of the compiler's stages, and collects the questions without an answer.

A stage never waits for an answer. It asks its questions and stops if an answer is missing. All missing answers are then
requested together, and the stages run again. Each stage is therefore a pure function of its input and the answers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import BylawError
from bylaw.llm import Answer, Chat, ModelMessage, Request, Usage
from bylaw.llm.chat import ChatError, bare_json, render, schema_of, unfenced
from bylaw.policy.yaml import YamlError, read_yaml

Given = ParamSpec("Given")
Item = TypeVar("Item")
Made = TypeVar("Made")
Data = TypeVar("Data")
Judge = Callable[[Data], tuple[Made, list[str]]]
"""Interprets an answer and lists its errors, so that the model can correct them."""


FAULTY = "the answer was "
"""How a complaint about a refused, truncated or malformed answer begins."""


class Outcome(Struct, Generic[Made], frozen=True):
    made: Made
    complaints: tuple[str, ...]
    """The complaints that remain about the last answer."""


class Unanswered(Exception):
    """Raised if an answer is missing. Its request has been recorded."""


def stage(work: Callable[Given, Made]) -> Callable[Given, Made | None]:
    """Decorate a function that may ask questions so that it returns None while an answer is missing."""

    @wraps(work)
    def made(*args: Given.args, **named: Given.kwargs) -> Made | None:
        try:
            return work(*args, **named)
        except Unanswered:
            return None

    return made


class Desk:
    """Holds answers by request, and records each request that has no answer."""

    def __init__(self, at_hand: Callable[[Request], Answer | None] | None = None) -> None:
        self._at_hand = at_hand
        """Looks up an existing answer without asking the question."""
        self._answers: dict[str, Answer] = {}
        self.wanted: dict[str, Request] = {}
        self.asked: dict[str, Request] = {}
        """Every request whose answer was used in the last run."""
        self.usage = Usage()
        """The tokens used by these requests and answers, if known."""
        self.gives_up = False
        """Whether to continue without missing answers. The affected policies then have no check."""

    def begin(self) -> None:
        self.wanted.clear()
        self.asked.clear()
        self.usage = Usage()

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request. If there is none, record the request and stop the stage."""
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
        """Apply `work` to each item.

        If an answer is missing, the remaining items are still tried before the stage stops, so that all requests are
        sent together.
        """
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

    def fetch(self, chat: Chat) -> None:
        """Ask all recorded questions. Raises `Pending` if answers are still missing."""
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
        """Ask a question and return the judged answer.

        A faulty answer is sent back to the model with complaints, up to the prompt's number of rounds. If the last
        answer is unreadable, `empty` is returned.
        """
        request = prompt.request(shown, attempt)
        for number in range(1, prompt.rounds + 1):
            answer = self.answer(request)
            made, complaints = prompt.judged(answer.text, judge, empty)
            if answer.fault:
                complaints = _of_fault(answer, complaints)
            if not complaints or number == prompt.rounds:
                return Outcome(made, tuple(complaints))
            request = sent_back(request, answer.text, complaints)
            if answer.fault == "truncated":
                request = replace(request, max_tokens=2 * request.max_tokens)
        raise AssertionError("a question is asked at least once")


def _of_fault(answer: Answer, complaints: list[str]) -> list[str]:
    """Return the complaints about a faulty answer. A refused or malformed answer gets a single complaint."""
    if answer.fault == "truncated":
        return [f"{FAULTY}truncated: it was longer than it may be; answer in full, in fewer words"]
    complaint = f"{FAULTY}{answer.fault}: {answer.why}"
    return [complaint] if answer.fault in ("refused", "malformed") else [complaint, *complaints]


def grouped(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def sent_back(request: Request, answer: str, complaints: Sequence[str]) -> Request:
    """Return the question again, with its earlier answer and the complaints about it."""
    listed = "\n".join(f"- {each}" for each in complaints)
    ask = "Answer again, in full, in the same form. Keep what was right."
    text = f"Your answer cannot be used as it is:\n\n{listed}\n\n{ask}"
    talk = (*request.messages, ModelMessage("assistant", answer), ModelMessage("user", text))
    return replace(request, messages=talk)


_FOLDER = Path(__file__).parent / "prompts"


class Unreadable(Exception):
    """Raised if an answer has the wrong form. The message tells the model what to correct."""


class Prompt(Struct, Generic[Data], frozen=True):
    """A question that a stage asks, the function that parses the answer, and the number of attempts."""

    name: str
    """The name of the question's file in `prompts/`."""
    read: Callable[[str], Data]
    """Parses an answer. Raises `Unreadable`."""
    max_tokens: int = 4096
    rounds: int = 2
    schema: dict[str, Any] | None = None
    folder: Path = _FOLDER

    def request(self, shown: Mapping[str, str], attempt: int = 1) -> Request:
        return render(self.folder, self.name, shown, schema=self.schema, attempt=attempt, max_tokens=self.max_tokens)

    def judged(self, text: str, judge: Judge[Data, Made], empty: Made) -> tuple[Made, list[str]]:
        """Return an answer's result and its errors."""
        try:
            return judge(self.read(text))
        except Unreadable as error:
            return empty, [str(error)]
        except (BylawError, Unanswered):
            raise
        except Exception as error:
            return empty, [f"{FAULTY}not usable: {type(error).__name__}: {str(error)[:200]}"]


def json_prompt(name: str, shape: type[Data], *, max_tokens: int = 4096, folder: Path = _FOLDER) -> Prompt[Data]:
    """Return a prompt whose answer is JSON of the type `shape`."""

    def read(text: str) -> Data:
        try:
            return msgspec.json.decode(bare_json(text), type=shape)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unreadable(f"not the JSON asked for: {error}") from None

    return Prompt(name, read, max_tokens, schema=schema_of(shape), folder=folder)


def yaml_answer(text: str) -> dict[str, Any]:
    """Parse the YAML of an answer. Raises Unreadable if it is not YAML."""
    try:
        return read_yaml(unfenced(text), file="answer").data
    except YamlError as error:
        raise Unreadable(f"not the YAML asked for: {error}") from None


def prompt_text(name: str) -> str:
    """Return a section of a prompt that only some requests include."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
