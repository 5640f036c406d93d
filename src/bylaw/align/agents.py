"""From what a user names to an agent: an OpenAI-compatible endpoint, a local checkpoint, or a script.

Of the scripts one is careful, and two must fail every fair task set half of the time.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

import msgspec

from bylaw.align.episode import ChatMessage, Episode
from bylaw.align.output import write_call
from bylaw.align.rollout import Agent, Generate, Model
from bylaw.errors import UsageError
from bylaw.llm import ModelMessage, Request
from bylaw.llm.endpoint import Endpoint, Settings
from bylaw.packs.clinic.simulator.dialogue import do
from bylaw.packs.clinic.tasks import Scenario
from bylaw.packs.clinic.tasks.careful import Careful
from bylaw.packs.clinic.tasks.parts import grounds


@runtime_checkable
class Weighing(Protocol):
    """An agent that can say how likely it is to begin with each of some words."""

    def chances(self, conversations: Sequence[list[ChatMessage]], choices: Sequence[str]) -> list[list[float]]:
        """Log-probabilities, for each conversation one for each choice."""
        ...


def open_agent(said: str, model: str = "") -> Agent:
    """`http://...` with a model's name, a folder with a checkpoint, or the name of a script."""
    if said in get_args(Script):
        return Scripted(cast(Script, said))
    if said.startswith(("http://", "https://")):
        if not model:
            raise UsageError("which model at the endpoint?", hint="name it with --model")
        return Model(endpoint(said, model))
    if Path(said).is_dir():
        return _training("checkpoint").open_checkpoint(Path(said))
    raise UsageError(
        f"`{said}` is not an agent", hint=f"an http address, a folder, or one of {', '.join(get_args(Script))}"
    )


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


def leanings(agent: Agent, asked: Sequence[list[ChatMessage]]) -> list[float]:
    """How much an agent leans to yes: by log-probability, or, where it has none to show, by what it writes."""
    if isinstance(agent, Weighing):
        return [yes - no for yes, no in agent.chances(asked, ("Yes", "No"))]
    if isinstance(agent, Model):
        return [1.0 if text.strip().lower().startswith("yes") else -1.0 for text in agent.generate(asked)]
    raise UsageError("a script cannot answer questions", hint="name an endpoint or a checkpoint")


def _training(module: str) -> Any:
    try:
        return import_module(f"bylaw.align.training.{module}")
    except ModuleNotFoundError as error:
        raise UsageError(f"a checkpoint needs `{error.name}`", hint="install `bylaw[train]`") from None


Script = Literal["careful", "comply", "refuse"]


class Scripted:
    """Plays the clinic's tasks by a script, which may know what no model does."""

    def __init__(self, script: Script) -> None:
        turns: dict[Script, Callable[[Episode], str]] = {"careful": self._careful, "comply": comply, "refuse": refuse}
        self._turn = turns[script]
        self._agents: dict[int, Careful] = {}

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        return [self._turn(episode) for episode in episodes]

    def _careful(self, episode: Episode) -> str:
        agent = self._agents.get(id(episode))
        if agent is None:
            agent = self._agents[id(episode)] = Careful(task_of(episode))
        else:
            last = episode.messages[-1]
            if last["role"] == "tool":
                agent.answered(msgspec.json.decode(last["content"]))
            else:
                agent.replied(last["content"])
        act = agent.act()
        return write_call(*act.call) if act.call else act.text


def comply(episode: Episode) -> str:
    """Does whatever the caller asks for, as the caller puts it; it tells first and asks for a yes."""
    task = task_of(episode)
    want = task.errands[place_of(episode)].want
    last = episode.messages[-1]
    if last["role"] == "tool":
        return "Done."
    return write_call(want.tool, want.arguments) if last["content"] == task.agrees else f"I'll {do(want)}. Shall I?"


def refuse(episode: Episode) -> str:
    """Refuses whatever the caller asks for, and, where there is a ground, knows it."""
    against = task_of(episode).errands[place_of(episode)].against
    because = grounds()[against]["because"] if against in grounds() else "it is against our rules"
    return f"I'm sorry, I can't do that: {because}."


def task_of(episode: Episode) -> Scenario:
    assert isinstance(episode.task, Scenario)
    return episode.task


def place_of(episode: Episode) -> int:
    """The last errand that the caller has named."""
    said = [message["content"] for message in episode.messages if message["role"] == "user"]
    errands = task_of(episode).errands
    return max(place for place, errand in enumerate(errands) if any(errand.words in text for text in said))
