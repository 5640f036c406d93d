"""Practice tasks for agents, with scripted users and tools. A package registers a desk for its pack under
`bylaw.desks`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from bylaw.align.episode import Agent, ChatMessage, Generate, Model, Task
from bylaw.align.prompt import pack_named
from bylaw.align.turn_evidence import Purpose
from bylaw.errors import UsageError
from bylaw.llm import ModelMessage, Request
from bylaw.llm.endpoint import Endpoint, Settings

GROUP = "bylaw.desks"


class Change(Protocol):
    """A call that changes a record."""

    @property
    def tool(self) -> str: ...

    @property
    def arguments(self) -> dict[str, Any]: ...


class Act(Protocol):
    """One turn of an expert: a call or a text to the user."""

    @property
    def purpose(self) -> Purpose: ...

    @property
    def call(self) -> tuple[str, dict[str, Any]] | None: ...

    @property
    def text(self) -> str: ...

    @property
    def slots(self) -> Sequence[tuple[Any, str, tuple[str, ...]]]:
        """The values that the text must state, each with its kind and matching patterns."""
        ...

    @property
    def write(self) -> Change | None:
        """The change that this turn prepares, makes, reports or refuses."""
        ...

    @property
    def refused(self) -> bool: ...


class Expert(Protocol):
    """Plays one task without mistakes. Its turns become training data."""

    def act(self) -> Act: ...

    def answered(self, answer: Any) -> None:
        """Process the result of the last call."""
        ...

    def replied(self, text: str) -> None:
        """Process the user's reply to the last text."""
        ...


class Desk(Protocol):
    """The practice tasks of a pack. An evaluation needs only `tasks`; all other methods may return nothing."""

    @property
    def parts(self) -> Sequence[str]:
        """Return the task sets: `training` and `rl` for learning, `development` and `test` for evaluation."""
        ...

    def tasks(self, part: str, times: int) -> Sequence[Task]:
        """Return the tasks in a part. `times` multiplies the usual number of learning tasks."""
        ...

    def expert(self, task: Task) -> Expert | None:
        """Return the expert for the task, or None."""
        ...

    def agents(self) -> Mapping[str, Agent]:
        """Return scripted agents for `--agent`, by name."""
        ...


@cache
def open_desk(pack: str) -> Desk:
    """Return the desk that an installed package provides for the pack."""
    name = pack_named(pack).name
    found = entry_points(group=GROUP)
    if name in found.names:
        return found[name].load()()
    known = ", ".join(sorted(found.names)) or "none"
    raise UsageError(
        f"no practice tasks for pack `{name}` (installed desks: {known})",
        hint=f"install a package that registers a desk named `{name}` under the entry point group `{GROUP}`, "
        "or write one: docs/guides/align.md",
    )


def load_tasks(part: str, pack: str = "clinic", *, times: int = 1) -> Sequence[Task]:
    """Return the tasks in one part (training, development, test or rl) of the desk.

    `times` multiplies the usual number of training and rl tasks.
    """
    desk = open_desk(pack)
    if part not in desk.parts:
        raise UsageError(f"unknown part `{part}`", hint=f"use one of {', '.join(desk.parts)}")
    return desk.tasks(part, times if part in ("training", "rl") else 1)


def open_agent(said: str, model: str = "", pack: str = "clinic") -> Agent:
    """Open an agent: `http://...` with a model name, a checkpoint folder, or a script from the pack's desk."""
    if said.startswith(("http://", "https://")):
        if not model:
            raise UsageError("the endpoint needs a model name", hint="name it with --model")
        return Model(endpoint(said, model))
    if Path(said).is_dir():
        try:
            return import_module("bylaw.align.training.checkpoint").open_checkpoint(Path(said))
        except ModuleNotFoundError as error:
            raise UsageError(f"a checkpoint requires `{error.name}`", hint="install `bylaw[train]`") from None
    scripts = open_desk(pack).agents()
    if said not in scripts:
        raise UsageError(
            f"`{said}` is not an agent", hint=f"pass an HTTP address, a folder, or one of {', '.join(scripts)}"
        )
    return scripts[said]


def endpoint(address: str, model: str) -> Generate:
    """Return a model behind an OpenAI-compatible API. It answers many conversations at once, with temperature 0."""
    chat = Endpoint(Settings(model, base_url=address, temperature=0.0, concurrency=16))

    def generate(conversations: Sequence[list[ChatMessage]]) -> list[str]:
        requests = [Request(tuple(ModelMessage(*as_chat(one)) for one in messages)) for messages in conversations]
        return [answer.text for answer in chat.ask(requests)]

    return generate


def as_chat(message: ChatMessage) -> tuple[Any, str]:
    """Return the role and content of a message. Tool results become user messages, because calls are ordinary text."""
    if message["role"] == "tool":
        return "user", f"<tool_response>\n{message['content']}\n</tool_response>"
    return message["role"], message["content"]
