"""Sends concurrent requests to an OpenAI-compatible endpoint with the openai SDK.

A request is retried after a rate limit, time-out, lost connection or server error. A faulty answer is returned, not
retried. If no connection succeeds at all, the run stops.
"""

import importlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from msgspec import Struct

from bylaw.llm.chat import Answer, ChatError, Request, Unreachable, Usage, checked
from bylaw.llm.recorded import Recordings, completion_answer

Progress = Callable[[int, int], None]
"""Called with the number of answers so far and the total."""


class Settings(Struct, frozen=True):
    model: str
    base_url: str = ""
    """The default is OPENAI_BASE_URL or, without it, OpenAI's own address."""
    concurrency: int = 4
    tries: int = 6
    timeout: float = 120.0
    """The time limit for an answer, in seconds."""
    pause: float = 1.0
    """The wait before the first retry, in seconds. Each later wait is twice as long, up to a minute."""
    stream: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    """The maximum number of tokens per answer, for models with a lower limit than the requests ask for."""


class Endpoint:
    """A model behind an OpenAI-compatible API. `usage` counts tokens."""

    def __init__(
        self,
        settings: Settings,
        *,
        recordings: Recordings | None = None,
        progress: Progress | None = None,
        key: str | None = None,
    ) -> None:
        try:
            self._openai: Any = importlib.import_module("openai")
        except ImportError:
            hint = "in your clone of Bylaw: pip install '.[compile]'"
            raise ChatError("asking a model requires the openai SDK", hint=hint) from None
        self._settings = settings
        self._recordings = recordings
        self._progress = progress
        self._lock = threading.Lock()
        self.usage = Usage()
        self.calls = 0
        """The number of requests sent, including retries."""
        self._connected = False
        try:
            self._client: Any = self._openai.OpenAI(
                base_url=settings.base_url or None, api_key=key, timeout=settings.timeout, max_retries=0
            )
        except self._openai.OpenAIError as error:
            hint = "set OPENAI_API_KEY and OPENAI_BASE_URL"
            raise ChatError(_short(str(error).splitlines()[0]).rstrip("."), hint=hint) from None

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers in order. Each answer is stored immediately, so that an interrupted run loses no
        answers.
        """
        answers: list[Answer | None] = [None] * len(requests)
        done = 0

        def work(place: int) -> None:
            nonlocal done
            answer = checked(self._ask(requests[place]), requests[place])
            with self._lock:
                answers[place] = answer
                self.usage += answer.usage
                done += 1
                if self._recordings is not None:
                    self._recordings.keep(requests[place], answer, self._settings.model)
                if self._progress is not None:
                    self._progress(done, len(requests))

        with ThreadPoolExecutor(max_workers=max(1, self._settings.concurrency)) as pool:
            jobs = [pool.submit(work, place) for place in range(len(requests))]
            finished, _ = wait(jobs, return_when=FIRST_EXCEPTION)
            for job in jobs:
                job.cancel()
            for job in finished:
                job.result()
        return [answer for answer in answers if answer is not None]

    def _ask(self, request: Request) -> Answer:
        settings = self._settings
        pause = settings.pause
        why = ""
        for attempt in range(settings.tries):
            if attempt:
                time.sleep(min(60.0, pause) * (0.5 + random.random() / 2))
                pause *= 2
            with self._lock:
                self.calls += 1
            try:
                answer = self._send(request)
                self._connected = True
                return answer
            except self._openai.RateLimitError as error:
                why = f"too many requests: {error}"
                pause = max(pause, _asked_to_wait(error))
            except (self._openai.APITimeoutError, self._openai.APIConnectionError) as error:
                why = str(error) or type(error).__name__
                # Different versions of the SDK use different network libraries, but the error's name is the same.
                if type(error.__cause__).__name__ == "ConnectError" and not self._connected:
                    message = f"no connection to the model at {self._client.base_url}: {_short(str(error.__cause__))}"
                    raise Unreachable(message, hint="check OPENAI_BASE_URL") from None
            except self._openai.APIStatusError as error:
                why = f"status {error.status_code}: {error}"
                if error.status_code < 500 and error.status_code != 408:
                    raise ChatError(_short(why), hint="check the model's name, the key and the endpoint") from None
            except self._openai.APIError as error:
                why = str(error)
        return Answer("", "failed", f"gave up after {settings.tries} tries: {_short(why)}")

    def _send(self, request: Request) -> Answer:
        body = request.body(self._settings.model)
        if self._settings.max_tokens is not None:
            body["max_tokens"] = min(request.max_tokens, self._settings.max_tokens)
        if self._settings.temperature is not None:
            body["temperature"] = self._settings.temperature
        if self._settings.stream:
            return self._stream(body)
        made = self._client.chat.completions.create(**body)
        if not getattr(made, "choices", None):
            return Answer("", "failed", "the endpoint returned no choices")
        return completion_answer(made.model_dump())

    def _stream(self, body: dict[str, Any]) -> Answer:
        texts: list[str] = []
        refusals: list[str] = []
        finish: str | None = None
        used: dict[str, Any] = {}
        stream = self._client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
        for chunk in stream:
            if chunk.usage is not None:
                used = chunk.usage.model_dump()
            for choice in chunk.choices[:1]:
                texts.append(choice.delta.content or "")
                refusals.append(getattr(choice.delta, "refusal", None) or "")
                finish = choice.finish_reason or finish
        message = {"content": "".join(texts), "refusal": "".join(refusals) or None}
        # A stream that ends without a finish reason was cut off.
        choice = {"message": message, "finish_reason": finish or "length"}
        return completion_answer({"choices": [choice], "usage": used})


def _asked_to_wait(error: Any) -> float:
    """Return how many seconds the endpoint asks the client to wait."""
    try:
        return min(60.0, float(error.response.headers.get("retry-after") or 0))
    except (AttributeError, ValueError):
        return 0.0


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
