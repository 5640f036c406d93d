"""Has a worker of the service note when each request was begun, decided, written and answered.

Imported by the service before it starts (see `service_waits.py`), it wraps the few functions that a request goes
through. Each worker writes to a file of its own in the folder that `STAMPS` names: a line for each request, its name
and the machine's clock at each stage.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from service_traffic import name_of

from bylaw.record.batch import Batch
from bylaw.record.journal import Journal
from bylaw.service.app import Service
from bylaw.shield import LiveSession

_notes: dict[Any, list[Any]] = {}
"""By the task that answers, the name of its request and the stamps so far."""
_decided: list[list[Any]] = []
"""Those that wait for the next commit."""
_whole: list[str] = []
_written: list[tuple[list[Any], float]] = []
"""Those of the present commit, and when it was begun."""
_ours = [0.0]
"""When the log was last ours to write to, and what stands there was read."""


async def _answered(self: Any, path: str, header: str, body: bytes | None, *rest: Any) -> Any:
    note = _notes[asyncio.current_task()] = [name_of(body or b""), time.perf_counter()]
    found = await _plain_answered(self, path, header, body, *rest)
    del _notes[asyncio.current_task()]
    _whole.append("\t".join(map(str, (*note, time.perf_counter()))))
    if len(_whole) >= 200:
        with (Path(os.environ["STAMPS"]) / f"{os.getpid()}.stamps").open("a") as file:
            file.writelines(f"{line}\n" for line in _whole)
        _whole.clear()
    return found


def _attempted(self: Any, wanted: Any) -> Any:
    found = _plain_attempted(self, wanted)
    if (note := _notes.get(asyncio.current_task())) is not None:
        note.append(time.perf_counter())
        _decided.append(note)
    return found


def _handed_over(self: Any, loop: Any) -> None:
    if loop not in self._flights:
        now = time.perf_counter()
        _written.extend((note, now) for note in _decided)
        _decided.clear()
    _plain_handed_over(self, loop)


def _told_loop(self: Any, *rest: Any) -> None:
    for note, begun in _written:
        note += (begun, _ours[0], time.perf_counter())
    _written.clear()
    _plain_told_loop(self, *rest)


def _begun(self: Any, *rest: Any) -> None:
    _ours[0] = time.perf_counter()
    _plain_begun(self, *rest)


_plain_answered, Service.answered = Service.answered, _answered  # type: ignore[method-assign]
_plain_attempted, LiveSession._attempt_alone = LiveSession._attempt_alone, _attempted  # type: ignore[method-assign]
_plain_handed_over, Journal._hand_over = Journal._hand_over, _handed_over  # type: ignore[method-assign]
_plain_told_loop, Journal._tell_loop = Journal._tell_loop, _told_loop  # type: ignore[method-assign]
_plain_begun, Batch.__init__ = Batch.__init__, _begun  # type: ignore[method-assign]
