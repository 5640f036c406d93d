"""Opens the model that `--llm` names."""

import os
from collections.abc import Callable
from pathlib import Path

from bylaw.llm.chat import Answer, Chat, ChatError, Request
from bylaw.llm.endpoint import Endpoint, Progress, Settings
from bylaw.llm.recorded import Batch, Finder, Recorded, Recordings


def open_chat(
    said: str,
    *,
    kept: Path | None = None,
    progress: Progress | None = None,
    stream: bool = False,
    max_tokens: int | None = None,
    concurrency: int = 4,
    keeps: bool = False,
) -> Chat:
    """Return the chat named by `said`.

    `batch:DIR` writes requests to DIR and reads answers from DIR. `recorded` uses only the answers in `kept`. Any other
    text is the name of a model at OPENAI_BASE_URL. The default is OPENAI_MODEL. Stored answers are never requested
    again. With `keeps`, batch answers are also copied to `kept`.
    """
    recordings = Recordings(kept) if kept is not None else None
    if said == "recorded":
        if recordings is None:
            raise ChatError("no recordings folder")
        return Recorded(recordings)
    if said.startswith("batch:"):
        folder = said.removeprefix("batch:")
        if not folder or Path(folder).is_file():
            raise ChatError(
                f"`{said}` does not name a folder",
                hint="pass --llm batch:DIR, where DIR is a folder for requests and answers",
            )
        batch = Batch(Path(folder))
        return Recorded(recordings, batch, keeps=keeps) if recordings is not None else batch
    model = said or os.environ.get("OPENAI_MODEL", "")
    if not model:
        hint = "add --llm MODEL or OPENAI_MODEL with OPENAI_BASE_URL, or --llm batch:DIR"
        raise ChatError("no model", hint=hint)
    settings = Settings(model, stream=stream, max_tokens=max_tokens, concurrency=concurrency)
    endpoint = Endpoint(settings, recordings=recordings, progress=progress)
    return Recorded(recordings, endpoint) if recordings is not None else endpoint


def at_hand(chat: Chat) -> Callable[[Request], Answer | None]:
    """Return a function that looks up existing answers in recordings and a batch folder."""
    return chat.find if isinstance(chat, Finder) else lambda _: None


def remarks(chat: Chat) -> list[str]:
    """Return the problems in a batch folder: answers that match no request, and unreadable files."""
    inner = chat.behind if isinstance(chat, Recorded) else chat
    return inner.remarks if isinstance(inner, Batch) else []
