"""LangGraph agents whose state is trimmed, summarised, repeated or reordered at random."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from bylaw.integrations.langchain import ShieldMiddleware
from bylaw.shield import Shield
from tests.integrations.changed import EveryChange, Host
from tests.integrations.changed import shield as shield
from tests.integrations.langchain.desk import Scripted
from tests.integrations.rental import CUSTOMER


class GraphHost(Host):
    def __init__(self, shield: Shield) -> None:
        super().__init__(shield)
        guard = ShieldMiddleware(shield, context=CUSTOMER)
        self.agent = create_agent(Scripted(script=self._script), self.tools(), middleware=[guard])

    def _script(self, messages: list[Any]) -> Any:
        return self.model([each.content for each in messages if isinstance(each, ToolMessage)])

    def run(self, stored: list[Any], texts: list[str]) -> list[Any]:
        config: Any = {"configurable": {"thread_id": self.name}}
        return self.agent.invoke({"messages": [*stored, *map(HumanMessage, texts)]}, config)["messages"]

    def kind(self, message: Any) -> str:
        if isinstance(message, AIMessage):
            return "call" if message.tool_calls else "agent"
        return "user" if isinstance(message, HumanMessage) else "answer"

    def summary(self) -> list[Any]:
        words = "Here is a summary: the customer says that the car was dirty. Yes."
        return [HumanMessage(words, additional_kwargs={"lc_source": "summarization"})]


class TestChanges(EveryChange):
    host = GraphHost
    without = ("twice",)
    """Messages of one id twice are one message to LangGraph."""
