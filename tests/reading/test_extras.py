"""Without its extra, a reader names it."""

import sys

import pytest

from bylaw.errors import MissingExtra
from bylaw.reading import shell, sql, sql_tree


@pytest.fixture(autouse=True)
def forgotten() -> None:
    for cached in (sql_tree._sqlglot, sql_tree._dialect, sql_tree._parser, shell._parser):
        cached.cache_clear()


def test_sql_needs_read_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(MissingExtra, match=r"\.\[read-sql\]"):
        sql.read_sql("select 1")


def test_shell_needs_read_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    with pytest.raises(MissingExtra, match=r"\.\[read-shell\]"):
        shell.read_shell("ls")
