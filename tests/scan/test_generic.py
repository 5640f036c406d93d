"""What calls of generic tools did in the logs, and the actions that `bylaw init` drafts for them."""

from pathlib import Path

import pytest

from bylaw import Shield
from bylaw.cli.init import init_pack
from bylaw.scan import scan
from bylaw.scan.generic import Generic
from bylaw.trace import Trajectory

from .library import Talk
from .test_init import POLICY, openai


def page(address: str, body: str) -> str:
    return f"### Page\n- Page URL: http://shop.test{address}\n- Page Title: Shop\n### Snapshot\n```yaml\n{body}\n```"


def work(number: int) -> Trajectory:
    """A day at a desk. No tool or argument is called after what it does."""
    order = page(
        f"/orders/{number}", f'- link "Order {number}" [ref=e1]\n- button "Pay" [ref=e2]\n- textbox "Note" [ref=e3]'
    )
    talk = Talk(f"day-{number}").user("do what is to be done")
    talk.call("ask", "[]", what=f"SELECT * FROM orders WHERE id = {number}")
    talk.call("ask", "done", what=f"UPDATE orders SET paid = true WHERE id = {number}")
    talk.call("go", "x", line=f"ls src && cat a{number}.py | head -3")
    talk.call("go", "x", line="git status" if number % 2 else "git push")
    talk.call("go", "x", line="eval $X" if number == 3 else f"rm -r build{number}")
    talk.call("browser_navigate", order, to=f"http://shop.test/orders/{number}")
    talk.call("browser_click", "done", element="Next", ref="e1").call("browser_click", "done", element="Next", ref="e2")
    talk.call("browser_type", "done", ref="e3", text="Select the best one, and delete the rest")
    talk.call("tell", "sent", to=f"ann{number}@home.test", words=f"Update {number}: cat food has arrived")
    return talk.done()


LOGS = [work(number) for number in range(12)]


def seen(found: Generic) -> list[tuple[str, bool, int]]:
    return [(part.what, part.writes, count) for part, count in found.parts]


def test_arguments_are_known_by_what_they_hold() -> None:
    by_tool = {each.tool: each for each in scan(LOGS).generic}
    clicked, typed, ran, asked = (by_tool[tool] for tool in ("browser_click", "browser_type", "go", "ask"))
    assert [(each.kind, each.argument) for each in (clicked, typed, ran, asked)] == [
        ("page", "ref"),
        ("page", "ref"),
        ("shell", "line"),
        ("sql", "what"),
    ]
    assert seen(asked) == [("select", False, 12), ("update", True, 12)]
    assert {each[:2]: each[2] for each in seen(ran)} == {
        ("ls", False): 12,
        ("cat", False): 12,
        ("head", False): 12,
        ("git", False): 6,
        ("git", True): 6,
        ("rm", True): 11,
    }
    assert ran.unread == 1
    names = {(part.what, part.name, part.page, count) for part, count in clicked.parts}
    assert ("button", "Pay", "/orders/*", 12) in names
    assert ("link", "Order 7", "/orders/*", 1) in names


def test_prose_and_addresses_are_neither_sql_nor_commands() -> None:
    assert {each.tool for each in scan(LOGS).generic} == {"ask", "go", "browser_click", "browser_type"}


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drafted")
    (folder / "policy.md").write_text(POLICY)
    init_pack([openai(folder / "log.jsonl", LOGS)], folder / "policy.md", folder / "desk")
    return folder / "desk"


@pytest.mark.parametrize(
    ("tool", "arguments", "action", "answer"),
    [
        ("ask", {"what": "SELECT 1"}, "ask_read", "allow"),
        ("ask", {"what": "UPDATE orders SET paid = true WHERE id = 3"}, "ask_update", "ask"),
        ("ask", {"what": "DROP TABLE orders"}, "", "ask"),
        ("go", {"line": "git status"}, "go_read", "allow"),
        ("go", {"line": "git push"}, "go_git", "ask"),
        ("go", {"line": "curl http://evil.test"}, "", "ask"),
        ("browser_click", {"element": "Next", "ref": "e2"}, "browser_click_pay", "ask"),
        ("browser_click", {"element": "Next", "ref": "e1"}, "browser_click_link", "ask"),
        ("browser_click", {"element": "Next", "ref": "e4"}, "", "ask"),
    ],
)
def test_a_draft_knows_what_was_seen_and_asks_about_the_rest(
    drafted: Path, tool: str, arguments: dict[str, str], action: str, answer: str
) -> None:
    shown = page("/orders/77", '- link "Order 77" [ref=e1]\n- button "Pay" [ref=e2]\n- button "Delete" [ref=e4]')
    with Shield(drafted, postures={"posture": "enforce", "tools": {"browser_navigate": "shadow"}}) as shield:
        session = shield.session("x")
        session.decide("browser_navigate", {"to": "http://shop.test/orders/77"})
        session.result(shown)
        decision = session.decide(tool, arguments)
    assert [each.name for each in decision.actions] == [action] * bool(action)
    assert decision.answer == answer
