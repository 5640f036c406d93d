"""LangGraph, async: the event loop is free while the log is locked by another process."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from bylaw.integrations.langchain import ShieldMiddleware
from tests.integrations.langchain.desk import Scripted
from tests.integrations.langchain.test_interrupts import THREAD, script
from tests.integrations.rental import CUSTOMER, Rentals, desk

LOCKED = 4.0


def test_the_loop_is_free_while_the_log_is_locked(tmp_path: Path) -> None:
    log, rentals = tmp_path / "log.sqlite", Rentals()
    guard = ShieldMiddleware(desk(tmp_path, log=log), context=CUSTOMER)
    agent = create_agent(
        Scripted(script=script),
        [rentals.get_rental, rentals.extend_rental],
        checkpointer=InMemorySaver(),
        middleware=[guard],
    )
    gaps: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.01)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    async def talk() -> Any:
        await agent.ainvoke({"messages": ["Extend R1"]}, THREAD)
        other = sqlite3.connect(log, isolation_level=None, check_same_thread=False)
        other.execute("begin immediate")
        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.05)
        begun = time.perf_counter()
        threading.Timer(LOCKED, lambda: other.execute("rollback")).start()
        await agent.ainvoke({"messages": ["Yes, please."]}, THREAD)
        ticking.cancel()
        return time.perf_counter() - begun

    took = asyncio.run(talk())
    assert took > LOCKED / 2, "the log was not waited for"
    assert max(gaps) < LOCKED / 2, "the loop stood still"
    assert rentals.ran == ["extend R1"]
