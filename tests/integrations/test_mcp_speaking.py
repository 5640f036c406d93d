"""Who is speaking, told to the proxy call by call: what one has agreed to or had approved is not another's."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer

from bylaw.integrations.mcp import proxy
from bylaw.policy.tool import ApprovalTerms, Postures
from bylaw.shield import Shield
from bylaw.shield.feedback import SHOW
from bylaw.trace import Call
from tests.integrations import ready
from tests.integrations.rental import BESIDE, CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk
from tests.integrations.test_mcp import free_port, listening

pytestmark = pytest.mark.anyio
LOOK = ("get_rental", {"rental_id": "R1"})
PUT = [
    {"role": "user", "content": "Please keep the car until 2026-11-20."},
    {"role": "assistant", "content": PUT_EXTEND},
    {"role": "user", "content": "Yes"},
]
OTHER = {"signed_in_as": "C2"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def meta(context: dict[str, Any] | None, said: list[Any] | None = None) -> Any:
    """What a call says of itself."""
    told: dict[str, Any] = {"bylaw/conversation": "c1"}
    told |= {} if context is None else {"bylaw/context": context}
    return told | ({} if said is None else {"bylaw/messages": said})


def text(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


class Desk:
    """A server of rentals, and proxies before it that know of no context themselves."""

    def __init__(self) -> None:
        self.rentals, self.server = Rentals(), MCPServer("desk")
        for tool in (self.rentals.get_rental, self.rentals.extend_rental, self.rentals.refund):
            self.server.tool()(tool)

    def client(self, shield: Shield, **given: Any) -> Client:
        return Client(proxy(shield, self.server, **given)._mcp_server)


@pytest.mark.parametrize("keeps", [True, False])
async def test_what_one_has_agreed_to_is_not_anothers_yes(tmp_path: Path, keeps: bool) -> None:
    at = Desk()
    with desk(tmp_path, log=tmp_path / "log.db" if keeps else None) as shield:
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(OTHER, PUT))
            denied = await client.call_tool("extend_rental", EXTEND, meta=meta(OTHER, PUT))
            assert "another customer's rental" in text(denied)
            # The customer goes on in the same chat, whose history holds what somebody else said yes to.
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
            refused = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, PUT))
            assert (refused.is_error, at.rentals.ran) == (True, [])
            own = [*PUT, {"role": "assistant", "content": PUT_EXTEND}, {"role": "user", "content": "Yes"}]
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, own))
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, own))
            assert (done.is_error, at.rentals.ran) == (False, ["extend R1"]), text(done)
            # Theirs is no yes of the first one's either.
            await client.call_tool(*LOOK, meta=meta(OTHER, own))
            assert (await client.call_tool("extend_rental", EXTEND, meta=meta(OTHER, own))).is_error
    assert at.rentals.ran == ["extend R1"]


def shown(refused: Any) -> str:
    """The card that the agent is told to show; nothing in its text says that this is for nothing."""
    assert refused.is_error
    assert "do not try again" not in text(refused)
    assert SHOW in text(refused), text(refused)
    return text(refused).partition(SHOW)[2].strip()


async def test_after_anothers_read_the_customer_is_asked_again_and_one_yes_does(tmp_path: Path) -> None:
    at = Desk()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
            await client.call_tool(*LOOK, meta=meta(OTHER, PUT))
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
            card = shown(await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, PUT)))
            own = [*PUT, {"role": "assistant", "content": card}, {"role": "user", "content": "Yes"}]
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, own))
            assert (done.is_error, at.rentals.ran) == (False, ["extend R1"]), text(done)


async def test_after_a_message_of_pasted_text_the_user_is_asked_and_heard(tmp_path: Path) -> None:
    """What the server handed out is nobody's word; what the user says next is theirs."""
    at, pasted = Desk(), "Please extend the rental R1 until 2026-11-20, yes, go ahead."

    @at.server.prompt()
    def extend() -> str:
        return pasted

    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": PUT_EXTEND}]
    said.append({"role": "user", "content": pasted})
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, said[:2]))
            await client.get_prompt("extend", {}, meta=meta(CUSTOMER))
            card = shown(await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, said)))
            said += [{"role": "assistant", "content": card}, {"role": "user", "content": "Yes"}]
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, said))
            assert (done.is_error, at.rentals.ran) == (False, ["extend R1"]), text(done)


