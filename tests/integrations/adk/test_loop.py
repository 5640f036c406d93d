"""Google's ADK: the event loop goes on while the log's database answers late."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bylaw.integrations.adk import ShieldPlugin
from bylaw.shield import Shield
from tests.integrations.adk.desk import Place, agent, results, said
from tests.integrations.shop import Shop, write_pack
from tests.integrations.slow_log import held_up, slow_log


def hasty(contents: list[Any]) -> Any:
    """Refunds before it looks, and once more when it has looked."""
    told = results(contents)
    if len(told) < 3:
        return [("get_order" if len(told) == 1 else "refund", {"order_id": "7"})]
    return "Order 7 is refunded."


@pytest.mark.parametrize("pauses", [False, True])
def test_the_loop_goes_on_while_the_log_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: bool) -> None:
    shop, log = Shop(), slow_log(tmp_path, monkeypatch)
    shield = Shield(write_pack(tmp_path), log=log)

    async def warm_up() -> None:
        """The first run imports half of the framework, which takes a second."""
        place = Place(ShieldPlugin(write_pack(tmp_path)), agent(lambda _: "Hello.", [shop.get_order]))
        await place.say("c0", said("Hello."))

    async def talk() -> None:
        place = Place(ShieldPlugin(shield, pauses=pauses), agent(hasty, [shop.get_order, shop.refund]))
        await place.say("c1", said("Refund order 7, I sent it back."))

    asyncio.run(warm_up())
    assert not asyncio.run(held_up(talk(), log))
    assert shop.ran == ["get_order 7", "refund 7"]
