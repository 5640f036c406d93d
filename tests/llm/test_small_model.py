"""A real small model on loopback takes the protocol end to end: not for quality, for the truth of the plumbing.

A lane of its own: `pip install xllamacpp openai`, BYLAW_WEIGHTS=a chat model as GGUF (SmolLM2-135M will do), then
`pytest tests/llm/test_small_model.py`. Skipped elsewhere.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from bylaw.llm import Message, Request
from bylaw.llm.chat import schema_of
from bylaw.llm.endpoint import Endpoint, Settings
from bylaw.llm.recorded import Recorded, Recordings

llama = pytest.importorskip("xllamacpp")
pytest.importorskip("openai")
WEIGHTS = os.environ.get("BYLAW_WEIGHTS", "")
if not Path(WEIGHTS).is_file():
    pytest.skip("BYLAW_WEIGHTS names no model", allow_module_level=True)


class Opinion(Struct):
    """A shape that the answer is held to."""

    analysis: str
    rating: int
    is_open: bool


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    params = llama.CommonParams()
    params.model.path = WEIGHTS
    params.n_ctx = 2048
    params.n_parallel = 2
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.sampling.seed = 7
    params.sampling.temp = 0.0
    server = llama.Server(params)
    assert "127.0.0.1" in server.listening_address
    yield f"{server.listening_address}/v1"
    del server


def _endpoint(address: str, **more: object) -> Endpoint:
    return Endpoint(Settings("small", base_url=address, timeout=120.0, tries=2, pause=0.05, **more), key="none")  # type: ignore[arg-type]


def _ask(text: str, **more: object) -> Request:
    return Request((Message("user", text),), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [False, True])
def test_text_comes_back_and_tokens_are_counted(address: str, stream: bool) -> None:
    endpoint = _endpoint(address, stream=stream)
    (answer,) = endpoint.ask([_ask("Say hello.", max_tokens=24)])
    assert answer.fault in ("", "truncated")
    assert answer.text.strip()
    assert endpoint.usage.asked > 0
    assert 0 < endpoint.usage.answered <= 24


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_holds_the_answer(address: str, stream: bool) -> None:
    # A model of this size may write on inside a text for ever; one that ends is of the shape.
    questions = [
        _ask(f"The desk {state} on Sunday. Rate it from 1 to 10. Be brief.", schema=schema_of(Opinion), max_tokens=160)
        for state in ("is open", "is closed", "opens")
    ]
    answers = _endpoint(address, stream=stream, concurrency=2).ask(questions)
    for answer in answers:
        if not answer.fault:
            assert isinstance(answer.read(Opinion), Opinion), answer.text
        else:
            assert answer.fault == "truncated", answer
            assert answer.text.lstrip().startswith("{")
    assert any(not answer.fault for answer in answers)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_cut_says_so(address: str, stream: bool) -> None:
    (answer,) = _endpoint(address, stream=stream).ask([_ask("Tell a long story about a ship.", max_tokens=6)])
    assert answer.fault == "truncated"


def test_plain_talk_where_json_was_due_is_malformed(address: str) -> None:
    plain = _ask("Say hello.", max_tokens=64)
    (answer,) = _endpoint(address).ask([plain])
    held = Request(plain.messages, {"type": "object"}, max_tokens=64)
    recorded = Recordings(Path("nowhere"))
    recorded._answers[held.key] = answer  # pyright: ignore[reportPrivateUsage]
    (found,) = Recorded(recorded).ask([held])
    assert found.fault in ("malformed", "truncated")


def test_a_time_out_is_tried_again_and_then_given_up(address: str) -> None:
    endpoint = Endpoint(Settings("small", base_url=address, timeout=0.001, tries=2, pause=0.01), key="none")
    (answer,) = endpoint.ask([_ask("Tell a long story.", max_tokens=400)])
    assert answer.fault == "failed"
    assert endpoint.calls == 2


def test_what_was_answered_is_kept_and_answers_for_free(address: str, tmp_path: Path) -> None:
    questions = [_ask(f"What is {number} plus 1?", max_tokens=8) for number in range(3)]
    recordings = Recordings(tmp_path)
    settings = Settings("small", base_url=address, concurrency=2)
    endpoint = Endpoint(settings, recordings=recordings, key="none")
    first = Recorded(recordings, endpoint).ask(questions)
    assert endpoint.calls == 3
    again = Recorded(Recordings(tmp_path)).ask(questions)
    assert [answer.text for answer in again] == [answer.text for answer in first]
    assert [answer.fault for answer in again] == [answer.fault for answer in first]