PARTS: list[tuple[dict[str, Any], bool]] = [
    ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, True),
    ({"type": "image", "source": {"type": "base64", "data": "AAAA"}}, True),
    ({"type": "text", "text": "Thanks.", "cache_control": {"type": "ephemeral"}}, True),
    ({"type": "tool_result", "tool_use_id": "t", "content": "Yes"}, False),
    ({"type": "tool_use", "id": "t", "name": "refund", "input": {}}, False),
    ({"type": "resource", "resource": {"text": "Yes"}}, False),
]


@pytest.mark.parametrize(("part", "is_talk"), PARTS, ids=[part["type"] for part, _ in PARTS])
async def test_a_picture_in_the_chat_stops_nothing_and_a_result_is_no_talk(
    tmp_path: Path, part: dict[str, Any], is_talk: bool
) -> None:
    at = Desk()
    shown = {"role": "user", "content": [{"type": "text", "text": "Please keep the car until 2026-11-20."}, part]}
    with desk(tmp_path) as shield:
        async with at.client(shield) as client:
            looked = await client.call_tool(*LOOK, meta=meta(CUSTOMER, [shown, *PUT[1:]]))
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, [shown, *PUT[1:]]))
    assert looked.is_error is not is_talk, text(looked)
    assert (done.is_error, at.rentals.ran) == (not is_talk, ["extend R1"] * is_talk), text(done)


async def test_nor_is_it_in_another_worker(tmp_path: Path) -> None:
    at, log = Desk(), tmp_path / "log.db"
    with desk(tmp_path, log=log) as one, desk(tmp_path, log=log) as two:
        async with at.client(one) as first, at.client(two) as second:
            await first.call_tool(*LOOK, meta=meta(CUSTOMER, PUT[:2]))
            # Somebody else says yes to what was put to the customer.
            await second.call_tool(*LOOK, meta=meta(OTHER, PUT))
            for client in (second, first):
                await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
                assert (await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, PUT))).is_error
    assert at.rentals.ran == []


async def test_what_was_approved_for_one_is_not_approved_for_another(tmp_path: Path) -> None:
    at = Desk()
    firmness = Postures(approval=ApprovalTerms(stands_in=("confirm",)))
    with desk(tmp_path, log=tmp_path / "log.db", postures=firmness) as shield:
        assert shield.log is not None
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER))
            await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER))
            (waiting,) = shield.log.approvals("default")
            shield.log.approve(waiting.id, by="lena")
            at.rentals.rental["customer_id"] = "C2"
            await client.call_tool(*LOOK, meta=meta(OTHER))
            refused = await client.call_tool("extend_rental", EXTEND, meta=meta(OTHER))
            assert (refused.is_error, at.rentals.ran) == (True, [])
            assert len(shield.log.approvals("default")) == 2
            at.rentals.rental["customer_id"] = "C1"
            await client.call_tool(*LOOK, meta=meta(CUSTOMER))
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER))
    assert (done.is_error, at.rentals.ran) == (False, ["extend R1"]), text(done)


async def test_a_client_is_nobody_else_than_the_operator_says(tmp_path: Path) -> None:
    """With `--context` the operator has said who it is, and the client's own word changes nothing of it."""
    at = Desk()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with at.client(shield, context=OTHER) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
            refused = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, PUT))
    assert "another customer's rental" in text(refused)
    assert at.rentals.ran == []


async def test_the_same_principal_may_add_to_the_context(tmp_path: Path) -> None:
    at = Desk()
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
            await client.call_tool(*LOOK, meta=meta({"locale": "de"}, PUT))
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(None, PUT))
            assert (done.is_error, at.rentals.ran) == (False, ["extend R1"]), text(done)
    with desk(tmp_path, log=tmp_path / "log.db") as shield:
        session = shield.session("c1")
        events = session.trajectory().events
        assert [each.context for each in events if isinstance(each, Call)] == [None, {"locale": "de"}, None]
        assert session.context == {**CUSTOMER, "locale": "de"}
        assert session.trajectory().context == CUSTOMER


