"""What was settled for an action holds for that action alone: pauses, approvals, stops."""

import json
import time
from typing import Any

import pytest

from bylaw import Shield
from bylaw.record import Log
from bylaw.shield import LiveSession
from tests.actions.desk import CHECKOUT, FILES, page
from tests.packs import made

PAYING = {
    "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
    "policy.md": "At most one payment an hour.\n",
    "policies.yaml": "policies: [{id: few, kind: rule, spans: [At most one payment an hour.]}]\n",
    "rules.yaml": "limits: [{id: few, tool: pay, most: 1, within: 1h, over: ask}]\n",
    "tools.yaml": """tools:
  browser_navigate: {effect: read, parameters: {url: string}}
  browser_snapshot: {effect: read}
  browser_click: {effect: read}
actions:
  pay:
    of: browser_click
    on: {role: button, name: Pay}
    effect: write
    take: {total: {value: "$page.text('^Total: ([0-9.]+) EUR$')", type: number}}
    changes: []
  follow_link: {of: browser_click, on: {role: link}, effect: write, changes: []}
""",
}
CLICK = {"target": "e3"}
BUTTON, LINK = 'button "Pay"{}', 'link "x"{}:\n  - /url: /x'


def show(session: LiveSession, total: int, element: str = BUTTON, url: str = "http://shop.test/pay") -> None:
    """The agent opens a page with a total and one element."""
    session.agent("I open the page.")
    id = f"show-{session.position}-{total}"
    assert session.decide("browser_navigate", {"url": url}, id=id).allowed
    session.result(shown(total, element, url), id=id)


def shown(total: int, element: str, url: str = "http://shop.test/pay") -> str:
    body = f'- paragraph [ref=e1]: "Total: {total} EUR"\n- {element.format(" [ref=e3]")}'
    return f"### Page\n- Page URL: {url}\n### Snapshot\n```yaml\n{body}\n```"


@pytest.mark.parametrize(
    ("element", "total", "goes_on"),
    [(BUTTON, 10, True), (BUTTON, 4000, False), (LINK, 10, False)],
)
def test_a_paused_call_goes_on_only_as_the_same_action(element: str, total: int, goes_on: bool) -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10, element)
        session.interrupt("a", session.decide("browser_click", CLICK, id="a"))
        show(session, total)
        resumed = session.resume("a", "browser_click", CLICK)
        assert (resumed is not None) == goes_on


def test_a_no_to_an_action_ends_the_paused_call_that_performs_it() -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10)
        assert session.decide("browser_click", CLICK, id="first").allowed
        session.result("done", id="first")
        show(session, 10)
        log.approve(session.decide("browser_click", CLICK, id="asked").approval, by="ann")
        session.interrupt("a", session.decide("browser_click", CLICK, id="a"))
        show(session, 10)
        log.reject(session.decide("browser_click", CLICK, id="again").approval, by="bo")
        assert session.resume("a", "browser_click", CLICK) is None


def test_a_stop_of_a_tool_that_reads_stops_the_writes_it_performs() -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10)
        log.stop("tool", "browser_click", by="ann", reason="r", until=time.time() + 60)
        assert session.decide("browser_click", CLICK).answer == "deny"


def test_an_approval_of_an_undeclared_click_counts_on_its_page_alone() -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield:
        session = shield.session("c")
        show(session, 10, 'button "Buy"{}')
        log.approve(session.decide("browser_click", CLICK).approval, by="ann")
        show(session, 9999, 'button "Buy"{}', "http://shop.test/pay?cart=2")
        assert not session.decide("browser_click", CLICK).allowed


@pytest.mark.parametrize("shown_before", [True, False])
def test_a_page_is_not_known_while_an_older_click_may_still_change_it(shown_before: bool) -> None:
    with Log(":memory:") as log, Shield(made(PAYING), log=log) as shield, shield.session("c") as session:
        show(session, 10)
        assert session.decide("browser_click", CLICK, id="slow").allowed
        if shown_before:
            show(session, 10)
            session.result("done", id="slow")
        else:
            assert session.decide("browser_snapshot", {}, id="look").allowed
            session.result(shown(10, BUTTON), id="look")
        assert session.decide("browser_click", CLICK).answer == "look_up"


