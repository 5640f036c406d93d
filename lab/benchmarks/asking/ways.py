"""Ways for an agent to reach its tools: a plain loop in Python, HTTP, or MCP, each with and without the shield."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Protocol

from asking.agents import KINDS, OWN, Kind, Made, Said, Step, next_step
from asking.desks import Arguments, Desk, Scene, Task
from msgspec import Struct

from bylaw.integrations.guard import joined
from bylaw.record import Log
from bylaw.shield import Shield
from bylaw.shield.instructions import write_instructions

MOST = 6
"""The maximum number of messages from the customer. A task that needs more has failed."""
YESES = ("Yes.", "Yes, please.", "Yes, please go ahead.", "Sure, go ahead.")
_names = count(1)


class Outcome(Struct, frozen=True):
    messages: int
    done: bool
    without_yes: int


class Customer:
    """A customer who states the request and says yes to every question."""

    def __init__(self, task: Task, desk: Desk) -> None:
        self.task, self.desk, self.messages = task, desk, 0

    def open(self) -> str:
        self.messages += 1
        return self.task.opening

    def yes(self, asked: str) -> str:
        """Return the answer to a question or a card."""
        self.messages += 1
        self.desk.agreed = asked
        return YESES[self.messages % len(YESES)]


class Talk(Protocol):
    """One conversation of one agent."""

    async def say(self, text: str) -> str:
        """Return the agent's answer to the customer's message."""
        ...


Way = Callable[[Kind, Task, Desk, Customer, bool], Any]
"""Opens a talk as an asynchronous context manager. The last argument says whether the shield protects the tools."""


class Loop:
    """An agent in a plain loop, with its prompt and the function that makes its calls."""

    def __init__(
        self, kind: Kind, task: Task, desk: Desk, prompt: str, call: Callable[[str, Arguments], Awaitable[str]]
    ) -> None:
        self._kind, self._task, self._prompt, self._call = kind, task, prompt, call
        self._look_ups = taught(desk, task)
        self.history: list[Said | Made] = []

    async def say(self, text: str) -> str:
        self.history.append(Said("user", text))
        while not isinstance(step := self._next(), str):
            tool, arguments = step
            self.history.append(Made(tool, arguments, await self._call(tool, arguments)))
        self.history.append(Said("agent", step))
        return step

    def _next(self) -> Step:
        return next_step(self._kind, self._task, self._prompt, self._look_ups, self.history)


def taught(desk: Desk, task: Task) -> Sequence[str]:
    """Return the look-ups for the tool that every agent except the hasty one is told to make, with or without the
    shield.
    """
    return next((each.look_ups for each in write_instructions(desk.pack) if each.tool == task.tool), ())


class PythonTalk:
    """A talk with `Shield` in this process."""

    def __init__(self, kind: Kind, task: Task, desk: Desk, customer: Customer, shielded: bool) -> None:
        self._desk = desk
        shield = Shield(desk.pack)
        self._session = shield.session(f"c{next(_names)}") if shielded else None
        prompt = joined(OWN, shield.instructions() if shielded else "")
        self._loop = Loop(kind, task, desk, prompt, self._call)

    async def __aenter__(self) -> "PythonTalk":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def say(self, text: str) -> str:
        if self._session is not None:
            self._session.user(text)
        said = await self._loop.say(text)
        if self._session is not None:
            self._session.agent(said)
        return said

    async def _call(self, tool: str, arguments: Arguments) -> str:
        if self._session is None:
            return self._desk.call(tool, arguments)
        decision = self._session.decide(tool, arguments)
        told = self._desk.call(tool, arguments) if decision.allowed else decision.feedback
        self._session.result(told)
        return told


class HttpTalk:
    """A talk with the service, through its HTTP routes."""

    def __init__(self, kind: Kind, task: Task, desk: Desk, customer: Customer, shielded: bool) -> None:
        self._kind, self._task, self._desk, self._shielded = kind, task, desk, shielded
        self._name = f"c{next(_names)}"

    async def __aenter__(self) -> "HttpTalk":
        import httpx

        from bylaw.service.app import Service
        from bylaw.service.desk import Desk as ServiceDesk

        self._log = Log(":memory:")
        app = Service(ServiceDesk(self._desk.pack, self._log), {})
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")
        told = (await self._client.get("/v1/instructions")).json()["text"] if self._shielded else ""
        self._loop = Loop(self._kind, self._task, self._desk, joined(OWN, told), self._call)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
        self._log.close()

    async def _post(self, path: str, **body: Any) -> Any:
        answer = await self._client.post(path, json={"conversation": self._name, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def say(self, text: str) -> str:
        if self._shielded:
            await self._post("/v1/events", events=[{"user": text}])
        said = await self._loop.say(text)
        if self._shielded:
            await self._post("/v1/events", events=[{"agent": said}])
        return said

    async def _call(self, tool: str, arguments: Arguments) -> str:
        if not self._shielded:
            return self._desk.call(tool, arguments)
        (decision,) = (await self._post("/v1/decide", tool=tool, arguments=arguments))["decisions"]
        told = self._desk.call(tool, arguments) if decision["allowed"] else decision["feedback"]
        await self._post("/v1/events", events=[{"result": told}])
        return told


class McpTalk:
    """A talk with an MCP server behind the proxy. The user gets forms, and no messages are reported."""

    def __init__(self, kind: Kind, task: Task, desk: Desk, customer: Customer, shielded: bool) -> None:
        self._kind, self._task, self._desk, self._customer, self._shielded = kind, task, desk, customer, shielded

    async def __aenter__(self) -> "McpTalk":
        from fastmcp import FastMCP
        from mcp import Client
        from mcp_types import ElicitResult

        from bylaw.integrations.mcp import proxy

        server = FastMCP("desk", instructions=OWN)
        for name, tool in self._desk.pack.schema.tools.items():
            server.add_tool(_mcp_tool(name, schema_of(tool), self._desk))

        async def elicit(_: Any, params: Any) -> Any:
            self._customer.yes(params.message)
            return ElicitResult(action="accept", content={"agree": True})

        shield = Shield(self._desk.pack)
        front = proxy(shield, server, conversation=f"c{next(_names)}") if self._shielded else server
        self._client = Client(front._mcp_server, mode="legacy", elicitation_callback=elicit)
        await self._client.__aenter__()
        prompt = self._client.instructions or ""
        self._loop = Loop(self._kind, self._task, self._desk, prompt, self._call)
        return self

    async def __aexit__(self, *given: Any) -> None:
        await self._client.__aexit__(*given)

    async def say(self, text: str) -> str:
        return await self._loop.say(text)

    async def _call(self, tool: str, arguments: Arguments) -> str:
        result = await self._client.call_tool(tool, arguments)
        return "\n".join(part.text for part in result.content)


def _mcp_tool(name: str, schema: dict[str, Any], desk: Desk) -> Any:
    from fastmcp.tools import Tool
    from fastmcp.tools.base import ToolResult

    class DeskTool(Tool):
        async def run(self, arguments: dict[str, Any]) -> Any:
            return ToolResult(content=desk.call(name, arguments))

    return DeskTool(name=name, parameters=schema)


def schema_of(tool: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict(tool.parameters), "required": list(tool.required)}


async def converse(way: Way, kind: Kind, scene: Scene, task: Task, *, shielded: bool) -> Outcome:
    """Run one conversation until the agent stops asking."""
    desk = scene.open()
    customer = Customer(task, desk)
    async with way(kind, task, desk, customer, shielded) as talk:
        said = await talk.say(customer.open())
        while "?" in said and customer.messages < MOST:
            said = await talk.say(customer.yes(said))
    return Outcome(customer.messages, scene.is_done(desk, task), desk.without_yes)


def play(way: Way, scenes: Sequence[Scene]) -> list[dict[str, Any]]:
    """Return every conversation over one way of calling, as rows."""
    rows: list[dict[str, Any]] = []
    for scene in scenes:
        for kind in KINDS:
            for task in scene.tasks:
                for shielded in (False, True):
                    found = asyncio.run(converse(way, kind, scene, task, shielded=shielded))
                    about = {"desk": scene.name, "agent": kind, "task": task.id, "shield": shielded}
                    rows.append({**about, "messages": found.messages, "done": found.done, "no_yes": found.without_yes})
    return rows
