"""LangGraph's prebuilt agent, with a checkpointer."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from openinference.instrumentation import using_session
from script import CURRENT, Script


@wrap_tool_call
def _tell_errors(request: Any, handler: Any) -> Any:
    """Report a failed tool to the model, as in the documentation."""
    try:
        return handler(request)
    except Exception as error:
        return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")


def drive(script: Script, url: str, page: Any) -> None:
    page.run("before")
    memory = InMemorySaver()
    graphs: dict[str, Any] = {}
    for talk, user in script.interleaved():
        CURRENT.set(talk["id"])
        if talk["id"] not in graphs:
            model = ChatOpenAI(model=talk["id"], base_url=url, api_key="none")
            graphs[talk["id"]] = create_agent(
                model,
                script.functions(),
                system_prompt=talk["system"],
                checkpointer=memory,
                middleware=[_tell_errors],
                name="desk",
            )
        with using_session(talk["id"]):
            graphs[talk["id"]].invoke(
                {"messages": [("user", user)]}, {"configurable": {"thread_id": talk["id"]}, "recursion_limit": 99}
            )
    page.run("after", graph=next(iter(graphs.values())), threads=list(graphs))
