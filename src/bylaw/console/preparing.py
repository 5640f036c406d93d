"""What takes longer than a page may: made in a thread of its own, while the page says that it is being made."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")
WAIT = 0.1
"""Seconds that a page waits for it."""


class Preparing(Exception):
    """A page cannot be shown yet; `what` is being done for it."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


class Prepared(Generic[T]):
    """Something that is being made, or is there."""

    def __init__(self, what: str, make: Callable[[], T]) -> None:
        self._what = what
        self._made: Future[T] = Future()
        threading.Thread(target=self._run, args=(make,), daemon=True, name="console-preparing").start()

    def _run(self, make: Callable[[], T]) -> None:
        try:
            self._made.set_result(make())
        except BaseException as error:  # It is raised again by whoever asks.
            self._made.set_exception(error)

    @property
    def failed(self) -> bool:
        return self._made.done() and self._made.exception() is not None

    def get(self) -> T:
        """It, or the error that it ended with; `Preparing` where it is not there yet."""
        try:
            return self._made.result(WAIT)
        except TimeoutError:
            if self._made.done():
                raise
            raise Preparing(self._what) from None
