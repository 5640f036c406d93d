"""The rental desk as an agent of LangChain, with a model that is a function of what it hears."""

import itertools
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

Script = Callable[[list[Any]], str | list[tuple[str, dict[str, Any]]]]
_ids = itertools.count(1)


class Scripted(BaseChatModel):
    """Says what its script makes of the messages: a text, or calls."""

    script: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        said = self.script(messages)
        if isinstance(said, str):
            message = AIMessage(said)
        else:
            message = AIMessage(
                "", tool_calls=[{"name": name, "args": args, "id": f"call_{next(_ids)}"} for name, args in said]
            )
        return ChatResult(generations=[ChatGeneration(message=message)])
