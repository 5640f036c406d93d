"""The rental desk as an agent of Pydantic AI, with a model that is a function of what it hears."""

import itertools
from collections.abc import Callable
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

_ids = itertools.count(1)
Says = Callable[[str, str, list[Any]], str | list[tuple[str, dict[str, Any]]]]


def scripted(script: Says) -> FunctionModel:
    """Says what the script makes of what it heard last: the tool's name or `user`, its words, and all messages."""

    def answer(messages: list[Any], _: AgentInfo) -> ModelResponse:
        last = [each for each in messages[-1].parts if isinstance(each, UserPromptPart | ToolReturnPart)][-1]
        who = last.tool_name if isinstance(last, ToolReturnPart) else "user"
        said = script(who, str(last.content), messages)
        if isinstance(said, str):
            return ModelResponse([TextPart(said)])
        return ModelResponse([ToolCallPart(name, args, f"call_{next(_ids)}") for name, args in said])

    return FunctionModel(answer)
