"""Opens the agent that a user names: an OpenAI-compatible endpoint, a local checkpoint, or a script of the desk."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bylaw.align.desk import open_desk
from bylaw.align.episode import Agent, ChatMessage, Generate, Model
from bylaw.errors import UsageError
from bylaw.llm import ModelMessage, Request
from bylaw.llm.endpoint import Endpoint, Settings


def open_agent(said: str, model: str = "", pack: str = "clinic") -> Agent:
    """`http://...` with a model's name, a folder with a checkpoint, or the name of a script of the pack's desk."""
    if said.startswith(("http://", "https://")):
        if not model:
            raise UsageError("which model at the endpoint?", hint="name it with --model")
        return Model(endpoint(said, model))
    if Path(said).is_dir():
        return _training("checkpoint").open_checkpoint(Path(said))
    scripts = open_desk(pack).agents()
    if said not in scripts:
        raise UsageError(f"`{said}` is not an agent", hint=f"an http address, a folder, or one of {', '.join(scripts)}")
    return scripts[said]


def endpoint(address: str, model: str) -> Generate:
    """A model behind an OpenAI-compatible API, asked for many conversations at once, greedily."""
    chat = Endpoint(Settings(model, base_url=address, temperature=0.0, concurrency=16))

    def generate(conversations: Sequence[list[ChatMessage]]) -> list[str]:
        requests = [Request(tuple(ModelMessage(*told(one)) for one in messages)) for messages in conversations]
        return [answer.text for answer in chat.ask(requests)]

    return generate


def told(message: ChatMessage) -> tuple[Any, str]:
    """A message's role and content; what a tool answered is told by the user, as calls are plain text here."""
    if message["role"] == "tool":
        return "user", f"<tool_response>\n{message['content']}\n</tool_response>"
    return message["role"], message["content"]


def _training(module: str) -> Any:
    try:
        return import_module(f"bylaw.align.training.{module}")
    except ModuleNotFoundError as error:
        raise UsageError(f"a checkpoint needs `{error.name}`", hint="install `bylaw[train]`") from None
