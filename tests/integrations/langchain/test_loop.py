"""LangGraph, async: the event loop is free while the log is locked by another process."""

import asyncio
import sqlite3
from pathlib import Path

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from bylaw.integrations.langchain import ShieldMiddleware
from tests.integrations.langchain.desk import Scripted
from tests.integrations.langchain.test_interrupts import THREAD, script
from tests.integrations.rental import CUSTOMER, Rentals, desk

TICKS = 100
"""How often the loop runs before the lock is taken off; it waits a hundredth of a second each time."""


def test_the_loop_is_free_while_the_log_is_locked(tmp_path: Path) -> None:
    log, rentals = tmp_path / "log.sqlite", Rentals()
    guard = ShieldMiddleware(desk(tmp_path, log=log), context=CUSTOMER)
    agent = create_agent(
        Scripted(script=script),
        [rentals.get_rental, rentals.extend_rental],
        checkpointer=InMemorySaver(),
        middleware=[guard],
    )
    while_locked: list[list[str]] = []

    async def talk() -> None:
        await agent.ainvoke({"messages": ["Extend R1"]}, THREAD)
        other = sqlite3.connect(log, isolation_level=None)
        other.execute("begin immediate")

        async def unlock() -> None:
            # In the loop itself: did it wait for the log, nobody would take the lock off, and nothing be allowed.
            for _ in range(TICKS):
                await asyncio.sleep(0.01)
            while_locked.append(list(rentals.ran))
            other.execute("rollback")

        unlocking = asyncio.create_task(unlock())
        await agent.ainvoke({"messages": ["Yes, please."]}, THREAD)
        await unlocking

    asyncio.run(talk())
    assert while_locked == [[]], "the log was not waited for"
    assert rentals.ran == ["extend R1"]
