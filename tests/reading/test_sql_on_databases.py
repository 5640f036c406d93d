"""What is read as a read changes nothing in real databases, and each of its functions is one that reads."""

import random
import sqlite3
from collections.abc import Iterator

import pytest

from bylaw.reading import Unreadable, sql_words
from bylaw.reading.sql import Table, read_sql
from tests.reading.test_sql import AMBIGUOUS, HOSTILE, READS

psycopg = pytest.importorskip("psycopg", reason="needs the extra `postgres`")

VOLATILE_YET_HARMLESS = {
    "clock_timestamp",
    "current_query",
    "gen_random_uuid",
    "pg_blocking_pids",
    "pg_current_wal_lsn",
    "pg_database_size",
    "pg_indexes_size",
    "pg_is_in_recovery",
    "pg_jit_available",
    "pg_partition_tree",
    "pg_relation_size",
    "pg_table_size",
    "pg_tablespace_size",
    "pg_total_relation_size",
    "random",
    "timeofday",
}
"""Functions that give another value each time and change nothing."""

TABLES = {"t": Table(frozenset({"a", "b"}), frozenset({"a"}))}
SCHEMA = """
create table if not exists t (a int, b text);
truncate t;
insert into t values (1, 'x'), (2, 'y');
create sequence if not exists s;
create or replace function f() returns int language sql as 'delete from t; select 1';
create or replace procedure p() language sql as 'delete from t';
"""
DOMAINS = """
create or replace function kept(text) returns boolean language plpgsql as
$$begin insert into t values (9, 'kept'); return true; end$$;
drop table if exists pairs; drop type if exists pair; drop domain if exists checked; drop domain if exists "Text";
create domain checked as text check (kept(value));
create domain "Text" as text check (kept(value));
create type pair as (a checked);
create table pairs (a checked);
insert into pairs values (null);
"""
RUNS_A_CHECK = """
select 'x'::checked
select 'x'::"checked"
select 'x'::"Text"
select cast('x' as "Text")
select "Text" 'x'
select * from json_to_record('{"a":"x"}') as f(a "Text")
select * from json_to_record('{"a":"x"}') as f(a "Text", b int)
select '{x}'::"Text"[]
select 'x'::public.checked
select b::checked from t
select cast('x' as checked)
select cast('x' as public."checked")
select checked 'x'
select public.checked 'x'
select "checked" 'x'
select 'x'::text::checked
select '{x}'::checked[]
select array['x']::checked[]
select cast(array['x'] as checked array)
select '(x)'::pair
select pair '(x)'
select row('x')::pair
select count(*) from t where b::checked = 'x'
select count(*) filter (where b::checked = 'x') from t
values ('x'::checked)
with q as (select 'x'::checked) select * from q
explain analyze select b::checked from t
select * from json_to_recordset('[{"a":"x"}]') as f(a checked)
select * from json_to_record('{"a":["x"]}') as f(a checked[])
select json_populate_record(null::pair, '{"a":"x"}')
select json_populate_record(p, '{"a":"x"}') from pairs as p
select * from pairs as p, lateral jsonb_populate_recordset(p, '[{"a":"x"}]')
select * from jsonb_populate_recordset(cast(null as pair), '[{"a":"x"}]')
""".strip().splitlines()
BASES = [
    "select * from t",
    "select a, b from t where b = 'x'",
    "select 'it''s' || b from t",
    'select "a" from "t"',
    "with x as (select 1) select * from x",
    "select a /* c */ from t -- d\n",
    "select $$x$$",
    "select E'\\'x' from t",
    "select array[1,2], (array['a','b'])[1]",
    "explain select * from t",
    "select count(*) from t group by b",
    "values (1),('x')",
    "select * from t; select 1",
    "select x.a from (select * from t) x where x.a in (1,2)",
]
PIECES = [
    "delete from t",
    " delete from t ",
    "insert into t values (9,'z')",
    "nextval('s')",
    " into n ",
    ";",
    "'",
    "''",
    '"',
    "\\",
    "\\'",
    "--",
    "-- ",
    "\n",
    "/*",
    "*/",
    "/*!",
    "#",
    "$$",
    "$a$",
    "$1",
    "E'",
    "U&'",
    "[",
    "]",
    "(",
    ")",
    ",",
    " for update",
    " union select 1",
    "with x as (",
    "returning *",
    "*",
    "`",
    "update t set a=1",
    "call p()",
    "f()",
    '"f"()',
    "drop table t",
    "set_config('a.b','c',false)",
    " as ",
    " explain analyze ",
    "\r\n",
    "%",
    "1",
    "t",
    ".",
]


@pytest.fixture
def database(postgres: str) -> str:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(SCHEMA)
    return postgres


def reads(text: str, dialect: str | None) -> bool:
    try:
        return not any(statement.writes for statement in read_sql(text, dialect, TABLES))
    except Unreadable:
        return False


def generated(seed: int, count: int) -> Iterator[str]:
    choose = random.Random(seed)
    for _ in range(count):
        text = choose.choice(BASES)
        for _ in range(choose.randint(1, 4)):
            at = choose.randint(0, len(text))
            text = text[:at] + choose.choice(PIECES) + text[at + choose.choice([0, 0, 1, 2, 5]) :]
        yield text


