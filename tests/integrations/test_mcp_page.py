"""The proxy between a client and Playwright's MCP server, whose pages change between a snapshot and the click.

It needs `chromium` and `playwright-mcp` on the path (`npm install -g @playwright/mcp`).
"""

import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastmcp", reason="needs the extra `mcp`")

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.integrations import ready
from tests.integrations.shop import write_pack

pytestmark = [
    pytest.mark.process,
    pytest.mark.anyio,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("playwright-mcp")), reason="needs chromium and playwright-mcp"
    ),
]

KEY: Any = {"bylaw/conversation": "c1"}
CHECKOUT = """<title>Checkout</title><header id=clock>Now</header><main><p id=total>Total: 35.00 EUR</p>
<form action=/placed method=post><button id=place>Place order</button></form>
<input id=note aria-label=Note>
<button id=show>Show</button><a id=help href=/help>Help</a><iframe src=/frame></iframe></main>
<script>const ticking = setInterval(() => clock.textContent = new Date().toISOString(), 10)
setInterval(async () => {
  const change = await (await fetch('/change')).text()
  if (!change) return
  eval(change)
  await fetch('/changed')
}, 20)</script>"""
FILES = {
    "pack.yaml": "format: 1\nname: checkout\ndocument: policy.md\n",
    "policy.md": "No order is over 500 EUR.\n",
    "tools.yaml": r"""tools:
  browser_navigate: {effect: read, parameters: {url: string}}
  browser_snapshot: {effect: read}
  browser_click, browser_press_key, browser_type: {effect: write}
actions:
  place_order:
    of: browser_click
    on: {page: '/checkout$', role: button, name: Place order}
    effect: write
    take: {total: {value: "$page.text('^Total: ([0-9.]+) EUR$')", type: number}}
    changes: []
  show: {of: browser_click, on: {role: button, name: Show}, effect: write, changes: []}
  press_in_frame: {of: browser_click, on: {role: button, name: In frame}, effect: write, changes: []}
  open_page: {of: browser_navigate, reads: {argument: url, as: url}, effect: read}
  open_other_page: {of: browser_navigate, reads: {argument: url, as: url}, effect: write, fallback: true, changes: []}
  fill_in: {of: [browser_type, browser_click, browser_press_key], on: {role: [textbox, spinbutton]}, effect: read}
  look: {of: [browser_click, browser_press_key], effect: read}
pages:
  looks: ['http://127[.]0[.]0[.]1:PORT/help', 'http://127[.]0[.]0[.]1:PORT/c[a-z]*', 'http://127[.]0[.]0[.]1:PORT/trick[a-z]*']
  fields: [Note]
  passing: [{role: banner}]
""",
    "guards/orders.py": '''def small(call: place_order, facts):
    """No order is over 500 EUR."""
    return deny("it is over 500 EUR") if call.total > 500 else permit()


def shown(call: show | press_in_frame | open_other_page, facts):
    """No order is over 500 EUR."""
    return permit()
''',
}


class Shop:
    """A web site whose open page has a clock and can be changed."""

    def __init__(self) -> None:
        self.changing = ""
        self.changed = threading.Event()
        self.framed = threading.Event()
        self.placed = 0
        self.tricks: dict[str, str] = {}
        shop = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = "<title>Page</title><p>Ours</p><button>Place order</button><button>In frame</button>"
                if self.path == "/checkout":
                    text = CHECKOUT
                elif self.path == "/frame2":
                    text += "of another shop"
                elif self.path == "/change":
                    text, shop.changing = shop.changing, ""
                elif self.path in shop.tricks:
                    text = shop.tricks[self.path]
                elif self.path.startswith("/do"):
                    shop.placed += 1
                elif self.path == "/changed":
                    shop.changed.set()
                self.answer(text)
                if self.path == "/frame2":
                    shop.framed.set()

            def do_POST(self) -> None:
                shop.placed += 1
                self.answer("<title>Placed</title>Thanks")

            def answer(self, text: str) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def change(self, script: str) -> None:
        """Run a script in the open page."""
        self.changed.clear()
        self.changing = script
        assert self.changed.wait(10)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    thread = threading.Thread(target=shop.server.serve_forever)
    thread.start()
    yield shop
    shop.server.shutdown()
    thread.join()


