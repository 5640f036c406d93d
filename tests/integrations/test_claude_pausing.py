"""The Claude SDK's deferred calls for every `ask`: one prompt for one write, whoever answers it, here or elsewhere."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="needs the extra `claude`")

from claude_agent_sdk import HookMatcher
from msgspec import to_builtins

from bylaw.errors import UsageError
from bylaw.integrations.claude import ShieldHooks
from tests.integrations import pausing
from tests.integrations.claude_desk import SERVER, options, run, start
from tests.integrations.claude_desk import alone as alone
from tests.integrations.claude_desk import named as named
from tests.integrations.guide import run_section
from tests.integrations.pausing import APPROVED, CONFIRMED, Asking, EveryPause
from tests.integrations.rental import EXTEND, Rentals, desk


def insists(who: str, said: str, first: str) -> Any:
    """Makes the call again if it waits for a person or was lost beside another, and not if somebody said no."""
    made = pausing.script(who, said, first)
    waits = isinstance(made, str) and "Not done yet: ask first" in made and "said no" not in made
    return [("extend_rental", EXTEND)] if waits else made


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    start(monkeypatch, {"c1": insists})


class Worker(pausing.Worker):
    def __init__(self, folder: Path, **given: Any) -> None:
        super().__init__(folder, **given)
        session = self.shield.session("c1", context=self.context)
        self.guard = ShieldHooks(session, pauses=self.given.get("pauses", True))
        self.result: Any = self.given.get("result")
        self.hooks = self.given.get("hooks")

    @property
    def session(self) -> Any:
        return self.guard.session

    def another(self) -> "Worker":
        given = {**self.given, "rentals": self.rentals, "result": self.result}
        return Worker(self.folder, log=self.log, context=self.context, **given)

    def say(self, *texts: str) -> str:
        resume = self.result.session_id if self.result is not None else None
        given = options(self.folder, self.rentals, resume=resume, hooks=self.hooks)
        self.result = asyncio.run(run(self.guard, given, *texts))
        return self.result.result or ""

    def waiting(self) -> list[Any]:
        call = self.result.deferred_tool_use
        return asyncio.run(self.guard.asked(call)) if call is not None else []

    def prompts(self) -> list[Any]:
        found = to_builtins(self.waiting())
        return [{**each, "tool": each["tool"].removeprefix(SERVER)} for each in found]

    def resume(self, answers: Sequence[Any]) -> str:
        for prompt, answer in zip(self.waiting(), answers, strict=True):
            if answer is not None and answer["id"] == prompt.id:
                asyncio.run(self._take(prompt, answer))
        return self.say()

    async def _take(self, prompt: Any, answer: dict[str, Any]) -> None:
        by = answer.get("by", "")
        if prompt.whom == "user" and "confirm" in answer:
            await self.guard.confirm(prompt, answer["confirm"], by=by)
        if prompt.whom == "person" and "approve" in answer:
            await self.guard.approve(prompt, answer["approve"], by=by, note=answer.get("note", ""))


class TestPauses(EveryPause):
    worker = Worker

    def test_neither_answer_counts_as_the_other(self, tmp_path: Path) -> None:
        worker = Worker(tmp_path, log=tmp_path / "one.sqlite")
        worker.say("Extend R1")
        (prompt,) = worker.waiting()
        with pytest.raises(UsageError, match="no one else can answer for them"):
            asyncio.run(worker.guard.approve(prompt, True, by="Mia"))
        worker.say()
        assert worker.rentals.ran == []

    def test_what_the_framework_calls_approved_is_nobodys_yes(self, tmp_path: Path) -> None:
        worker = Worker(tmp_path)
        worker.say("Extend R1")
        worker.answer(None)
        assert [each["whom"] for each in worker.prompts()] == ["user"]
        assert worker.rentals.ran == []

    def test_without_a_log_another_worker_asks_once_more(self, tmp_path: Path) -> None:
        """It cannot tell what waits; the call does not run, and the agent is told."""
        first = Worker(tmp_path)
        first.say("Extend R1")
        other = first.another()
        assert other.prompts() == []
        other.resume([])
        assert other.rentals.ran == []

    def test_one_answer_is_one_write_in_two_workers(self, tmp_path: Path) -> None:
        worker = Worker(tmp_path, log=tmp_path / "log.sqlite")
        worker.say("Extend R1")
        other = worker.another()
        worker.answer(CONFIRMED)
        assert other.prompts() == []
        other.say("Go on.")
        assert worker.rentals.ran == ["extend R1"]

    def test_where_both_are_needed_each_is_asked_once(self, tmp_path: Path) -> None:
        """The run ends once, and both are asked then."""
        worker = Worker(tmp_path, log=tmp_path / "log.sqlite", context=None)
        worker.say("Extend R1")
        prompts = worker.prompts()
        assert [each["whom"] for each in prompts] == ["user", "person"]
        worker.resume([{"id": each["id"], **given} for each, given in zip(prompts, [CONFIRMED, APPROVED], strict=True)])
        assert worker.prompts() == []
        assert worker.rentals.ran == ["extend R1"]

    @pytest.mark.parametrize("answer", [{"confirm": False}])
    def test_what_is_no_yes_lets_nothing_run_and_nobody_is_asked_again(self, tmp_path: Path, answer: Any) -> None:
        super().test_what_is_no_yes_lets_nothing_run_and_nobody_is_asked_again(tmp_path, answer)

    def test_several_calls_of_a_turn_are_asked_about_one_by_one(self, tmp_path: Path) -> None:
        """The program keeps the last of several calls that are deferred: the agent makes the others again."""
        worker = Worker(tmp_path)
        worker.say("It was dirty.")
        worker.answer({"confirm": False})
        worker.say("Both.")
        (prompt,) = worker.prompts()
        assert worker.rentals.ran == []
        worker.answer({"confirm": True})
        assert worker.rentals.ran == ["refund 20.00" if prompt["tool"] == "refund" else "extend R1"]


@pytest.mark.parametrize("where", ["here", "here, with a log", "elsewhere, with a log"])
def test_a_call_that_was_interrupted_goes_on(tmp_path: Path, where: str) -> None:
    held: list[str] = []

    async def hold(told: Any, _id: Any, _context: Any) -> Any:
        if not told["tool_name"].endswith("extend_rental") or held:
            return {}
        held.append(told["tool_use_id"])
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}

    hooks = {"PreToolUse": [HookMatcher(hooks=[hold])]}
    log = tmp_path / "log.sqlite" if "log" in where else None
    worker = Worker(tmp_path, log=log, pauses=False, hooks=hooks)
    worker.say("Tell me first.")
    worker.say("Yes, please.")
    assert worker.result.deferred_tool_use.id == held[0]
    assert worker.prompts() == []
    assert worker.rentals.ran == []
    worker = worker.another() if "elsewhere" in where else worker
    worker.say()
    assert worker.rentals.ran == ["extend R1"]


def test_the_lines_of_the_guide_run(tmp_path: Path) -> None:
    rentals, asked = Rentals(), Asking()
    with desk(tmp_path, log=tmp_path / "log.sqlite") as shield:
        names = {"options": options(tmp_path, rentals), "shield": shield, **asked.names()}
        asyncio.run(run_section("Claude Agent SDK", names, "reference/pauses.md"))
    assert asked.whom == ["user", "person"]
    assert rentals.ran == ["extend R1"]
