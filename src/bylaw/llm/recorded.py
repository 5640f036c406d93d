"""Answers kept by content hash: work that was interrupted goes on, and work that is repeated costs nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from bylaw.llm.chat import Answer, Chat, ChatError, Request, checked
from bylaw.llm.exchange import answer_line, read_answers


class Recordings:
    """The answers in the `*.jsonl` files of a folder; new ones are added to one file of their own."""

    def __init__(self, folder: Path, *, file: str = "answers.jsonl") -> None:
        self.folder = folder
        self._file = folder / file
        self._answers: dict[str, Answer] = {}
        self.places: dict[str, Path] = {}
        """The file that each answer was read from."""
        self.failed: dict[str, str] = {}
        """What failed on the way, and why: no answer, so the question is asked again."""
        self.doubled: list[str] = []
        """Second answers to a question that another file has answered otherwise."""
        for each in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
            for key, answer in read_answers(each).items():
                if answer.fault == "failed":
                    self.failed.setdefault(key, answer.why)
                    continue
                earlier = self._answers.get(key)
                if earlier is None or earlier.is_worse(answer):
                    self._answers[key], self.places[key] = answer, each
                elif not answer.is_worse(earlier) and answer.text != earlier.text:
                    self.doubled.append(f"`{key}` in {each.name}; the one in {self.places[key].name} counts")

    def __len__(self) -> int:
        return len(self._answers)

    def keys(self) -> frozenset[str]:
        return frozenset(self._answers)

    def find(self, request: Request) -> Answer | None:
        """The answer to a request, where there is one."""
        found = self._answers.get(request.key)
        return None if found is None else checked(found, request)

    def keep(self, request: Request, answer: Answer, model: str) -> None:
        """Add an answer, at once and for good. One that failed on the way is no answer."""
        if answer.fault == "failed":
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as out:
            out.write(answer_line(request, answer, model))
        self._answers[request.key] = answer


@runtime_checkable
class Finder(Protocol):
    """Whoever can tell, without asking, what is answered already."""

    def find(self, request: Request) -> Answer | None:
        """The answer to a request, where it is at hand."""
        ...


class Recorded:
    """Answers from recordings; what is not there is asked of `chat`, or is an error where there is none."""

    def __init__(self, recordings: Recordings, chat: Chat | None = None, *, keeps: bool = False) -> None:
        self.recordings = recordings
        self.behind = chat
        self._keeps = keeps
        """Whether what lies in the folder of a batch is kept here, too; an endpoint keeps its answers itself."""

    def find(self, request: Request) -> Answer | None:
        """The answer to a request, where it was recorded or lies in the folder of a batch."""
        found = self.recordings.find(request)
        if found is None and isinstance(self.behind, Finder):
            found = self.behind.find(request)
            if found is not None and self._keeps:
                self.recordings.keep(request, found, "batch")
        return found

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        found = {request.key: self.recordings.find(request) for request in requests}
        missing = {request.key: request for request in requests if found[request.key] is None}
        if missing and self.behind is None:
            first = next(iter(missing.values()))
            hint = "the prompts have changed since; ask a model with --llm"
            message = f"{len(missing)} of {len(found)} requests have no recorded answer, the first `{first.key}`"
            raise ChatError(message, place=str(self.recordings.folder), hint=hint)
        if missing and self.behind is not None:
            asked = list(missing.values())
            found.update(zip(missing, self.behind.ask(asked), strict=True))
            for request in asked if self._keeps else ():
                if (answer := found[request.key]) is not None:
                    self.recordings.keep(request, answer, "batch")
        return [answer for request in requests if (answer := found[request.key]) is not None]
