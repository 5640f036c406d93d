"""LangGraph's own pause for every `ask`: one prompt for one write, whoever answers it and wherever it goes on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `langchain`")

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from bylaw.integrations.langchain import ShieldMiddleware
from tests.integrations.guide import run_section
from tests.integrations.langchain_desk import Scripted
from tests.integrations.pausing import APPROVED, CONFIRMED, Asking, check_approval, check_card
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, REFUND, Rentals, desk

THREAD: Any = {"configurable": {"thread_id": "c1"}}


def script(messages: list[Any]) -> Any:
    last = messages[-1]
    if isinstance(last, ToolMessage):
        if last.name != "get_rental":
            return f"End: {last.content}"
        return PUT_EXTEND if messages[0].content == "Tell me first." else [("extend_rental", EXTEND)]
    if last.content == "Both.":
        return [("extend_rental", EXTEND), ("refund", REFUND)]
    return [("extend_rental", EXTEND)] if last.content == "Yes, please." else [("get_rental", {"rental_id": "R1"})]


class Desk:
    """A worker; several share the checkpointer and the log."""

    def __init__(self, folder: Path, *, log: Any = None, memory: Any = None, rentals: Any = None, **given: Any) -> None:
        self.rentals, self.memory = rentals or Rentals(), memory or InMemorySaver()
        self.shield = given.get("shield") or desk(folder, log=log)
        self.guard = ShieldMiddleware(self.shield, context=given.get("context", CUSTOMER), pauses=True)
        tools = [self.rentals.get_rental, given.get("tool") or self.rentals.extend_rental, self.rentals.refund]
        self.agent = create_agent(Scripted(script=script), tools, checkpointer=self.memory, middleware=[self.guard])

    def say(self, text: str) -> Any:
        return self.agent.invoke({"messages": [("user", text)]}, THREAD)

    def answer(self, given: Any) -> Any:
        """Resume with the answer to what waits."""
        (asked,) = self.agent.get_state(THREAD).interrupts
        answer = {"id": asked.value["id"], **given} if isinstance(given, dict) else given
        return self.agent.invoke(Command(resume=answer), THREAD)

    def prompts(self, result: Any) -> list[Any]:
        return [each.value for each in result.get("__interrupt__", ())]

    @property
    def session(self) -> Any:
        follower = self.guard.follower("c1")
        assert follower is not None
        return follower.session


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_the_users_answer_to_a_card_is_a_confirmation(tmp_path: Path, where: str) -> None:
    log = tmp_path / "log.sqlite" if "log" in where else None
    first = Desk(tmp_path, log=log)
    (prompt,) = first.prompts(first.say("Extend R1"))
    assert (prompt["whom"], prompt["tool"], prompt["arguments"]) == ("user", "extend_rental", EXTEND)
    assert "2026-11-20" in prompt["text"]
    assert first.rentals.ran == []
    worker = Desk(tmp_path, log=log, memory=first.memory, rentals=first.rentals) if "else" in where else first
    ended = worker.answer(CONFIRMED)
    assert worker.prompts(ended) == []
    assert "extended" in ended["messages"][-1].content
    assert worker.rentals.ran == ["extend R1"]
    check_card(worker.session)


def test_without_a_log_another_worker_asks_once_more(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.say("Extend R1")
    other = Desk(tmp_path, memory=first.memory, rentals=first.rentals)
    assert other.prompts(other.answer(CONFIRMED)) != []
    assert other.rentals.ran == []
    other.answer(CONFIRMED)
    assert other.rentals.ran == ["extend R1"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_persons_answer_is_an_approval(tmp_path: Path, elsewhere: bool) -> None:
    given: Any = {"log": tmp_path / "log.sqlite", "context": None}
    first = Desk(tmp_path, **given)
    assert first.prompts(first.say("Tell me first.")) == []
    (prompt,) = first.prompts(first.say("Yes, please."))
    assert prompt["whom"] == "person"
    assert "Which customer is signed in?" in prompt["text"]
    worker = Desk(tmp_path, memory=first.memory, rentals=first.rentals, **given) if elsewhere else first
    assert "extended" in worker.answer(APPROVED)["messages"][-1].content
    assert worker.rentals.ran == ["extend R1"]
    check_approval(worker.shield)


def test_an_approval_never_counts_as_the_users_yes(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite")
    worker.say("Extend R1")
    ended = worker.answer(APPROVED)
    assert "Please confirm: extend rental" in ended["messages"][-1].content
    assert worker.rentals.ran == []


def test_nor_does_the_users_yes_count_as_an_approval(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite", context=None)
    (asked,) = worker.prompts(worker.say("Extend R1"))
    (second,) = worker.prompts(worker.answer(CONFIRMED))
    assert [asked["whom"], second["whom"]] == ["user", "person"]
    worker.answer(CONFIRMED)
    assert worker.rentals.ran == []
    (waiting,) = worker.shield.log.approvals("default")
    assert waiting.status == "waiting"


def test_where_both_are_needed_each_is_asked_once(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite", context=None)
    asked = [
        worker.prompts(each) for each in (worker.say("Extend R1"), worker.answer(CONFIRMED), worker.answer(APPROVED))
    ]
    assert [[each["whom"] for each in prompts] for prompts in asked] == [["user"], ["person"], []]
    assert worker.rentals.ran == ["extend R1"]


@pytest.mark.parametrize("answer", [True, "yes", {"confirm": True, "id": "c1/99"}])
def test_what_does_not_say_what_it_answers_is_no_answer(tmp_path: Path, answer: Any) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite")
    before = worker.prompts(worker.say("Extend R1"))
    assert worker.prompts(worker.answer(answer)) == before
    assert worker.rentals.ran == []
    worker.answer(CONFIRMED)
    assert worker.rentals.ran == ["extend R1"]


@pytest.mark.parametrize("answer", [{"confirm": False}, {"approve": True, "by": "ann"}, {}, {"confirm": 1}])
def test_what_is_no_yes_lets_nothing_run_and_nobody_is_asked_again(tmp_path: Path, answer: Any) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite")
    worker.say("Extend R1")
    ended = worker.answer(answer)
    assert worker.prompts(ended) == []
    assert worker.rentals.ran == []
    assert "extend_rental" in ended["messages"][-1].content


def test_after_a_no_the_agent_cannot_make_the_user_answer_again(tmp_path: Path) -> None:
    worker = Desk(tmp_path)
    worker.say("Extend R1")
    worker.answer({"confirm": False})
    again = worker.agent.update_state(THREAD, {"messages": [ToolMessage("", tool_call_id="x", name="get_rental")]})
    assert worker.prompts(worker.agent.invoke(None, again)) == []
    assert worker.rentals.ran == []


def test_a_person_who_rejects_is_heard(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite", context=None)
    worker.say("Tell me first.")
    worker.say("Yes, please.")
    ended = worker.answer({"approve": False, "by": "ann", "note": "not before Monday"})
    assert "not before Monday" in ended["messages"][-1].content
    assert worker.rentals.ran == []


def test_an_approval_that_was_given_elsewhere_is_found(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite", context=None)
    worker.say("Tell me first.")
    (prompt,) = worker.prompts(worker.say("Yes, please."))
    worker.shield.log.approve(prompt["id"], by="ann")
    worker.answer({})
    assert worker.rentals.ran == ["extend R1"]


def test_one_answer_is_one_write_in_two_workers(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    one = Desk(tmp_path, log=log)
    (prompt,) = one.prompts(one.say("Extend R1"))
    config = one.agent.get_state(THREAD).config
    one.answer(CONFIRMED)
    other = Desk(tmp_path, log=log, memory=one.memory, rentals=one.rentals)
    again = other.agent.invoke(Command(resume={"id": prompt["id"], **CONFIRMED}), config)
    assert one.rentals.ran == ["extend R1"]
    (asked,) = other.prompts(again)
    assert asked["id"] != prompt["id"], "another write needs another yes"


def test_several_calls_of_a_turn_are_asked_about_one_by_one(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite")
    worker.say("It was dirty.")
    worker.answer({"confirm": False})
    asked = worker.say("Both.")["__interrupt__"]
    assert {each.value["tool"] for each in asked} == {"extend_rental", "refund"}
    answers = [{"id": each.value["id"], "confirm": each.value["tool"] == "extend_rental"} for each in asked]
    worker.agent.invoke(Command(resume={each.id: said for each, said in zip(asked, answers, strict=True)}), THREAD)
    assert worker.rentals.ran == ["extend R1"]


def test_a_tool_that_asks_itself_gets_its_own_answer(tmp_path: Path) -> None:
    rentals, heard = Rentals(), []

    def extend_rental(rental_id: str, new_end: str) -> str:
        """Extend a rental to a new last day."""
        heard.append(interrupt("really?"))
        return rentals.extend_rental(rental_id, new_end)

    log = tmp_path / "log.sqlite"
    first = Desk(tmp_path, log=log, rentals=rentals, tool=extend_rental)
    first.say("Extend R1")
    assert first.prompts(first.answer(CONFIRMED)) == ["really?"]
    other = Desk(tmp_path, log=log, rentals=rentals, tool=extend_rental, memory=first.memory)
    other.agent.invoke(Command(resume="sure"), THREAD)
    assert heard == ["sure"]
    assert rentals.ran == ["extend R1"]


def test_it_goes_on_under_ainvoke_too(tmp_path: Path) -> None:
    worker = Desk(tmp_path, log=tmp_path / "log.sqlite")

    async def talk() -> None:
        (prompt,) = worker.prompts(await worker.agent.ainvoke({"messages": [("user", "Extend R1")]}, THREAD))
        await worker.agent.ainvoke(Command(resume={"id": prompt["id"], **CONFIRMED}), THREAD)

    asyncio.run(talk())
    assert worker.rentals.ran == ["extend R1"]
    check_card(worker.session)


def test_without_pauses_the_agent_is_told(tmp_path: Path) -> None:
    worker = Desk(tmp_path)
    worker.guard._pauses = False
    ended = worker.say("Extend R1")
    assert worker.prompts(ended) == []
    assert "Please confirm: extend rental" in ended["messages"][-1].content


def test_the_lines_of_the_guide_run(tmp_path: Path) -> None:
    rentals, asked = Rentals(), Asking()
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        names = {
            "model": Scripted(script=script),
            "tools": [rentals.get_rental, rentals.extend_rental],
            "saver": InMemorySaver(),
            "thread": THREAD,
            "shield": shield,
            **asked.names(),
        }
        told = asyncio.run(run_section("LangGraph", names, "reference/pauses.md"))
    assert "extended" in told["result"]["messages"][-1].content
    assert asked.whom == ["user", "person"]
    assert rentals.ran == ["extend R1"]
