"""Requests for actions that a generic tool performs."""

import pytest

from bylaw import Pack
from bylaw.engine.request import Allowance, Deed
from bylaw.shield import Shield
from tests.engine.request.desk import Model, spans
from tests.packs import made

TEXT = "Please add a row to a."


@pytest.fixture(scope="module")
def rows() -> Pack:
    return made(
        {
            "pack.yaml": "{format: 1, name: rows, document: policy.md}",
            "policy.md": "The assistant does what its user asks for.",
            "policies.yaml": """
policies:
  - id: as-asked
    kind: guard
    tools: [remove_row, add_row]
    spans: [The assistant does what its user asks for.]
""",
            "guards/asked.py": 'def as_asked(call, facts):\n    return permit() if requested() else deny("no")\n',
            "tools.yaml": """
tools:
  execute_sql: {effect: write, parameters: {query: string}}
actions:
  add_row:
    of: execute_sql
    reads: {argument: query, as: sql, dialect: sqlite, statements: [insert]}
    effect: write
  remove_row:
    of: execute_sql
    reads: {argument: query, as: sql, dialect: sqlite, statements: [delete]}
    effect: write
tables: {a: {columns: [x], keys: [x]}}
""",
        }
    )


ADD = "INSERT INTO a (x) VALUES ('2')"
REMOVE = "DELETE FROM a WHERE x = '1'"


@pytest.mark.parametrize("before", [1, 2, 3])
def test_a_refused_call_says_nothing_about_the_calls_after_it(rows: Pack, before: int) -> None:
    model = Model(Allowance((Deed("add_row", spans(TEXT, "add a row"), ()),)))
    opened = Shield(rows, requests=lambda _: model).session()
    opened.user(TEXT)
    assert opened.decide("execute_sql", {"query": "; ".join([*[REMOVE] * before, ADD])}).answer == "ask"
    answers = [opened.decide("execute_sql", {"query": each}).answer for each in [REMOVE] * (before + 1)]
    assert set(answers) == {"ask"}


def test_a_row_is_not_added_twice_after_a_refused_call(rows: Pack) -> None:
    model = Model(Allowance((Deed("add_row", spans(TEXT, "add a row"), ()),)))
    opened = Shield(rows, requests=lambda _: model).session()
    opened.user(TEXT)
    opened.decide("execute_sql", {"query": "; ".join([*[REMOVE] * 2, ADD])})
    answers = [opened.decide("execute_sql", {"query": ADD}).answer]
    opened.result("done")
    answers += [opened.decide("execute_sql", {"query": ADD}).answer for _ in range(2)]
    assert answers == ["allow", "ask", "ask"]
