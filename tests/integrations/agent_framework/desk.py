"""The rental desk as an agent of Microsoft's Agent Framework, with a model that is a function of what it hears."""

import itertools
from collections.abc import Callable
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

_ids = itertools.count(1)
Says = Callable[[list[Any]], str | list[tuple[str, dict[str, Any]]]]


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Says what the script makes of the messages of a request."""

    def __init__(self, script: Says, **given: Any) -> None:
        super().__init__(**given)
        self.script = script

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> ChatResponse:
        said = self.script(list(messages))
        contents: list[Any] = [said] if isinstance(said, str) else [_call(*each) for each in said]
        return ChatResponse(messages=[Message(role="assistant", contents=contents)])


def _call(name: str, arguments: dict[str, Any], id: str = "") -> Content:
    return Content.from_function_call(call_id=id or f"call_{next(_ids)}", name=name, arguments=arguments)


def results(messages: list[Any]) -> list[str]:
    """What functions answered, or the model was told in their place."""
    found = [each for message in messages for each in message.contents if each.type == "function_result"]
    return [str(each.result) for each in found]


def agent(script: Says, tools: list[Any], middleware: list[Any], *, client: Any = None, **given: Any) -> Agent:
    """An agent whose model follows the script."""
    return Agent(client=Scripted(script, **client or {}), tools=tools, middleware=middleware, **given)


def stored(session: AgentSession) -> list[Any]:
    """The messages that a session keeps."""
    return list(session.state.get("in_memory", {}).get("messages", []))
