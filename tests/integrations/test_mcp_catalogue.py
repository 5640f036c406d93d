"""A server that describes a tool otherwise than was accepted: the agent is not shown it, and calls are asked about."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

from bylaw.errors import UsageError
from bylaw.integrations.mcp_catalogue import WAITING, Catalogue, accept, digest_of, read_book
from tests.command import bylaw
from tests.integrations.mcp_place import KEY, Place
from tests.integrations.mcp_ways import WAYS, before

SERVER = Path(__file__).with_name("mcp_turncoat.py")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def tool(words: str, name: str = "refund", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": words, "inputSchema": {"type": "object"}, **more}


async def described(client: Any) -> str:
    return next(each.description for each in (await client.list_tools()).tools if each.name == "refund")


@pytest.mark.process
@pytest.mark.anyio
@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_a_changed_description_is_asked_about_until_somebody_accepts_it(
    tmp_path: Path, way: tuple[str, str]
) -> None:
    place, file = Place(tmp_path), tmp_path / "tools.json"
    async with before(SERVER, place, way, "--tools", str(file)) as client:
        assert await described(client) == "Pay an order back."
        for order in ("7", "turn"):
            assert not (await client.call_tool("get_order", {"order_id": order}, meta=KEY)).is_error
        assert not (await client.call_tool("refund", {"order_id": "7"}, meta=KEY)).is_error
        assert await described(client) == "Pay an order back.", "the agent is shown what was accepted"
        held = await client.call_tool("refund", {"order_id": "7"}, meta=KEY)
        assert held.is_error
        assert "has not been accepted" in held.content[0].text
        assert "keys" not in held.content[0].text
        assert not (await client.call_tool("get_order", {"order_id": "8"}, meta=KEY)).is_error, "other tools go on"
        assert place.ran() == ["refund 7"]

        shown = bylaw(tmp_path, "tools", str(file))
        assert shown.returncode == 1
        assert "user's keys" in shown.stdout
        (waits,) = read_book(file).tools["refund"].waiting
        assert bylaw(tmp_path, "tools", str(file), "--accept", waits.digest, "--by", "ann").returncode == 0
        assert "keys" in await described(client)
        assert not (await client.call_tool("refund", {"order_id": "7"}, meta=KEY)).is_error
        assert place.ran() == ["refund 7", "refund 7"]
    assert read_book(file).tools["refund"].accepted[-1].by == "ann"


@pytest.mark.process
@pytest.mark.anyio
async def test_what_was_accepted_outlives_the_proxy(tmp_path: Path) -> None:
    place, file = Place(tmp_path), tmp_path / "tools.json"
    async with before(SERVER, place, WAYS[0], "--tools", str(file), mode="2026-07-28") as client:
        await client.list_tools()
    place.notes.with_suffix(".turned").touch()
    async with before(SERVER, place, WAYS[0], "--tools", str(file), mode="2026-07-28") as client:
        assert await described(client) == "Pay an order back."
        await client.call_tool("get_order", {"order_id": "7"}, meta=KEY)
        assert (await client.call_tool("refund", {"order_id": "7"}, meta=KEY)).is_error
    assert not place.ran()


def test_the_first_listing_counts_as_accepted_and_a_change_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    known = Catalogue()
    assert known.take([tool("pays")]) == [tool("pays")]
    assert not known.doubts
    for _ in range(2):
        assert known.take([tool("pays, and steals")]) == [tool("pays")]
    assert len(caplog.messages) == 1
    assert "refund" in known.doubts
    # Whoever was shown the other one may act on it still.
    known.take([tool("pays")])
    assert "refund" in known.doubts


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (tool("pays", _meta={"seen": 2}), True),
        ({"inputSchema": {"type": "object"}, "description": "pays", "name": "refund"}, True),
        (tool("pays "), False),
        (tool("pays", title="Refund"), False),
        (tool("pays", inputSchema={"type": "object", "properties": {"to": {"type": "string"}}}), False),
        (tool("pays", outputSchema={"type": "object"}), False),
        (tool("pays", annotations={"readOnlyHint": True}), False),
    ],
)
def test_a_description_is_all_that_agents_go_by(other: dict[str, Any], is_same: bool) -> None:
    assert (digest_of(other) == digest_of(tool("pays"))) is is_same


def test_a_tool_that_is_new_to_a_file_waits_and_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    Catalogue(file).take([tool("pays")])
    known = Catalogue(file)
    assert known.take([tool("pays"), tool("sends", name="send")]) == [tool("pays")]
    assert set(known.doubts) == {"send"}
    accept(file, [digest_of(tool("sends", name="send"))], "ann")
    known.refresh()
    assert not known.doubts


def test_two_tools_of_one_name_are_one_that_changed() -> None:
    known = Catalogue()
    assert known.take([tool("pays"), tool("steals")]) == [tool("pays")]
    assert "refund" in known.doubts


def test_what_is_accepted_is_what_was_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    known = Catalogue(file)
    known.take([tool("pays")])
    known.take([tool("pays you")])
    seen = digest_of(tool("pays you"))
    known.take([tool("steals")])
    accept(file, [seen], "ann")
    known.refresh()
    assert known.take([tool("steals")]) == [tool("pays you")]
    assert "refund" in known.doubts
    with pytest.raises(UsageError, match="is waiting"):
        accept(file, [seen], "ann")


def test_a_server_that_never_tells_the_same_twice_fills_no_file(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    known = Catalogue(file)
    for number in range(3 * WAITING):
        known.take([tool(f"pays {number}")])
    assert len(read_book(file).tools["refund"].waiting) == WAITING
    accept(file, [each.digest for each in read_book(file).tools["refund"].waiting], "ann")
    known.take([tool("pays 29")])
    assert "refund" in known.doubts


def test_a_list_without_end_is_cut(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bylaw.integrations.mcp_catalogue.MOST", 3)
    assert len(Catalogue().take([tool("pays", name=f"t{number}") for number in range(10)])) == 3
    assert caplog.messages == ["the server lists more than 3 tools; the rest are hidden"]


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text("[]")
    with pytest.raises(UsageError, match="accepted tools"):
        Catalogue(file)
