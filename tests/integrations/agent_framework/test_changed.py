"""Agents of Microsoft's Agent Framework whose messages are trimmed, summarised, repeated or mixed with others."""

import asyncio
import json
from typing import Any

import pytest
from agent_framework import (
    AgentSession,
    CompactionProvider,
    Content,
    ContextProvider,
    InMemoryHistoryProvider,
    Message,
    SlidingWindowStrategy,
    SummarizationStrategy,
    ToolResultCompactionStrategy,
    apply_compaction,
)
from hypothesis import given, settings

from bylaw.integrations.agent_framework import ShieldMiddleware
from bylaw.shield import Shield
from tests.integrations.agent_framework.desk import Scripted, agent, results, stored
from tests.integrations.changed import LIMITS, EveryChange, Host, finished, play, runs
from tests.integrations.changed import shield as shield
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, PUT_REFUND, REFUND, Rentals

SUMMARY = f"The customer says that the car was dirty. Yes. {PUT_EXTEND}"


class SessionHost(Host):
    """The messages of a session are edited between runs, as a host with its own store might."""

    def __init__(self, shield: Shield) -> None:
        super().__init__(shield)
        guard = ShieldMiddleware(shield, context=CUSTOMER)
        self.agent = agent(self._script, self.tools(), guard.all, **self.options())

    def options(self) -> dict[str, Any]:
        return {}

    def _script(self, messages: list[Any]) -> Any:
        return self.model(results(messages))

    def run(self, stored: list[Any], texts: list[str]) -> list[Any]:
        return asyncio.run(self._run(stored, texts))

    async def _run(self, before: list[Any], texts: list[str]) -> list[Any]:
        session = AgentSession(session_id=self.name)
        session.state["in_memory"] = {"messages": list(before)}
        # As it comes back from wherever sessions are kept.
        session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
        await self.agent.run([Message(role="user", contents=[text]) for text in texts], session=session)
        return stored(session)

    def summary(self) -> list[Any]:
        messages = list(self.stored)
        strategy = SummarizationStrategy(client=Scripted(lambda _: SUMMARY), target_count=1, threshold=0)
        asyncio.run(apply_compaction(messages, strategy=strategy))
        return [each for each in messages if each.text == SUMMARY]

    def kind(self, message: Any) -> str:
        kinds = {each.type for each in message.contents}
        if "function_result" in kinds:
            return "answer"
        if "function_call" in kinds:
            return "call"
        return "user" if message.role == "user" else "agent"


class CompactedHost(SessionHost):
    """The framework itself compacts what it has kept, and leaves out what that excludes."""

    strategy: Any

    def options(self) -> dict[str, Any]:
        history = InMemoryHistoryProvider(skip_excluded=True)
        return {"context_providers": [history, CompactionProvider(after_strategy=type(self).strategy())]}


class SlidingHost(CompactedHost):
    strategy = staticmethod(lambda: SlidingWindowStrategy(keep_last_groups=2))


class SummarisedHost(CompactedHost):
    strategy = staticmethod(
        lambda: SummarizationStrategy(client=Scripted(lambda _: SUMMARY), target_count=1, threshold=0)
    )


class ResultsHost(CompactedHost):
    strategy = staticmethod(lambda: ToolResultCompactionStrategy(keep_last_tool_call_groups=0))


class InRunHost(SessionHost):
    """The client compacts while it runs."""

    def options(self) -> dict[str, Any]:
        return {"client": {"compaction_strategy": SummarisedHost.strategy()}}


class NewHost(SessionHost):
    """The history is kept at the model's provider: only what is new is handed over."""

    def options(self) -> dict[str, Any]:
        return {"context_providers": [InMemoryHistoryProvider(load_messages=False)]}


HOSTS = [SlidingHost, SummarisedHost, ResultsHost, InRunHost, NewHost]


class TestChanges(EveryChange):
    host = SessionHost


@pytest.mark.parametrize("host", HOSTS)
@settings(**{**LIMITS, "max_examples": 10})
@given(steps=runs(["keep"]))
def test_nor_where_the_framework_compacts(shield: Shield, host: type[SessionHost], steps: list[Any]) -> None:
    play(host(shield), steps)