def test_functions_that_read_are_not_volatile_in_postgresql(database: str) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "select distinct proname from pg_proc where provolatile = 'v' and proname = any(%s)",
            (list(sql_words.FUNCTIONS),),
        ).fetchall()
    assert {name for (name,) in found} <= VOLATILE_YET_HARMLESS


@pytest.mark.parametrize("dialect", [None, "postgres"])
def test_postgresql_runs_every_read_in_a_transaction_that_only_reads(database: str, dialect: str | None) -> None:
    run = 0
    for text in [*READS, *HOSTILE, *AMBIGUOUS, *generated(5, 800)]:
        if not reads(text, dialect):
            continue
        with psycopg.connect(database) as connection:
            connection.read_only = True
            try:
                connection.execute(text.encode())
                run += 1
            except psycopg.errors.ReadOnlySqlTransaction:
                pytest.fail(f"it writes: {text!r}")
            except psycopg.Error:
                pass  # names that are not there, another dialect
            connection.rollback()
    assert run > 20
    with psycopg.connect(database) as connection:
        assert connection.execute("select (select count(*) from t), (select is_called from s)").fetchone() == (2, False)


CALLS = """
select {}(1)
select {}(a) from t
select 1, {}(a) over () from t
select * from {}(1)
select * from t as x, {}(1)
select a from t where {}(a) > 0
select a from t order by {}(1)
with q as (select {}(1)) select * from q
insert into t (a) select {}(a) from t
update t set a = {}(1) where a = 1
""".strip().splitlines()


@pytest.mark.parametrize("dialect", [None, "postgres"])
def test_a_function_named_by_a_keyword_of_another_database_is_not_called_by_a_read(
    database: str, dialect: str | None
) -> None:
    named = 0
    with psycopg.connect(database) as connection, connection.transaction(force_rollback=True):
        for word in sorted(sql_words.BEFORE_BRACKETS - sql_words.FUNCTIONS | {"qualify"}):
            body = "insert into t values (9) returning 1"
            try:
                with connection.transaction():
                    connection.execute(f"create function {word}(int) returns int language sql as '{body}'".encode())
            except psycopg.errors.SyntaxError:
                continue  # a reserved word, which names no function
            named += 1
            for call in CALLS:
                try:
                    found = read_sql(call.format(word), dialect, TABLES)
                except Unreadable:
                    continue
                assert any(each.tables_written is None for each in found), call.format(word)
    assert named > 40


@pytest.mark.parametrize("text", RUNS_A_CHECK)
def test_a_conversion_to_a_domain_runs_its_check_and_is_no_read(database: str, text: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(DOMAINS)
        connection.commit()
        connection.read_only = True
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute(text.encode())
    assert not reads(text, "postgres")
    assert not reads(text, None)


def test_every_type_that_a_query_may_name_is_one_of_postgresql(database: str) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "select name from unnest(%s::text[]) as name where not exists ("
            "select from pg_type where oid = to_regtype(name) and typnamespace = 'pg_catalog'::regnamespace)",
            (sorted(sql_words.POSTGRES_TYPES),),
        ).fetchall()
    assert {name for (name,) in found} == {"double"}


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "insert into t (a) select a from t for update"),
        ("mysql", "insert into t (a) select 1 into @x"),
        ("tsql", "insert into t select a from t with (updlock)"),
        ("tsql", "insert into t (a) values (next value for s)"),
        ("tsql", "select * from [t ]"),
        ("mysql", "select * from `auth `.users"),
        ("postgres", "select json_object('a': 'x' returning checked)"),
        ("sqlite", "select a from t where a in pragma_optimize"),
        ("mysql", "insert into t (a) values (@x := 5)"),
        ("mysql", "show variables like '%password%'"),
        ("sqlite", "select a from t where a in 'fsdir'"),
        ("sqlite", "insert into t (a) select a from t where a not in other.x"),
    ],
)
def test_a_lock_a_sequence_and_a_padded_name_are_not_overlooked(dialect: str, text: str) -> None:
    with pytest.raises(Unreadable):
        read_sql(text, dialect, TABLES)


@pytest.mark.parametrize("dialect", [None, "sqlite"])
def test_sqlite_makes_no_change_for_a_read(dialect: str | None) -> None:
    changes = {
        sqlite3.SQLITE_INSERT, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_ALTER_TABLE,
    }  # fmt: skip
    seen: list[str | None] = []

    def watch(action: int, name: str | None, *_: str | None) -> int:
        if action in changes:
            seen.append(name)
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("create table t (a int, b text); insert into t values (1, 'x')")
    connection.set_authorizer(watch)
    run = 0
    for text in [*READS, *HOSTILE, *AMBIGUOUS, *generated(6, 800)]:
        if not reads(text, dialect) or text.lstrip().lower().startswith("explain"):
            continue
        try:
            connection.executescript(text)
            run += 1
        except (sqlite3.Error, ValueError):
            pass  # names that are not there, another dialect
        assert seen == [], text
    assert run > 20
