"""Plays a task step by step, with outputs from a model, and replies from the tools and the user.

To play many episodes together, pass all their `messages` to a model, call `step` on each episode with its output, and
repeat until all are `done`. A step takes well under a millisecond.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from bylaw.align.output import read_output
from bylaw.align.prompt import PolicyPlace, pack_named, system_message, tool_lines, tool_schemas
from bylaw.policy.tool import Postures, Resolve
from bylaw.shield import Shield
from bylaw.trace.event import Call, Event, Message, Result

ChatMessage = dict[str, Any]
FAULTS = 4
"""The episode ends after this many unreadable outputs or invalid calls in a row."""


class Ending(Protocol):
    """The outcome according to the task's own ground truth. Rewards use the guards instead of this outcome."""

    @property
    def database(self) -> bool:
        """Whether the final records are correct."""
        ...

    @property
    def told(self) -> bool:
        """Whether the agent told the user everything that the task requires."""
        ...


class Scene(Protocol):
    """A conversation about one task, with its tools and its scripted user."""

    def opening(self) -> str: ...

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Return the result of a tool. Requires arguments that fit the tool's schema."""
        ...

    def hear(self, text: str) -> str | None:
        """Return the user's reply, or None if the user has left."""
        ...

    def ending(self) -> Ending:
        """Return the ending. Called once, at the end."""
        ...

    def close(self) -> None: ...


class Task(Protocol):
    """A task from a user, with its own records."""

    @property
    def id(self) -> str: ...

    @property
    def pack(self) -> str: ...

    @property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return the task's records by entity, as the tools show them."""
        ...

    @property
    def turns(self) -> int:
        """Return the maximum number of turns for the agent."""
        ...

    def scene(self) -> Scene: ...


class Words(Struct, frozen=True):
    """The number of words in all model calls of an episode."""

    prompt: int
    """Words in prompts, including the tool lists."""
    schema: int
    """Words in the tool lists."""
    output: int


class Outcome(Struct, frozen=True):
    task: str
    database: bool
    """Whether the final records are correct."""
    told: bool
    """Whether the agent told the user everything that the task requires."""
    turns: int
    words: Words
    events: tuple[Event, ...]
    """The conversation in the form that an audit reads."""
    thoughts: tuple[str, ...]
    faults: int
    """The number of outputs that were unreadable, named an unknown tool, or had invalid arguments."""

    @property
    def success(self) -> bool:
        """Whether the final records are correct and the agent told the user everything required."""
        return self.database and self.told


class Episode:
    """A conversation about one task, from the user's first message to the last message."""

    def __init__(self, task: Task, *, policy: PolicyPlace) -> None:
        self.task = task
        self.tools = tool_schemas(task.pack)
        self.done = False
        self.scene = task.scene()
        self._declared = pack_named(task.pack).schema.tools
        opening = self.scene.opening()
        system = system_message(task.pack, policy)
        self.messages: list[ChatMessage] = [
            {"role": "system", "content": system},
            {"role": "user", "content": opening},
        ]
        self.events: list[Event] = [Message("user", opening, turn=1)]
        self.thoughts: list[str] = []
        self._size = len(system.split()) + len(opening.split())
        self._schema = len(tool_lines(task.pack).split())
        self._prompt = self._output = self._turns = self._faults = self._row = 0
        self._ending: Ending | None = None

    def step(self, output: str) -> None:
        """Process the model's answer to `messages`."""
        if self.done:
            raise RuntimeError("the episode is over")
        self._turns += 1
        self._prompt += self._size
        self._output += len(output.split())
        self._put("assistant", output)
        read = read_output(output)
        if read.thought is not None:
            self.thoughts.append(read.thought)
        if read.fault:
            self._complain(read.fault)
        elif read.tool is not None:
            self._call(read.tool, read.arguments)
        else:
            self._say(read.text)
        if self._turns >= self.task.turns or self._row >= FAULTS:
            self.done = True

    def _say(self, text: str) -> None:
        self._row = 0
        self.events.append(Message("agent", text, turn=2 * self._turns))
        reply = self.scene.hear(text)
        if reply is None:
            self.done = True
            return
        self.events.append(Message("user", reply, turn=2 * self._turns + 1))
        self._put("user", reply)

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        tool = self._declared.get(name)
        if tool is None:
            self._complain(f"there is no tool {name}")
            return
        if why := misfit(arguments, tool.parameters, tool.required):
            self._complain(why)
            return
        self._row = 0
        self.events.append(Call(name, arguments, id=f"call_{self._turns}", turn=2 * self._turns))
        step = len(self.events) - 1
        answer = self.scene.call(name, arguments)
        content = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
        self.events.append(Result(step, content, tool=name))
        self._put("tool", content)

    def _complain(self, why: str) -> None:
        self._faults += 1
        self._row += 1
        self._put("tool", msgspec.json.encode({"error": why}).decode())

    def _put(self, role: str, content: str) -> None:
        self.messages.append({"role": role, "content": content})
        self._size += len(content.split())

    def outcome(self) -> Outcome:
        """Return the result and end the episode."""
        if self._ending is None:
            self.done = True
            self._ending = self.scene.ending()
            self.scene.close()
        words = Words(self._prompt, self._schema * self._turns, self._output)
        ending = self._ending
        return Outcome(
            self.task.id,
            ending.database,
            ending.told,
            self._turns,
            words,
            tuple(self.events),
            tuple(self.thoughts),
            self._faults,
        )


