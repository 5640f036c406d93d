"""A model for agents of the OpenAI Agents SDK that is a function of the items it hears."""

import itertools
import json
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

_ids = itertools.count(1)


class Scripted(Model):
    """Says what its script makes of the items: a text, or calls."""

    def __init__(self, script: Any) -> None:
        self.script = script

    def _output(self, items: Any) -> list[Any]:
        given = [{"role": "user", "content": items}] if isinstance(items, str) else items
        said = self.script([each if isinstance(each, dict) else each.model_dump() for each in given])
        if isinstance(said, str):
            content = ResponseOutputText(type="output_text", text=said, annotations=[])
            message = ResponseOutputMessage(
                id=f"msg_{next(_ids)}", type="message", role="assistant", status="completed", content=[content]
            )
            return [message]
        return [
            ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{next(_ids)}", name=name, arguments=json.dumps(arguments)
            )
            for name, arguments in said
        ]

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(output=self._output(input), usage=Usage(), response_id=None)

    async def stream_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
        response = Response(
            id="r", created_at=0, model="scripted", object="response", output=self._output(input),
            tool_choice="auto", tools=[], parallel_tool_calls=True,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)


def text_of(item: dict[str, Any]) -> str:
    content = item.get("content")
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content or [])