def test_a_click_that_is_not_known_may_have_used_the_yes() -> None:
    """The history begins after the page of the first click was shown: it may have been the order."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "Order it."}]

    def make(tool: str, arguments: dict[str, str], result: str) -> None:
        id = f"c{len(history)}"
        call = {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": id, "content": result})

    with Shield(made(FILES)) as shield:
        make("browser_navigate", {"url": "http://shop.test/checkout"}, page(CHECKOUT))
        card = shield.decide(history, "browser_click", {"target": "e7"}).card
        assert card is not None
        history += [{"role": "assistant", "content": card.text}, {"role": "user", "content": "yes"}]
        kept = len(history) - 2
        assert shield.decide(history, "browser_click", {"target": "e7"}).allowed
        make("browser_click", {"target": "e7"}, "ordered")
        make("browser_navigate", {"url": "http://shop.test/checkout"}, page(CHECKOUT))
        assert not shield.decide(history, "browser_click", {"target": "e7"}).allowed
        assert not shield.decide(history[kept:], "browser_click", {"target": "e7"}).allowed


def test_equal_writes_to_several_elements_each_count() -> None:
    tools = PAYING["tools.yaml"].replace("browser_click: {effect: read}", "browser_fill_form: {effect: read}")
    tools = tools.replace("of: browser_click", "of: browser_fill_form").replace(
        "role: button, name: Pay", "role: spinbutton"
    )
    with Log(":memory:") as log, Shield(made(PAYING | {"tools.yaml": tools}), log=log) as shield:
        session = shield.session("c")
        show(session, 10, 'spinbutton "A" [ref=e4]\n- spinbutton "B"{}')
        fields = [{"ref": "e3", "value": "1"}, {"ref": "e4", "value": "1"}]
        decision = session.decide("browser_fill_form", {"fields": fields})
        assert len(decision.actions) == 2
        assert not decision.allowed
        assert session.decide("browser_fill_form", {"fields": fields[:1]}).allowed


RULED = {
    "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
    "policy.md": "Be careful.\n",
    "policies.yaml": "policies: [{id: few, kind: rule, spans: [Be careful.]}]\n",
    "tools.yaml": """tools:
  execute_sql: {effect: write, parameters: {query: string}}
actions:
  remove: {of: execute_sql, reads: {argument: query, as: sql, statements: [delete]}, effect: write, changes: []}
""",
    "guards/g.py": 'def fine(call: remove, facts):\n    """Be careful."""\n    return permit()\n',
}
NO_SQL = "predicates: {sql: {tool: execute_sql}}\nrules: [{id: few, formula: ALWAYS NOT sql}]\n"
ONE_SQL = "limits: [{id: few, tool: execute_sql, most: 1, within: 1h}]\n"
ONCE = """predicates: {removes: {tool: remove}}
rules: [{id: few, formula: ALWAYS NOT (removes AND YESTERDAY ONCE removes), hard: false, weight: 5.0}]
"""
TWO = "delete from t where id = 1; delete from t where id = 2"


@pytest.mark.parametrize(
    ("rules", "queries", "last"),
    [
        (NO_SQL, [TWO[:26]], "deny"),
        (ONE_SQL, [TWO[:26], TWO[:26]], "deny"),
        (ONCE, [TWO[:26], TWO[:26]], "deny"),
        (ONCE, [TWO], "deny"),
    ],
)
def test_rules_and_limits_hold_for_the_call_and_for_each_of_its_actions(
    rules: str, queries: list[str], last: str
) -> None:
    with Log(":memory:") as log, Shield(made(RULED | {"rules.yaml": rules}), log=log) as shield:
        session = shield.session("c")
        answers: list[str] = []
        for query in queries:
            decision = session.decide("execute_sql", {"query": query})
            answers.append(decision.answer)
            if decision.allowed:
                session.result("done")
        assert answers == [*["allow"] * (len(queries) - 1), last]


ASKED = RULED | {"rules.yaml": "limits: [{id: few, tool: remove, most: 1, within: 1h, over: ask}]\n"}
ASKED["tools.yaml"] += (
    "  look: {of: execute_sql, reads: {argument: query, as: sql, statements: [select]}, effect: read}\n"
)


def test_an_approval_is_for_the_text_that_a_person_was_shown() -> None:
    with Log(":memory:") as log, Shield(made(ASKED), log=log) as shield:
        session = shield.session("c")
        assert session.decide("execute_sql", {"query": TWO[:26]}, id="first").allowed
        session.result("done", id="first")
        asked = session.decide("execute_sql", {"query": TWO[:26]}, id="asked")
        assert TWO[:26] in asked.for_person
        log.approve(asked.approval, by="ann")
        assert not session.decide("execute_sql", {"query": "delete from t where id = 9"}, id="other").allowed
        assert session.decide("execute_sql", {"query": TWO[:26]}, id="same").allowed


def test_a_no_to_an_action_ends_an_approval_of_a_call_that_makes_it_with_another() -> None:
    with Log(":memory:") as log, Shield(made(ASKED), log=log) as shield:
        session = shield.session("c")
        assert session.decide("execute_sql", {"query": TWO[:26]}, id="first").allowed
        session.result("done", id="first")
        both = {"query": f"select 1; {TWO[:26]}"}
        log.approve(session.decide("execute_sql", both, id="both").approval, by="ann")
        log.reject(session.decide("execute_sql", {"query": TWO[:26]}, id="one").approval, by="bo")
        assert session.decide("execute_sql", both, id="again").answer == "deny"


def test_arguments_that_the_tool_does_not_declare_do_not_pass_beside_an_action() -> None:
    with Shield(made(RULED | {"rules.yaml": ONCE})) as shield, shield.session("c") as session:
        assert session.decide("execute_sql", {"query": TWO[:26], "sql": "drop table t"}).answer == "ask"
        assert session.decide("execute_sql", {"query": TWO[:26]}).allowed
