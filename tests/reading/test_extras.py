"""Without its extra, the SQL reader names the extra."""

import sys

import pytest

from bylaw.errors import MissingExtra
from bylaw.reading import sql, sql_tree


@pytest.fixture(autouse=True)
def forgotten() -> None:
    for cached in (sql_tree._sqlglot, sql_tree._dialect, sql_tree._parser):
        cached.cache_clear()


def test_sql_needs_read_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(MissingExtra, match=r"\.\[read-sql\]"):
        sql.read_sql("select 1")