@pytest.mark.process
@pytest.mark.parametrize(
    ("said_by_gateway", "because"),
    [
        (OTHER, "another customer's rental"),
        ({"desk": "east"}, "Which customer is signed in?"),
        ({}, "Which customer is signed in?"),
        (None, "Which customer is signed in?"),
    ],
)
@pytest.mark.parametrize("when", ["each call", "session"])
async def test_the_gateways_word_holds_over_the_clients(
    tmp_path: Path, when: str, said_by_gateway: dict[str, str] | None, because: str
) -> None:
    desk(tmp_path).close()
    port, notes = free_port(), tmp_path / "ran.txt"
    server = [*ready.begin(Path(__file__).with_name("mcp_desk.py")), str(notes)]
    begin = [*ready.begin("bylaw"), "proxy", "--pack", str(tmp_path / "desk")]
    command = [*begin, "--listen", f"127.0.0.1:{port}", "--", *server]
    said = {"Bylaw-Context": json.dumps(said_by_gateway)}
    with listening(command, port) as url:
        async with httpx2.AsyncClient() as http:

            async def dress(request: httpx2.Request) -> None:
                if when == "each call" or b'"initialize"' in request.content:
                    request.headers.update(said)

            http.event_hooks["request"] = [dress]
            async with Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
                await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
                denied = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, PUT))
                assert because in text(denied)
        async with Client(url) as client:
            wrong = await client.call_tool(*LOOK, meta=meta(["C1"], PUT))  # pyright: ignore[reportArgumentType]
            assert "is not an object of names and values" in text(wrong)
        http = httpx2.AsyncClient(headers={"Bylaw-Context": '{"signed_in_as": "C2", "signed_in_as": "C1"}'})
        async with http, Client(streamable_http_client(url, http_client=http)) as client:
            assert "gives `signed_in_as` twice" in text(await client.call_tool(*LOOK, meta=meta(None, PUT)))
    assert not notes.exists()


@pytest.mark.process
async def test_nor_does_a_header_change_what_the_operator_says(tmp_path: Path) -> None:
    desk(tmp_path).close()
    port, notes = free_port(), tmp_path / "ran.txt"
    server = [*ready.begin(Path(__file__).with_name("mcp_desk.py")), str(notes)]
    begin = [*ready.begin("bylaw"), "proxy", "--pack", str(tmp_path / "desk"), "--context", "signed_in_as=C2"]
    with listening([*begin, "--listen", f"127.0.0.1:{port}", "--", *server], port) as url:
        http = httpx2.AsyncClient(headers={"Bylaw-Context": json.dumps(CUSTOMER)})
        async with http, Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
            denied = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, PUT))
            assert "another customer's rental" in text(denied)
    assert not notes.exists()


NOES = ["No, stop!", "Wait.", "Hm, rather not", "Extend it to 2026-11-19 instead."]


@pytest.mark.parametrize("no", NOES)
@pytest.mark.parametrize("tells_all", [True, False])
async def test_what_the_user_says_between_the_calls_of_a_turn_is_heard(
    tmp_path: Path, no: str, tells_all: bool
) -> None:
    at, said = Desk(), [{"role": "user", "content": no}]
    with desk(tmp_path) as shield:
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT))
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT) | {"bylaw/turn": 2})
            told = meta(CUSTOMER, [*PUT, *said] if tells_all else said) | {"bylaw/turn": 2}
            assert (await client.call_tool("extend_rental", EXTEND, meta=told)).is_error
    assert at.rentals.ran == []


@pytest.mark.parametrize("said", [PUT, PUT[-1:], PUT[-2:], [], [*PUT, {"role": "assistant", "content": "I look."}]])
async def test_calls_of_one_turn_stay_one_turn_when_the_same_is_told_again(tmp_path: Path, said: list[Any]) -> None:
    at = Desk()
    with desk(tmp_path) as shield:
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, PUT) | {"bylaw/turn": 1})
            refused = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, said) | {"bylaw/turn": 1})
            assert refused.is_error, "what its own turn looked up was not seen"
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, said) | {"bylaw/turn": 2})
            assert not done.is_error, text(done)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_no_is_heard_where_the_same_was_said_before(tmp_path: Path, times: int) -> None:
    at = Desk()
    no = [{"role": "assistant", "content": "Shall I go on?"}, {"role": "user", "content": "No, stop!"}]
    with desk(tmp_path) as shield:
        async with at.client(shield) as client:
            for said in (no, PUT, *[no] * times):
                await client.call_tool(*LOOK, meta=meta(CUSTOMER, said))
            assert (await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, []))).is_error
    assert at.rentals.ran == []


@pytest.mark.parametrize("part", BESIDE[:4], ids=lambda part: part["type"])
async def test_a_yes_to_a_question_beside_media_is_undecided(tmp_path: Path, part: dict[str, Any]) -> None:
    at = Desk()
    question = {"role": "assistant", "content": [part, {"type": "text", "text": PUT_EXTEND}]}
    said = [PUT[0], question, {"role": "user", "content": "Yes"}]
    with desk(tmp_path) as shield:
        async with at.client(shield) as client:
            await client.call_tool(*LOOK, meta=meta(CUSTOMER, said))
            done = await client.call_tool("extend_rental", EXTEND, meta=meta(CUSTOMER, said))
    assert done.is_error is (part["type"] != "text"), text(done)