class Agent:
    """An agent at the checkout."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.shown = ""

    async def look(self) -> str:
        self.shown = await self.call("browser_snapshot")
        return self.shown

    async def click(self, name: str) -> str:
        """Click on the button or link as it was shown."""
        return await self.call("browser_click", target=self._ref(name))

    async def type(self, name: str, text: str) -> str:
        """Type into the field as it was shown."""
        return await self.call("browser_type", target=self._ref(name), text=text)

    def _ref(self, name: str) -> str:
        found = re.search(rf'(?:button|link|textbox) "{name}"[^\n]*\[ref=(\w+)\]', self.shown)
        assert found is not None
        return found[1]

    async def call(self, tool: str, **arguments: Any) -> str:
        result = await self._client.call_tool(tool, arguments, meta=KEY)
        return "\n".join(each.text for each in result.content if each.type == "text")


def behind_proxy(folder: Path, *options: str, port: int = 0) -> Client:
    files = {**FILES, "tools.yaml": FILES["tools.yaml"].replace("PORT", str(port))}
    server = [
        "playwright-mcp", "--headless", "--no-sandbox", "--isolated", "--output-dir", str(folder / "out"),
        "--executable-path", shutil.which("chromium") or "",
    ]  # fmt: skip
    command = [*ready.begin("bylaw"), "proxy", "--pack", str(write_pack(folder, files)), *options, "--", *server]
    return Client(StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ)))


async def opened(client: Client, shop: Shop) -> Agent:
    agent = Agent(client)
    await agent.call("browser_navigate", url=f"{shop.address}/checkout")
    await agent.look()
    return agent


async def test_a_click_on_an_unchanged_page_runs_once(tmp_path: Path, shop: Shop) -> None:
    async with behind_proxy(tmp_path) as client:
        agent = await opened(client, shop)
        await agent.click("Place order")
    assert shop.placed == 1


CHANGES = {
    "another total": "total.textContent = 'Total: 820.00 EUR'",
    "another name": "show.textContent = 'Buy'; show.onclick = () => place.click()",
    "another page": "history.replaceState({}, '', '/elsewhere')",
    "within another part": "const nav = document.createElement('nav'); nav.ariaLabel = 'Old'; show.before(nav);"
    " nav.append(show)",
    "a box ticked": "show.ariaPressed = 'true'",
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_click_on_a_changed_page_is_decided_anew(tmp_path: Path, shop: Shop, change: str) -> None:
    async with behind_proxy(tmp_path) as client:
        agent = await opened(client, shop)
        name = "Place order" if change in ("another total", "another page") else "Show"
        shop.change(CHANGES[change])
        refused = await agent.click(name)
        assert "browser_snapshot" in refused
        assert "did not run" in refused
        assert shop.placed == 0
        await agent.look()
        if change == "another total":
            assert "it is over 500 EUR" in await agent.click(name)
        elif change == "a box ticked":
            assert "browser_snapshot" not in await agent.click(name)
    assert shop.placed == 0


async def test_a_link_to_a_listed_page_is_opened_by_its_address(tmp_path: Path, shop: Shop) -> None:
    async with behind_proxy(tmp_path, port=shop.server.server_port) as client:
        agent = await opened(client, shop)
        address = f"{shop.address}/help"
        assert f"Call browser_navigate(url={address}) instead." in await agent.click("Help")
        await agent.call("browser_navigate", url=address)
        assert address in await agent.look()


async def test_a_field_that_is_another_by_now_is_decided_anew(tmp_path: Path, shop: Shop) -> None:
    async with behind_proxy(tmp_path, port=shop.server.server_port) as client:
        agent = await opened(client, shop)
        shop.change("note.ariaLabel = 'Amount'")
        assert "did not run" in await agent.type("Note", "Ann")
        shop.change("note.ariaLabel = 'Note'")
        await agent.look()
        # Nothing that a look does depends on the rest of the page.
        shop.change("total.textContent = 'Total: 820.00 EUR'")
        assert "did not run" not in await agent.type("Note", "Ann")
        assert ": Ann" in await agent.look()


LINK, KEYS = "browser_click", ("ArrowDown", "ArrowRight", " ", "End", "a", "Enter")
ACTING = "fetch('/do', {method: 'POST'})"
TRICKS = (
    ("<a href=/do>X</a>", LINK),
    ("<a href='/cart?action=remove'>X</a>", LINK),
    ("<a href=/cart/../do>X</a>", LINK),
    ("<a href='/..;/do'>X</a>", LINK),
    ("<base href=/do/><a href=cart>X</a>", LINK),
    (f"<a href='javascript:{ACTING.replace(chr(39), chr(34))}'>X</a>", LINK),
    ("<a href=/cart ping=/do>X</a>", LINK),
    (f'<a href=/cart onmousedown="{ACTING}">X</a>', LINK),
    (f'<label for=box><a href=/cart>X</a></label><input id=box type=checkbox onchange="{ACTING}">', LINK),
    (
        f'<div style=position:relative><a href=/cart>X</a><b style=position:absolute;inset:0 onclick="{ACTING}"></b>',
        LINK,
    ),
    (f'<a href=/cart autofocus onkeydown="{ACTING}">X</a>', "browser_press_key"),
    (f'<a href=/cart><details ontoggle="{ACTING}"><summary>X</summary></details></a>', LINK),
    ("<form id=f method=post action=/do></form><a href=/cart><button form=f>X</button></a>", LINK),
    ("<form id=f method=post action=/do></form><button form=f role=link>X</button>", LINK),
    (f'<input type=range autofocus onchange="{ACTING}">', "browser_press_key"),
    (f'<input type=radio name=r checked autofocus><input type=radio name=r onchange="{ACTING}">', "browser_press_key"),
    (f'<p>X</p><div tabindex=0 autofocus onkeydown="{ACTING}">X</div>', "browser_press_key"),
    (f'<div role=grid><div role=gridcell tabindex=0 autofocus onkeydown="{ACTING}">X</div></div>', "browser_press_key"),
    (f'<p>X</p><script>onkeydown = event => event.key == "a" && {ACTING}</script>', "browser_press_key"),
    (f'<button role=textbox onclick="{ACTING}">X</button>', "browser_type"),
)


async def test_no_look_acts(tmp_path: Path, shop: Shop) -> None:
    async with behind_proxy(tmp_path, port=shop.server.server_port) as client:
        agent = Agent(client)
        for number, (body, tool) in enumerate(TRICKS):
            path = f"/trick{chr(97 + number)}"
            shop.tricks[path] = f"<title>Trick</title>{body}"
            for key in KEYS if tool == "browser_press_key" else ("",):
                await agent.call("browser_navigate", url=shop.address + path)
                found = re.search(r"(?:link|textbox)[^\n]*\[ref=(\w+)\]", await agent.look())
                target = found[1] if found is not None else "none"
                given = {"key": key} if key else {"target": target}
                if tool == "browser_type":
                    given |= {"text": "a ", "slowly": True}
                await agent.call(tool, **given)
                assert shop.placed == 0, body


async def test_a_navigation_that_overtakes_a_click_stops_it(tmp_path: Path, shop: Shop) -> None:
    """The other page has a button with the same name, and may give it the same reference."""
    async with behind_proxy(tmp_path) as client:
        agent = await opened(client, shop)
        shop.change("setTimeout(() => location.href = '/other')")
        assert "did not run" in await agent.click("Place order")
        assert "/other" in await agent.look()
    assert shop.placed == 0


async def test_a_frame_that_shows_another_document_stops_a_click_in_it(tmp_path: Path, shop: Shop) -> None:
    async with behind_proxy(tmp_path) as client:
        agent = await opened(client, shop)
        # For an element in a frame, the whole page counts.
        shop.change("clearInterval(ticking)")
        await agent.look()
        assert "did not run" not in await agent.click("In frame")
        await agent.look()
        shop.change("document.querySelector('iframe').src = '/frame2'")
        assert shop.framed.wait(10)
        assert "did not run" in await agent.click("In frame")


async def test_a_policy_that_only_watches_stops_no_click(tmp_path: Path, shop: Shop) -> None:
    async with behind_proxy(tmp_path, "--posture", "shadow") as client:
        agent = await opened(client, shop)
        shop.change(CHANGES["another total"])
        await agent.click("Place order")
    assert shop.placed == 1
