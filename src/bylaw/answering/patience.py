"""A model that is asked while calls wait: each question once, for a while, and not while it is down."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from bylaw.llm import Answer, Chat, Pending, Request

PATIENCE = 15.0
"""Seconds that a call waits for an answer at most; one that comes later is there for the next call."""
MOST_ASKED = 64
"""Questions under way at once, at most."""
FAILURES = 3
"""After so many failures in a row a model is taken to be down."""
PAUSE = 30.0
"""Seconds before one that is down is asked again."""
_T = TypeVar("_T")


class PatientChat:
    """For many threads: each waits for its own question alone, and for no longer than `patience`."""

    def __init__(self, chat: Chat, patience: float = PATIENCE) -> None:
        self._chat, self._patience = chat, patience
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Any]] = {}
        self._failures, self._down_until = 0, 0.0
        self.queries = 0
        """How often the model was asked."""

    def ask(self, asked: Request, made: Callable[[Answer], _T | None]) -> _T | str:
        """What is made of an answer, or why there is none; nothing is made of one that cannot be read."""
        waiting = self._begin(asked, made)
        if isinstance(waiting, str):
            return waiting
        try:
            return waiting.result(self._patience)
        except TimeoutError:
            self._fails()
            return f"the model gave no answer within {self._patience:g} seconds"

    def _begin(self, asked: Request, made: Callable[[Answer], _T | None]) -> Future[_T | str] | str:
        """The answer that is under way, or why the model is not asked now."""
        with self._lock:
            waiting = self._under_way.get(asked.key)
            if waiting is not None:
                return waiting
            if time.monotonic() < self._down_until:
                return "the model did not answer lately"
            if len(self._under_way) >= MOST_ASKED:
                return "too many questions wait for the model"
            waiting = self._under_way[asked.key] = Future[_T | str]()
            self.queries += 1
        # Whoever stops the program does not wait for a model.
        threading.Thread(target=self._ask, args=(asked, made, waiting), daemon=True).start()
        return waiting

    def _ask(self, asked: Request, made: Callable[[Answer], _T | None], waiting: Future[_T | str]) -> None:
        is_down = True
        try:
            (answer,) = self._chat.ask([asked])
            found, why = made(answer), answer.why or "no answer that can be read"
        except Exception as error:
            found, why = None, str(error) or type(error).__name__
            # A batch is answered when somebody gets to it.
            is_down = not isinstance(error, Pending)
        if found is None and is_down:
            self._fails()
        with self._lock:
            if found is not None:
                self._failures, self._down_until = 0, 0.0
            self._under_way.pop(asked.key, None)
        no_answer = f"the model gave no answer ({why.splitlines()[0][:200]})"
        waiting.set_result(found if found is not None else no_answer)

    def _fails(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= FAILURES:
                self._down_until = time.monotonic() + PAUSE
