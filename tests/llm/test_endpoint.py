"""An endpoint behind the openai SDK, against a scripted server on loopback: what goes wrong, and what we make of it."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bylaw.llm import ModelMessage, Request, Usage
from bylaw.llm.chat import ChatError, Unreachable
from bylaw.llm.recorded import Recorded, Recordings
from tests.llm.scripted import chunks, completion, serving

pytest.importorskip("openai")

from bylaw.llm.endpoint import Endpoint, Settings

SCHEMA = {"type": "object", "properties": {"open": {"type": "boolean"}}, "required": ["open"]}


def _question(text: str = "Open on Sundays?", **more: Any) -> Request:
    return Request((ModelMessage("user", text),), **more)


def _endpoint(url: str, **more: Any) -> Endpoint:
    settings = {"pause": 0.01, "tries": 4, "timeout": 5.0, **{k: v for k, v in more.items() if k != "recordings"}}
    return Endpoint(Settings("scripted", base_url=url, **settings), recordings=more.get("recordings"), key="none")


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_comes_whole_and_its_tokens_are_counted(stream: bool) -> None:
    def script(number: int, body: dict[str, Any]) -> Any:
        assert body.get("stream", False) is stream
        return 200, {}, chunks("yes it is") if stream else completion("yes it is")

    with serving(script) as server:
        endpoint = _endpoint(server.url, stream=stream)
        (answer,) = endpoint.ask([_question()])
    assert (answer.text.strip(), answer.fault) == ("yes it is", "")
    assert endpoint.usage == Usage(7, 3)


def test_the_schema_goes_with_the_question() -> None:
    with serving(lambda number, body: (200, {}, completion('{"open": true}'))) as server:
        (answer,) = _endpoint(server.url).ask([_question(schema=SCHEMA, name="opening")])
    wanted = {"type": "json_schema", "json_schema": {"name": "opening", "schema": SCHEMA, "strict": True}}
    assert server.bodies[0]["response_format"] == wanted
    assert server.bodies[0]["max_tokens"] == 1024
    assert answer.read(dict[str, bool]) == {"open": True}


def test_a_model_with_short_answers_is_never_asked_for_longer_ones() -> None:
    with serving(lambda number, body: (200, {}, completion("ok"))) as server:
        _endpoint(server.url, max_tokens=100).ask([_question(), _question("And then?", max_tokens=40)])
    assert sorted(body["max_tokens"] for body in server.bodies) == [40, 100]


def test_a_busy_endpoint_is_asked_again_after_the_time_it_names() -> None:
    def script(number: int, body: dict[str, Any]) -> Any:
        if number < 2:
            return 429, {"retry-after": "0.4"}, {"error": {"message": "slow down"}}
        return 200, {}, completion("ok")

    with serving(script) as server:
        start = time.monotonic()
        endpoint = _endpoint(server.url)
        (answer,) = endpoint.ask([_question()])
    assert answer.text == "ok"
    assert endpoint.calls == 3
    assert time.monotonic() - start > 0.4


@pytest.mark.parametrize("status", [500, 502, 503, 408])
def test_faults_of_the_server_are_tried_again_and_then_given_up(status: int) -> None:
    with serving(lambda number, body: (status, {}, {"error": {"message": "broken"}})) as server:
        endpoint = _endpoint(server.url, tries=3)
        (answer,) = endpoint.ask([_question()])
    assert endpoint.calls == 3
    assert answer.fault == "failed"
    assert answer.why.startswith("gave up after 3 tries: ")


def test_a_time_out_is_tried_again() -> None:
    def script(number: int, body: dict[str, Any]) -> Any:
        if number == 0:
            time.sleep(1.0)
        return 200, {}, completion("at last")

    with serving(script) as server:
        (answer,) = _endpoint(server.url, timeout=0.3).ask([_question()])
    assert answer.text == "at last"


def test_what_will_not_get_better_is_said_at_once() -> None:
    for status in (400, 401, 404):
        with serving(
            lambda number, body, status=status: (status, {}, {"error": {"message": "no such model"}})
        ) as server:
            endpoint = _endpoint(server.url)
            with pytest.raises(ChatError, match="no such model"):
                endpoint.ask([_question()])
            assert endpoint.calls == 1


def test_an_endpoint_that_is_not_there_is_said_at_once() -> None:
    endpoint = _endpoint("http://127.0.0.1:9/v1", pause=30.0)
    with pytest.raises(Unreachable, match=r"no connection to the model at http://127\.0\.0\.1:9/v1"):
        endpoint.ask([_question()])
    assert endpoint.calls == 1


def test_an_endpoint_that_goes_away_is_tried_again() -> None:
    with serving(lambda number, body: (200, {}, completion("ok"))) as server:
        endpoint = _endpoint(server.url, tries=3)
        endpoint.ask([_question()])
    (answer,) = endpoint.ask([_question("And now?")])
    assert answer.fault == "failed"
    assert endpoint.calls == 4


def test_a_missing_key_is_named_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ChatError, match="OPENAI_API_KEY"):
        Endpoint(Settings("scripted"))


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_answer_says_so(stream: bool) -> None:
    cut = chunks('{"open":', "length") if stream else completion('{"open":', "length")
    with serving(lambda number, body: (200, {}, cut)) as server:
        (answer,) = _endpoint(server.url, stream=stream).ask([_question(schema=SCHEMA)])
    assert answer.fault == "truncated"
    assert answer.read(dict[str, bool]) is None


def test_a_stream_that_breaks_off_is_cut() -> None:
    with serving(lambda number, body: (200, {}, chunks("yes it", None))) as server:
        (answer,) = _endpoint(server.url, stream=True).ask([_question()])
    assert answer.fault == "truncated"


def test_a_refusal_says_so() -> None:
    for said in (completion(None, refusal="I cannot help with that"), completion("", "content_filter")):
        with serving(lambda number, body, said=said: (200, {}, said)) as server:
            (answer,) = _endpoint(server.url).ask([_question(schema=SCHEMA)])
        assert answer.fault == "refused"


def test_malformed_json_is_an_answer_and_is_not_asked_for_again() -> None:
    with serving(lambda number, body: (200, {}, completion("Sure! It is open."))) as server:
        endpoint = _endpoint(server.url)
        (answer,) = endpoint.ask([_question(schema=SCHEMA)])
    assert (answer.fault, answer.text) == ("malformed", "Sure! It is open.")
    assert endpoint.calls == 1


def test_json_in_a_fence_is_read() -> None:
    with serving(lambda number, body: (200, {}, completion('```json\n{"open": false}\n```'))) as server:
        (answer,) = _endpoint(server.url).ask([_question(schema=SCHEMA)])
    assert answer.read(dict[str, bool]) == {"open": False}


def test_a_body_that_is_no_completion_is_a_failed_answer() -> None:
    with serving(lambda number, body: (200, {}, {"hello": 1})) as server:
        (answer,) = _endpoint(server.url, tries=2).ask([_question()])
    assert answer.fault == "failed"


def test_many_are_asked_at_once_but_never_more_than_allowed_and_stay_in_order() -> None:
    def script(number: int, body: dict[str, Any]) -> Any:
        return 200, {}, completion(body["messages"][0]["content"].upper())

    told: list[tuple[int, int]] = []
    with serving(script, pause=0.05) as server:
        endpoint = Endpoint(
            Settings("scripted", base_url=server.url, concurrency=3), key="none", progress=lambda *at: told.append(at)
        )
        answers = endpoint.ask([_question(f"q{number}") for number in range(12)])
    assert [answer.text for answer in answers] == [f"Q{number}" for number in range(12)]
    assert server.most_at_once == 3
    assert told == [(number, 12) for number in range(1, 13)]


def test_an_interrupted_run_keeps_its_answers_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    stop = threading.Event()

    def script(number: int, body: dict[str, Any]) -> Any:
        if stop.is_set():
            return 401, {}, {"error": {"message": "the key has run out"}}
        if number == 4:
            stop.set()
        return 200, {}, completion(body["messages"][0]["content"])

    questions = [_question(f"q{number}") for number in range(10)]
    with serving(script) as server:
        recordings = Recordings(tmp_path)
        with pytest.raises(ChatError, match="run out"):
            Recorded(recordings, _endpoint(server.url, concurrency=1, recordings=recordings)).ask(questions)
        assert len(Recordings(tmp_path)) == 5
        stop.clear()
        server.bodies[:] = [{}] * 20
        recordings = Recordings(tmp_path)
        answers = Recorded(recordings, _endpoint(server.url, recordings=recordings)).ask(questions)
        assert len(server.bodies) == 25
    assert [answer.text for answer in answers] == [f"q{number}" for number in range(10)]
    again = Recorded(Recordings(tmp_path)).ask(questions)
    assert [answer.text for answer in again] == [answer.text for answer in answers]


def test_an_endpoint_without_a_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ChatError, match="OPENAI_API_KEY"):
        Endpoint(Settings("m"))
