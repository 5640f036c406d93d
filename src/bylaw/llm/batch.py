"""A folder in the place of a model: pending requests are written there as OpenAI Batch JSONL, answers are picked up.

Whoever can answer such lines may: a batch API, a model without a network, a person.
"""

from collections.abc import Sequence
from pathlib import Path

from bylaw.llm.chat import Answer, Pending, Request
from bylaw.llm.exchange import request_line, requested_keys
from bylaw.llm.recorded import Recordings

REQUESTS = "requests"
_SHOWN = 3
"""Remarks of one kind; the rest are counted."""


class Batch:
    """Requests go to `DIR/requests/NNN.jsonl`; answers are read from `DIR/*.jsonl`."""

    def __init__(self, folder: Path, *, model: str = "batch") -> None:
        self._folder = folder
        self._model = model
        self._answers: Recordings | None = None
        """What lay in the folder when it was last looked at."""
        self.unasked: list[str] = []
        """Answers in the folder that no request ever asked for, each with its file, as of the last time."""
        self._used: set[str] = set()
        """Keys of the answers that were found."""

    @property
    def remarks(self) -> list[str]:
        """What whoever answered should know of the folder, as of the last time it was looked at."""
        self.unasked = self._unasked(self._known())
        told = {
            "an answer that nobody asked for": self.unasked,
            "a second answer": self._known().doubled,
            "not read, as its name does not end in .jsonl": self._unread(),
        }
        return [
            line
            for what, places in told.items()
            for line in (
                *(f"{what}: {each}" for each in places[:_SHOWN]),
                *([f"{what}: {len(places) - _SHOWN} more"] if len(places) > _SHOWN else []),
            )
        ]

    def _known(self) -> Recordings:
        if self._answers is None:
            self._answers = Recordings(self._folder)
        return self._answers

    def _unread(self) -> list[str]:
        found = sorted(self._folder.glob("*")) if self._folder.is_dir() else []
        return [path.name for path in found if path.is_file() and path.suffix in (".json", ".txt", ".ndjson")]

    def find(self, request: Request) -> Answer | None:
        """The answer to a request, where it lies in the folder and did not fail on the way."""
        found = self._known().find(request)
        if found is not None:
            self._used.add(request.key)
        return found

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers; what is not answered yet is written down, and `Pending` says so."""
        answers = self._answers = Recordings(self._folder)
        self._used |= {request.key for request in requests}
        self.unasked = self._unasked(answers)
        found = {request.key: answers.find(request) for request in requests}
        waiting = {request.key: request for request in requests if found[request.key] is None}
        if waiting:
            place = self._write(waiting)
            failed = [answers.failed[key] for key in waiting if key in answers.failed]
            raise Pending(len(waiting), str(place), str(self._folder), self.unasked, failed, self._unread())
        return [answer for request in requests if (answer := found[request.key]) is not None]

    def _unasked(self, answers: Recordings) -> list[str]:
        known = set(self._used)
        for file in (self._folder / REQUESTS).glob("*.jsonl"):
            known |= requested_keys(file)
        return [f"`{key}` in {file.name}" for key, file in sorted(answers.places.items()) if key not in known]

    def _write(self, waiting: dict[str, Request]) -> Path:
        """Write the requests into a file of their own, named by what it holds: written again it is the same file."""
        folder = self._folder / REQUESTS
        folder.mkdir(parents=True, exist_ok=True)
        text = b"".join(request_line(request, self._model) for request in waiting.values())
        same = (file for file in sorted(folder.glob("*.jsonl")) if file.read_bytes() == text)
        if (known := next(same, None)) is not None:
            return known
        file = folder / f"{len(list(folder.glob('*.jsonl'))) + 1:03}.jsonl"
        file.write_bytes(text)
        return file
