"""SQL, judged statement by statement."""

from pathlib import Path

import pytest

from bylaw import Shield
from tests.actions.desk import FILES, acts, audited, pack
from tests.packs import made


@pytest.mark.parametrize(
    "query", ["SELECT 1", "select a from t; select b from u", "WITH x AS (SELECT 1) SELECT * FROM x"]
)
def test_queries_that_only_read_are_allowed(query: str) -> None:
    with Shield(pack()) as shield, shield.session("x") as session:
        assert session.decide("execute_sql", {"query": query}).allowed


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT o.id, total FROM orders o WHERE o.total > 5 ORDER BY o.id", "allow"),
        ("SELECT o.* FROM orders o", "allow"),
        ("SELECT o.purge FROM orders o", "ask"),
        ("SELECT orders.purge FROM orders", "ask"),
        ('SELECT o."Purge" FROM orders o', "ask"),
        ("SELECT 1 FROM orders o ORDER BY o.purge", "ask"),
        ("SELECT a.id FROM orders a JOIN LATERAL (SELECT a.purge) b ON true", "ask"),
        ("WITH x AS (SELECT o.purge FROM orders o) SELECT 1", "ask"),
        ("EXPLAIN ANALYZE SELECT o.purge FROM orders o", "ask"),
    ],
)
def test_a_name_after_an_alias_may_be_a_function_unless_it_is_a_declared_column(query: str, answer: str) -> None:
    tools = FILES["tools.yaml"].replace("statements: [select]", "statements: [select, explain]")
    assert tools != FILES["tools.yaml"]
    with Shield(made({**FILES, "tools.yaml": tools})) as shield, shield.session("x") as session:
        assert session.decide("execute_sql", {"query": query}).answer == answer


def test_each_statement_is_an_action_of_its_own() -> None:
    with Shield(pack()) as shield, shield.session("x") as session:
        query = "SELECT 1; DELETE FROM orders WHERE id = 3; DELETE FROM orders"
        decision = session.decide("execute_sql", {"query": query})
        assert decision.answer == "deny"
        assert acts(decision) == [
            ("read_rows", {}),
            ("delete_rows", {"tables": ["orders"], "bounded": True}),
            ("delete_rows", {"tables": ["orders"], "bounded": False}),
        ]
        assert session.decide("execute_sql", {"query": "DELETE FROM orders WHERE id = 3"}).allowed
        session.result("done")
        assert [(step, name, verdict) for step, name, _, verdict in audited(session, shield.pack)] == [
            (0, "delete_rows", "compliant"),
            (0, "delete_rows", "violation"),
            (1, "delete_rows", "compliant"),
        ]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE orders",
        "SELECT 1; UPDATE orders SET paid = true",
        "WITH gone AS (DELETE FROM orders RETURNING id) INSERT INTO t SELECT id FROM gone",
        "SELECT pg_terminate_backend(1)",
        "nonsense",
        "",
    ],
)
def test_a_statement_without_an_action_makes_the_whole_call_unknown(query: str) -> None:
    with Shield(pack()) as shield, shield.session("x") as session:
        assert session.decide("execute_sql", {"query": query}).answer in ("ask", "deny")


def test_a_call_that_does_very_many_things_is_unknown() -> None:
    with Shield(pack()) as shield, shield.session("x") as session:
        assert session.decide("execute_sql", {"query": "DELETE FROM orders WHERE id = 1;" * 51}).answer == "ask"
        assert session.decide("execute_sql", {"query": "SELECT 1;" * 51}).allowed


def test_two_actions_that_count_under_one_limit_are_made_in_two_calls(tmp_path: Path) -> None:
    rules = FILES["rules.yaml"].replace("tool: refund", "tool: delete_rows")
    tools = FILES["tools.yaml"].replace("  t: {keys: [a]}\n", "  a, b, c: {keys: [id]}\n")
    with (
        Shield(made({**FILES, "rules.yaml": rules, "tools.yaml": tools}), log=tmp_path / "log.db") as shield,
        shield.session("x") as session,
    ):
        both = session.decide("execute_sql", {"query": "DELETE FROM a WHERE id = 1; DELETE FROM b WHERE id = 1"})
        assert both.answer == "deny"
        assert "Make a separate call for each action" in both.feedback
        for query, answer in (("a", "allow"), ("b", "allow"), ("c", "deny")):
            assert session.decide("execute_sql", {"query": f"DELETE FROM {query} WHERE id = 1"}).answer == answer
            if answer == "allow":
                session.result("DELETE 1")