@pytest.mark.parametrize("host", HOSTS)
def test_agents_that_the_framework_compacts_finish_their_tasks(shield: Shield, host: type[SessionHost]) -> None:
    shares = finished(lambda: host(shield), ["keep"])
    assert min(shares.values()) >= 0.95, shares


def test_what_a_summary_says_was_asked_was_not(shield: Shield) -> None:
    host = SessionHost(shield)
    host.say(["Hello"], [("get_rental", {"rental_id": "R1"})], "I have it.")
    host.stored = host.summary()
    assert host.stored
    host.say(["Yes, please."], [("extend_rental", EXTEND)], "Hm.")
    assert host.rentals.ran == []


class Memory(ContextProvider):
    """Remembers something of the user, and says it in their name as such providers do."""

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        if not session.state.get("in_memory"):
            context.extend_messages(self, [Message(role="user", contents=["The car was dirty."])])


@pytest.mark.parametrize("stores", [False, True])
def test_what_a_provider_of_context_says_is_not_the_users_word(shield: Shield, stores: bool) -> None:
    refund: Any = [("refund", REFUND)]
    steps = iter([[("get_rental", {"rental_id": "R1"})], PUT_REFUND, refund, "Why?", PUT_REFUND, refund, "Done."])
    rentals = Rentals()
    desk = agent(
        lambda _: next(steps), [rentals.get_rental, rentals.refund],
        ShieldMiddleware(shield, context=CUSTOMER).all,
        context_providers=[InMemoryHistoryProvider(store_context_messages=stores), Memory(source_id="memory")],
    )  # fmt: skip
    session = AgentSession(session_id=f"memory {stores}")

    async def talk(*texts: str) -> None:
        for text in texts:
            await desk.run(text, session=session)

    asyncio.run(talk("Refund 20.00 for R1", "Yes, please."))
    assert rentals.ran == []
    asyncio.run(talk("The car was dirty.", "Yes, please."))
    assert rentals.ran == ["refund 20.00"]


ASKED = Content.from_function_call(call_id="k1", name="get_rental", arguments={"rental_id": "R1"})
ELSEWHERE = Content.from_function_call(call_id="k1", name="web", arguments={}, informational_only=True)
GIVEN = Content.from_function_result(call_id="k1", result=Rentals().get_rental("R1"))
SOUND = Content.from_data(b"No", media_type="audio/wav")


@pytest.mark.parametrize(
    ("before", "after", "runs"),
    [
        ([], [], True),
        ([Message("assistant", [Content.from_text_reasoning(text="Coffee?")])], [], True),
        ([Message("assistant", [SOUND])], [], False),
        ([Message("assistant", [ELSEWHERE, GIVEN, "Would you like a coffee?"])], [], False),
        ([], [Message("assistant", [ASKED]), Message("tool", [GIVEN])], True),
        ([], [Message("assistant", [ASKED]), Message("user", [GIVEN, "No, stop."])], False),
        ([], [Message("assistant", [ASKED]), Message("tool", [GIVEN, "No, stop."])], False),
        ([], [Message("assistant", [ASKED]), Message("user", [GIVEN, SOUND])], False),
    ],
)
def test_nothing_that_is_said_goes_unheard(
    shield: Shield, before: list[Message], after: list[Message], *, runs: bool
) -> None:
    rentals = Rentals()
    guard = ShieldMiddleware(shield, context=CUSTOMER)
    calls: list[Any] = ["Done.", [("extend_rental", EXTEND)]]
    wish, question = Message("user", ["Please keep my car until 2026-11-20."]), Message("assistant", [PUT_EXTEND])
    looks = Content.from_function_call(call_id="k0", name="get_rental", arguments={"rental_id": "R1"})
    seen = Content.from_function_result(call_id="k0", result=rentals.get_rental("R1"))
    history = [
        wish,
        Message("assistant", [looks]),
        Message("tool", [seen]),
        question,
        *before,
        Message("user", ["Yes"]),
        *after,
    ]
    asks = agent(lambda _: calls.pop(), [rentals.extend_rental, rentals.get_rental], guard.all)
    asyncio.run(asks.run(history, session=AgentSession(session_id="c1")))
    assert bool(rentals.ran) == runs
