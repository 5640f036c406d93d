"""What is asked of the adapter of every framework alike: `class TestAsEveryAdapter(EveryAdapter): desk = Desk`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.shop import USERS, step


def check_instructions(requests: list[Any], *, instruct: bool, own: str = "You are the shop.") -> None:
    """The shield's instructions stand once in what each request says, beside the host's own."""
    assert requests
    for request in map(str, requests):
        assert request.count("Look up first: `get_order(order_id)`") == int(instruct)
        assert request.count(own) == 1


class EveryAdapter:
    """`desk` makes an agent of the shop behind the shield: `desk(folder, *talks, **postures)`; `desk.talk(text)`."""

    desk: Any

    @pytest.mark.parametrize(("posture", "is_told"), [("advise", True), ("shadow", False)])
    def test_other_postures_let_it_run(self, tmp_path: Path, posture: str, is_told: bool) -> None:
        steps = [step(1, ("refund", "7")), step(2, text="Done.")]
        desk = self.desk(tmp_path, {"id": "c1", "turns": [{"user": "", "steps": steps}]}, posture=posture)
        asyncio.run(desk.talk("Refund 7."))
        assert desk.shop.ran == ["refund 7"]
        told = str(desk.script.requests[1])
        assert "refunded 7" in told
        assert ("get_order(order_id=7)" in told) is is_told

    @pytest.mark.parametrize("instruct", [True, False])
    def test_instructions_are_added_to_the_system_prompt_where_that_is_wanted(
        self, tmp_path: Path, instruct: bool
    ) -> None:
        desk = self.desk(tmp_path, instruct=instruct)
        asyncio.run(desk.talk(USERS[0]))
        check_instructions(desk.script.requests, instruct=instruct)

    def test_a_shield_that_fails_lets_nothing_through(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("out of order")

        monkeypatch.setattr("bylaw.shield.LiveSession.decide", fail)
        desk = self.desk(tmp_path)
        asyncio.run(desk.talk(USERS[0]))
        assert desk.shop.ran == []
        assert "out of order" in str(desk.script.requests[1])
