"""The recorded thoughts: a rendered prompt requests every recording, and no recording has changed."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from align_recorded import FOLDER, evidence_by_turn, turns

from bylaw.align.thoughts import requests_for, write_thoughts
from bylaw.llm import Answer, Request
from bylaw.llm.chat import ChatError
from bylaw.llm.recorded import Recorded, Recordings

ANSWERS = FOLDER / "answers"
ROOT = Path(__file__).parents[3]
needs_answers = pytest.mark.skipif(not list(ANSWERS.glob("*.jsonl")), reason="no answers have been recorded yet")


class _Noting:
    """Passes questions on and records them."""

    def __init__(self, chat: Recorded) -> None:
        self.chat, self.keys = chat, set[str]()

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        self.keys |= {request.key for request in requests}
        return self.chat.ask(requests)


def test_the_frozen_turns_are_those_of_the_logs() -> None:
    found = evidence_by_turn()
    assert len(turns()) == 60
    assert {turn.id for turn in turns()} <= found.keys()
    assert len({request.key for request in requests_for(turns())}) == 60


@needs_answers
def test_every_recording_is_asked_for() -> None:
    recordings = Recordings(ANSWERS)
    chat = _Noting(Recorded(recordings))
    # A round without answers ends the run after its questions were asked.
    with suppress(ChatError):
        write_thoughts(turns(), chat)
    assert recordings.keys() <= chat.keys


@needs_answers
def test_no_recording_was_changed_after_its_first_commit() -> None:
    command = ["git", "log", "--diff-filter=MR", "--format=%h", "--", str(ANSWERS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a checkout of the repository")
    assert not done.stdout.split()
