"""What is asked of the adapter of every framework alike: `class TestAsEveryAdapter(EveryAdapter): desk = Desk`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.shop import USERS, step


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

    def test_a_shield_that_fails_lets_nothing_through(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError("out of order")

        monkeypatch.setattr("bylaw.shield.LiveSession.decide", fail)
        desk = self.desk(tmp_path)
        asyncio.run(desk.talk(USERS[0]))
        assert desk.shop.ran == []
        assert "out of order" in str(desk.script.requests[1])