def misfit(arguments: dict[str, Any], parameters: dict[str, Any], required: tuple[str, ...]) -> str:
    """Return why arguments do not fit the schema of the tool, or an empty string if they fit."""
    if missing := [name for name in required if name not in arguments]:
        return f"the argument {missing[0]} is missing"
    if unknown := [name for name in arguments if name not in parameters]:
        return f"there is no argument {unknown[0]}"
    for name, value in arguments.items():
        if why := _unfit(name, cast(dict[str, Any], parameters[name]), value):
            return why
    return ""


def _unfit(name: str, schema: dict[str, Any], value: Any) -> str:
    words: list[Any] | None = schema.get("enum")
    if words:
        return "" if value in words else f"{name} is one of {', '.join(map(str, words))}"
    match schema.get("type"):
        case "array":
            return "" if isinstance(value, list) else f"{name} is a list"
        case "string":
            return "" if isinstance(value, str | int | float) else f"{name} is a text"
        case _:
            return ""


Generate = Callable[[Sequence[list[ChatMessage]]], list[str]]
"""A model: a function that takes conversations and returns the next output for each."""
SIDE_BY_SIDE = 500
Watch = Callable[[int, int], None]
"""Called with the turn number and the number of unfinished episodes."""


class Agent(Protocol):
    """Plays episodes with a model behind an endpoint, a local checkpoint, or a script."""

    def answer(self, episodes: Sequence[Episode]) -> list[str]: ...


class Model:
    """An agent that sees only the messages of an episode."""

    def __init__(self, generate: Generate) -> None:
        self.generate = generate

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        """Answer all episodes with a single model call."""
        return self.generate([episode.messages for episode in episodes])


def play(tasks: Sequence[Task], agent: Agent, *, policy: PolicyPlace, watch: Watch | None = None) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for start in range(0, len(tasks), SIDE_BY_SIDE):
        episodes = [Episode(task, policy=policy) for task in tasks[start : start + SIDE_BY_SIDE]]
        outcomes += finish(episodes, agent, watch=watch)
    return outcomes


def finish(episodes: Sequence[Episode], agent: Agent, *, watch: Watch | None = None) -> list[Outcome]:
    """Play episodes together until all are done."""
    turn = 0
    while live := [episode for episode in episodes if not episode.done]:
        turn += 1
        if watch is not None:
            watch(turn, len(live))
        for episode, output in zip(live, agent.answer(live), strict=True):
            episode.step(output)
    return [episode.outcome() for episode in episodes]


class ShieldedEpisode(Episode):
    """A conversation about one task with a shield.

    Every call is decided before it runs, and the agent reads the shield's feedback. The scripted user answers the
    agent's questions. No reviewer approves calls.
    """

    def __init__(self, task: Task, *, policy: PolicyPlace, resolve: Resolve = "agent") -> None:
        super().__init__(task, policy=policy)
        self.stopped: list[str] = []
        """The shield's feedback on each stopped call."""
        postures = Postures("enforce", resolve=resolve)
        shield = Shield(
            pack_named(task.pack),
            postures=postures,
            tools=lambda tool, arguments: self.scene.call(tool, dict(arguments)),
        )
        self.session = shield.session()
        self.session.user(self.messages[-1]["content"])

    def _say(self, text: str) -> None:
        self.session.agent(text)
        before = len(self.messages)
        super()._say(text)
        for message in self.messages[before:]:
            self.session.user(message["content"])

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        tool = self._declared.get(name)
        if tool is None or misfit(arguments, tool.parameters, tool.required):
            super()._call(name, arguments)
            return
        id = f"call_{self._turns}"
        decision = self.session.decide(name, arguments, id=id)
        if decision.allowed:
            place = len(self.events)
            super()._call(name, arguments)
            self.events[place] = Call(name, arguments, id=id, turn=2 * self._turns, looked_up=tuple(decision.resolved))
            self.session.result(self.messages[-1]["content"], id=id)
            return
        self._row = 0
        told = str(decision.feedback)
        self.stopped.append(decision.answer)
        self.session.result(told, id=id)
        step = len(self.events)
        turn, resolved = 2 * self._turns, tuple(decision.resolved)
        self.events.append(Call(name, arguments, id=id, turn=turn, refused=True, looked_up=resolved))
        self.events.append(Result(step, told, tool=name))
        self._put("tool", told)
