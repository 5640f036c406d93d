"""A real small model on loopback takes the protocol end to end: not for quality, for the truth of the plumbing.

A lane of its own, with BYLAW_WEIGHTS naming a chat model as GGUF (SmolLM2-135M will do):

    BYLAW_WEIGHTS=model.gguf uv run --with xllamacpp --with openai pytest -m model -n 0
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from bylaw.llm import ModelMessage, Request
from bylaw.llm.chat import schema_of
from bylaw.llm.endpoint import Endpoint, Settings
from bylaw.llm.recorded import Recorded, Recordings
from tests.command import bylaw
from tests.compile import shop
from tests.llm.scripted import completion, serving

pytestmark = [pytest.mark.model, pytest.mark.timeout(580)]
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
    params.n_ctx = 16384
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
    return Request((ModelMessage("user", text),), **more)  # type: ignore[arg-type]


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


POLICY = """# Desk

A refund is made within 30 days after delivery.
"""
TOOLS = [
    {
        "name": "get_order",
        "description": "Read an order: order_id, delivered_on (date).",
        "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    },
    {
        "name": "refund",
        "description": "Pay money back for an order.",
        "inputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    },
]
THINGS = """
entities:
  Order: {key: order_id, read: get_order, fields: {delivered_on: date}}
observations:
  get_order: {as: Order}
tools:
  get_order: {effect: read}
  refund: {effect: write, changes: []}
"""
EXTRACTED = {"policies": [policy for policy in shop.EXTRACTED["policies"] if policy["id"] == "refund-window"]}


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "tools.json").write_text(json.dumps({"tools": TOOLS}))
    return tmp_path


def _compile(desk: Path, *more: str) -> tuple[int, str]:
    made = (
        "--document",
        "policy.md",
        "--tools",
        "tools.json",
        "--llm",
        "small",
        "--kept",
        "kept",
        "--max-tokens",
        "64",
    )
    done = bylaw(desk, "compile", *made, "--out", "pack", *more)
    return done.returncode, done.stdout + done.stderr


def _asked(told: str) -> list[int]:
    """How many requests each round asked."""
    return [int(number) for number in re.findall(r"^asking (\d+) ", told, re.MULTILINE)]


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_compile_ends_by_itself_and_is_the_same_for_free(
    address: str, desk: Path, stream: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    status, told = _compile(desk, *stream)
    # A model of this size describes no tools: it is asked as often as anybody, and then that is said.
    assert status == 2
    assert "BY802" in told, told
    kept = len(Recordings(desk / "kept"))
    assert kept == sum(_asked(told)) > 0
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    again, same = _compile(desk, *stream)
    assert (again, _asked(same)) == (2, [])
    assert same.splitlines()[-1] == told.splitlines()[-1]


def test_a_compile_whose_document_and_tools_are_understood_ends_in_a_pack_that_says_what_it_lacks(
    address: str, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def script(number: int, body: dict[str, Any]) -> Any:
        if number > 1:
            return 401, {}, {"error": {"message": "the first two are enough"}}
        return 200, {}, completion(json.dumps(EXTRACTED) if "response_format" in body else THINGS)

    with serving(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert "the first two are enough" in _compile(desk)[1]
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    status, told = _compile(desk)
    assert status == 1, told
    assert "unenforced: refund-window: " in told
    assert (desk / "pack" / "compiled.yaml").is_file()
    checked = bylaw(desk, "check", "pack")
    assert checked.returncode != 0
    assert "refund-window" in checked.stdout + checked.stderr


def test_what_goes_wrong_on_the_way_is_tried_again_and_the_model_answers_in_the_end(address: str) -> None:
    """A gateway that is busy, fails, and cuts the line, before it lets a question through to the model."""
    faults = [(429, {"retry-after": "0.1"}), (503, {}), (500, {})]

    def script(number: int, body: dict[str, Any]) -> Any:
        if number < len(faults):
            status, headers = faults[number]
            return status, headers, {"error": {"message": "not now"}}
        inner = Endpoint(Settings("small", base_url=address), key="none")
        (answer,) = inner.ask([Request((ModelMessage("user", body["messages"][0]["content"]),), max_tokens=8)])
        return 200, {}, completion(answer.text, "length" if answer.fault == "truncated" else "stop")

    with serving(script) as server:
        endpoint = Endpoint(Settings("small", base_url=server.url, pause=0.01), key="none")
        (answer,) = endpoint.ask([_ask("Say hello.", max_tokens=8)])
    assert endpoint.calls == 4
    assert answer.text.strip()
