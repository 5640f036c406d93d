"""Runs the agents in the OpenAI Agents SDK, with a scripted model and the shield as its hooks."""

import json
from itertools import count
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from asking.agents import OWN, Kind, Made, Said, next_step
from asking.desks import Desk, Task
from asking.ways import Customer, schema_of, taught
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from bylaw.integrations.openai_agents import ShieldHooks
from bylaw.shield import Shield

set_tracing_disabled(True)
_ids = count(1)


class Scripted(Model):
    """A model that returns its agent's next step."""

    def __init__(self, step: Any) -> None:
        self._step = step

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        plain = [each if isinstance(each, dict) else each.model_dump() for each in items]
        said = self._step(system_instructions or "", history_of(plain))
        if isinstance(said, str):
            content = ResponseOutputText(type="output_text", text=said, annotations=[])
            about: Any = {"type": "message", "role": "assistant", "status": "completed", "content": [content]}
            output: Any = ResponseOutputMessage(id=f"msg_{next(_ids)}", **about)
        else:
            name, arguments = said
            told = json.dumps(arguments)
            output = ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{next(_ids)}", name=name, arguments=told
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def history_of(items: list[dict[str, Any]]) -> list[Said | Made]:
    """Convert the items to the agent's conversation so far."""
    results = {each["call_id"]: str(each["output"]) for each in items if each.get("type") == "function_call_output"}
    history: list[Said | Made] = []
    for each in items:
        if each.get("type") == "function_call":
            history.append(Made(each["name"], json.loads(each["arguments"]), results[each["call_id"]]))
        elif each.get("role") in ("user", "assistant"):
            content = each["content"]
            text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
            history.append(Said("user" if each["role"] == "user" else "agent", text))
    return history


class AgentsTalk:
    """One conversation. Its items are kept between runs."""

    def __init__(self, kind: Kind, task: Task, desk: Desk, customer: Customer, shielded: bool) -> None:
        look_ups = taught(desk, task)
        model = Scripted(lambda prompt, history: next_step(kind, task, prompt, look_ups, history))
        tools: Any = [_tool(name, schema_of(tool), desk) for name, tool in desk.pack.schema.tools.items()]
        agent = Agent(name="desk", instructions=OWN, model=model, tools=tools)
        self._hooks = ShieldHooks(Shield(desk.pack).session("c"), instruct=True) if shielded else None
        self._agent = self._hooks.protect(agent) if self._hooks is not None else agent
        self._items: list[Any] = []

    async def __aenter__(self) -> "AgentsTalk":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def say(self, text: str) -> str:
        items = [*self._items, {"role": "user", "content": text}]
        result = await Runner.run(self._agent, items, hooks=self._hooks, max_turns=30)
        self._items = result.to_input_list()
        return str(result.final_output)


def _tool(name: str, schema: dict[str, Any], desk: Desk) -> FunctionTool:
    async def invoke(_: Any, arguments: str) -> str:
        return desk.call(name, json.loads(arguments))

    return FunctionTool(
        name=name, description=name, params_json_schema=schema, on_invoke_tool=invoke, strict_json_schema=False
    )
