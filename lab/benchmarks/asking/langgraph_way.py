"""Runs the agents in LangGraph: LangChain's own agent, with a scripted model and the shield as its middleware."""

from itertools import count
from typing import Any

from asking.agents import OWN, Kind, Made, Said, next_step
from asking.desks import Desk, Task
from asking.ways import Customer, schema_of, taught
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from bylaw.integrations.langchain import ShieldMiddleware
from bylaw.shield import Shield

_ids = count(1)


class Scripted(BaseChatModel):
    """A model that returns its agent's next step."""

    step: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        prompt = "\n\n".join(each.text for each in messages if isinstance(each, SystemMessage))
        said = self.step(prompt, history_of(messages))
        if isinstance(said, str):
            message = AIMessage(said)
        else:
            message = AIMessage("", tool_calls=[{"name": said[0], "args": said[1], "id": f"call_{next(_ids)}"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


def history_of(messages: list[Any]) -> list[Said | Made]:
    """Convert the messages to the agent's conversation so far."""
    results = {each.tool_call_id: each.text for each in messages if isinstance(each, ToolMessage)}
    history: list[Said | Made] = []
    for each in messages:
        if isinstance(each, HumanMessage):
            history.append(Said("user", each.text))
        elif isinstance(each, AIMessage):
            if each.text:
                history.append(Said("agent", each.text))
            history += [Made(call["name"], call["args"], results[call["id"]]) for call in each.tool_calls]
    return history


class LangGraphTalk:
    """One thread of the agent."""

    def __init__(self, kind: Kind, task: Task, desk: Desk, customer: Customer, shielded: bool) -> None:
        look_ups = taught(desk, task)
        model = Scripted(step=lambda prompt, history: next_step(kind, task, prompt, look_ups, history))
        tools = [_tool(name, schema_of(tool), desk) for name, tool in desk.pack.schema.tools.items()]
        middleware = [ShieldMiddleware(Shield(desk.pack), instruct=True)] if shielded else []
        given: Any = {"system_prompt": OWN, "checkpointer": InMemorySaver(), "middleware": middleware}
        self._agent = create_agent(model, tools, **given)

    async def __aenter__(self) -> "LangGraphTalk":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def say(self, text: str) -> str:
        config: Any = {"configurable": {"thread_id": "c"}, "recursion_limit": 60}
        done = await self._agent.ainvoke({"messages": [("user", text)]}, config)
        return done["messages"][-1].text


def _tool(name: str, schema: dict[str, Any], desk: Desk) -> StructuredTool:
    async def call(**given: Any) -> str:
        return desk.call(name, given)

    return StructuredTool.from_function(coroutine=call, name=name, description=name, args_schema=schema)
