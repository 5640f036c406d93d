"""LangGraph: who is speaking is told run by run, and what one principal said is not another's."""

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from bylaw.integrations.langchain import ShieldMiddleware
from bylaw.record import Log
from bylaw.trace.event import Message
from tests.integrations.langchain.desk import Scripted
from tests.integrations.rental import BESIDE, EXTEND, PUT_EXTEND, Rentals, desk

THREAD: Any = {"configurable": {"thread_id": "c1"}}


class Talk:
    """One agent for everybody, in several workers that share the checkpoints and the log."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.rentals, memory = Rentals(), InMemorySaver()
        self.guards, self.agents = [], []
        for _ in range(workers):
            log = {"log": Log(str(folder / "log.sqlite"), is_shared=True)} if workers > 1 else {}
            shield = desk(folder, **log)
            guard = ShieldMiddleware(shield, context=lambda runtime: {"signed_in_as": runtime.context["user"]})
            tools = [self.rentals.get_rental, self.rentals.extend_rental]
            agent = create_agent(
                Scripted(script=self.script), tools, middleware=[guard], checkpointer=memory, context_schema=dict
            )
            self.guards.append(guard)
            self.agents.append(agent)
        self.steps: list[Any] = []

    def script(self, _: Any) -> Any:
        return self.steps.pop(0)

    def say(self, user: str, text: str, *steps: Any, worker: int = 0) -> None:
        self.steps = [*steps]
        agent = self.agents[worker % len(self.agents)]
        agent.invoke({"messages": [("user", text)]}, THREAD, context={"user": user})


LOOK, WRITE = [("get_rental", {"rental_id": "R1"})], [("extend_rental", EXTEND)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_one_agent_serves_many_principals(tmp_path: Path, workers: int) -> None:
    talk = Talk(tmp_path, workers)
    talk.say("C1", "Extend R1", LOOK, PUT_EXTEND)
    talk.say("C1", "Yes, please.", WRITE, "Done.", worker=1)
    assert talk.rentals.ran == ["extend R1"]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_yes_of_one_principal_is_not_anothers(tmp_path: Path, workers: int) -> None:
    talk = Talk(tmp_path, workers)
    # C2 is told everything and says yes; but the rental, and the question, are C1's.
    talk.say("C1", "Extend R1", LOOK, PUT_EXTEND)
    talk.say("C2", "Yes, please.", LOOK, WRITE, "Hm.", worker=1)
    assert talk.rentals.ran == []
    talk.say("C2", "Extend R1", PUT_EXTEND, worker=2)
    talk.say("C2", "Yes, please.", "One moment.", worker=1)
    # Back to C1, who has not agreed to anything.
    talk.say("C1", "Hello?", LOOK, WRITE, "Hm.", worker=2)
    assert talk.rentals.ran == []
    talk.say("C1", "What now?", PUT_EXTEND, worker=0)
    talk.say("C1", "Yes, please.", LOOK, WRITE, "Hm.", worker=0)
    assert talk.rentals.ran == ["extend R1"]


def test_what_another_principal_said_is_in_a_conversation_of_its_own(tmp_path: Path) -> None:
    talk = Talk(tmp_path, 1)
    talk.say("C1", "Extend R1", LOOK, PUT_EXTEND)
    talk.say("C2", "Yes, please.", WRITE, "Hm.")
    talk.say("C1", "No.", "All right.")
    first = talk.guards[0].follower("c1")
    said = [each.text for each in first.session.trajectory().events if isinstance(each, Message) and each.by == "user"]
    assert [each for each in said if each] == ["Extend R1", "No."]


@pytest.mark.parametrize("part", BESIDE, ids=lambda part: part["type"])
def test_a_yes_to_a_question_beside_media_is_undecided(tmp_path: Path, part: dict[str, Any]) -> None:
    talk = Talk(tmp_path, 1)
    talk.say("C1", "Look", LOOK, "Here it is.")
    talk.steps = [WRITE, "End."]
    question = AIMessage([part, {"type": "text", "text": PUT_EXTEND}])
    messages = [HumanMessage("Extend R1"), question, HumanMessage("Yes")]
    talk.agents[0].invoke({"messages": messages}, THREAD, context={"user": "C1"})
    assert talk.rentals.ran == (["extend R1"] if part["type"] == "text" else [])
