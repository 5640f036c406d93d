"""`--llm`: which model is meant, in one word."""

import os
from collections.abc import Callable
from pathlib import Path

from bylaw.llm.batch import Batch
from bylaw.llm.chat import Answer, Chat, ChatError, Request
from bylaw.llm.endpoint import Endpoint, Progress, Settings
from bylaw.llm.recorded import Recorded, Recordings


def open_chat(
    said: str,
    *,
    kept: Path | None = None,
    progress: Progress | None = None,
    stream: bool = False,
    max_tokens: int | None = None,
) -> Chat:
    """The chat that `said` means.

    `batch:DIR` writes requests there and picks answers up. `recorded` answers from `kept` alone. Anything else is the
    name of a model at OPENAI_BASE_URL; empty, the one OPENAI_MODEL names. Answers kept before are never asked again.
    """
    recordings = Recordings(kept) if kept is not None else None
    if said == "recorded":
        if recordings is None:
            raise ChatError("there are no recordings to answer from")
        return Recorded(recordings)
    if said.startswith("batch:"):
        batch = Batch(Path(said.removeprefix("batch:")))
        return Recorded(recordings, batch) if recordings is not None else batch
    model = said or os.environ.get("OPENAI_MODEL", "")
    if not model:
        hint = "--llm MODEL or OPENAI_MODEL with OPENAI_BASE_URL, or --llm batch:DIR"
        raise ChatError("no model is named", hint=hint)
    endpoint = Endpoint(Settings(model, stream=stream, max_tokens=max_tokens), recordings=recordings, progress=progress)
    return Recorded(recordings, endpoint) if recordings is not None else endpoint


def at_hand(chat: Chat) -> Callable[[Request], Answer | None]:
    """Finds what is answered already: in recordings, and in a batch's folder, where some answers may yet lack."""
    places = [chat, chat.behind] if isinstance(chat, Recorded) else [chat]
    finders = [each.find for each in places if isinstance(each, Recorded | Batch)]

    def find(request: Request) -> Answer | None:
        return next((found for each in finders if (found := each(request)) is not None), None)

    return find


def unasked(chat: Chat) -> list[str]:
    """Answers that lie in a batch's folder and that no request asked for."""
    inner = chat.behind if isinstance(chat, Recorded) else chat
    return inner.unasked if isinstance(inner, Batch) else []
