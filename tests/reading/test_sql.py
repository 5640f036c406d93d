"""What SQL texts read and write, and that no write passes for a read."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bylaw.reading import Unreadable
from bylaw.reading.sql import DIALECTS, Statement, Table, read_sql

READS = """
select 1
select * from users
SELECT a, count(*) FROM users u JOIN t ON t.id=u.id WHERE a='x' GROUP BY 1 ORDER BY 2 LIMIT 3
with x as (select * from y), z(a,b) as (select 1,2) select * from x, z
with recursive x(n) as (select 1 union all select n+1 from x where n<5) select * from x
explain select * from t
explain analyze select * from t
explain (analyze, buffers) select 1
explain query plan select 1
describe users
describe sales.users name
show tables
show full columns from t
show server_version
show create table x
pragma table_info(users)
select date_trunc('month', a::date), extract(epoch from b), a->>'x' from t
select * from generate_series(1,3) as g(n)
select case when a then 1 else 2 end from t where x in (1,2) and exists (select 1 from q)
select row_number() over (partition by a order by b) from t
select count(distinct a) filter (where b) from t
select top 10 * from [Order Details]
select * from `proj.ds.table`
select pg_catalog.lower(x) from information_schema.columns
select replace(a,'b','c') from t
select a from t where name ~ '\\d+'
values (1),(2)
select call, copy, a.set, a.update from t a
select attname from pg_attribute where attrelid = 'users'::regclass
select jsonb_array_elements(data->'items')->>'sku' from orders
begin transaction isolation level serializable, read only; select 1
select cast(x as numeric(1,2)), x::varchar(20) from t
select * from t offset 1 rows fetch first 5 rows only
select x from a with (nolock)
select * from a union all select * from b order by 1
select ARRAY[1,2], arr[1] from t
select 'delete from users; it''s only a text'
select a from t -- delete from t
select a /* delete from t */ from t;
""".strip().splitlines()

HOSTILE = Path(__file__).with_name("hostile_sql.txt").read_text(encoding="utf-8").splitlines()
"""Statements that write, or that cannot be read for certain, whatever the dialect."""

AMBIGUOUS = [
    "select '\\'; delete from users; --'",
    "select 1 /*! ; delete from users */",
    "select 1 /*!50000 into outfile 'x' */",
    "select /*+ set_var(sql_log_bin=0) */ 1",
    "select 1 /* /* */ ; delete from users -- */",
    "select 1 --x\n",
    "select 1 --1; delete from users",
    "select 1 # ; delete from users",
    "select 1 # \n; delete from users",
    "select $$; delete from users; select $$",
    "select a$$;delete from users;select b$$ from t",
    "select U&'\\0027; delete from users --'",
    "select E'\\'; delete from users; --'",
    "select q'[']; delete from users; --]'",
    "select r'\\'; delete from users; --'",
    "select a['] ; delete from users; --'] from t",
    "select a[1 -- ]; delete from users;\n] from t",
    "select `'`; delete from users; -- `'`",
    "select '''; delete from users; --'''",
    "select 1 -- x\rdelete from users",
    "select 1\x00; delete from users",
    "select 1 // ; delete from users",
    "select {fn user()}",
    'select "a\\"; delete from users; --"',
    "\\copy users to '/tmp/x'",
    "select 1 \\gexec",
    "select 'a",
    "select 1 /* a",
    "select (1; delete from users)",
    "select 1)",
    "",
    " ; ",
    "-- only a comment",
    "select\u00a01",
    "(" * 100 + "select 1" + ")" * 100,
    "select '" + "a" * 200_000 + "'",
    "select 1 from t where " + " or ".join(f"a = {n}" for n in range(900)),
    "select " + "not " * 2500 + "a",
    "select " + ", ".join("a" * 5000),
]


USERS = {"users": Table(frozenset({"id", "x", "day"}), frozenset({"id"}))}


def writes(text: str, dialect: str | None = None, tables: Mapping[str, Table] | None = None) -> bool:
    """Whether the text may write, if all names are of plain tables and columns: an unreadable one may."""
    try:
        return any(statement.writes for statement in read_sql(text, dialect, tables))
    except Unreadable:
        return True


@pytest.mark.parametrize("dialect", [None, "postgres"])
@pytest.mark.parametrize("between", ["\n", " -- on\n", "\n\n"])
def test_a_string_that_goes_on_with_the_one_before_may_have_its_escapes(dialect: str | None, between: str) -> None:
    """PostgreSQL reads one string here, and then drops the table."""
    assert writes(f"select E'a'{between}'\\', ' ; drop table t; -- '", dialect)
    assert not writes(f"select 'a'{between}'it''s' from t", "postgres")


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("delete from orders using customers where customers.id = 1", "postgres"),
        ("update orders set total=0 from customers c where c.id=1", "postgres"),
        ("delete o from orders o, customers c where c.id=1", "mysql"),
        ("update orders set total=0 from orders, customers as c where c.id=1", "tsql"),
    ],
)
def test_a_condition_on_another_table_bounds_nothing(text: str, dialect: str) -> None:
    assert not any(each.bounded for each in read_sql(text, dialect, None))


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("insert into orders (id, total) values (1, 5) on conflict (id) do update set total=0", "postgres"),
        ("insert into orders (id, total) values (1, 5) on duplicate key update total=0", "mysql"),
        ("insert or replace into orders (id, total) values (1, 5)", "sqlite"),
    ],
)
def test_an_insert_that_overwrites_rows_is_an_update_too(text: str, dialect: str) -> None:
    assert [each.kind for each in read_sql(text, dialect, ORDERS)] == ["insert", "update"]
    adding = "insert into orders (id, total) values (1, 5) on conflict (id) do nothing"
    assert [each.kind for each in read_sql(adding, "postgres")] == ["insert"]


def test_a_query_in_brackets_may_name_its_columns() -> None:
    assert not writes("select * from (select 1, 2) t (a, b) join (values (1)) u (c) on true", "postgres")


@pytest.mark.parametrize("text", READS)
def test_a_query_reads(text: str) -> None:
    assert not writes(text)


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_no_write_passes_for_a_read(dialect: str | None) -> None:
    for tables in (None, {}):
        assert [text for text in HOSTILE if not writes(text, dialect, tables)] == []


@pytest.mark.parametrize("dialect", ["tsql", None])
@pytest.mark.parametrize(
    "text",
    [
        "insert into orders select 1 shutdown",
        "insert into orders select id from orders reconfigure",
        "insert into orders values (1) shutdown",
        "delete from orders shutdown",
        "select id as a from orders shutdown",
        "select id from orders as a shutdown",
        "select id as shutdown from orders shutdown",
        "update orders set total = 1 where id = '1' checkpoint",
        "select case when 1 = 1 then 1 end shutdown",
        "select id from orders order by id desc shutdown",
    ],
)
def test_a_word_without_as_may_begin_a_statement(text: str, dialect: str | None) -> None:
    try:
        found = read_sql(text, dialect, ORDERS)
    except Unreadable:
        return
    assert all(each.writes and each.tables_written is None for each in found)


def test_every_alias_has_as_where_a_statement_needs_no_semicolon() -> None:
    assert writes("select o.id from orders o where o.total > 5", "tsql")
    assert writes("insert into analysis.t select id as [shutdown] from orders shutdown", "tsql")
    assert not writes("select o.id from orders as o where o.total > 5", "tsql")
    assert not writes("select id as number from orders", "tsql")


@pytest.mark.parametrize("dialect", ["sqlite", None])
@pytest.mark.parametrize(
    "text",
    [
        "select name, data from fsdir where path = '/etc/hostname'",
        "select * from orders, zipfile where file = 'a.zip'",
        "insert into ft (ft) values ('delete-all')",
        "insert into orders (orders) values ('delete-all')",
        "insert into spellfix (command) values ('reset')",
        "insert into sqlite_dbpage values (1, 'x')",
        "create table t as select * from fsdir where path = '/etc/passwd'",
    ],
)
def test_a_table_that_is_not_declared_may_be_virtual(text: str, dialect: str | None) -> None:
    assert not any(each.tables_written for each in _possible(text, dialect))
    assert all(each.writes for each in _possible(text, dialect))


def _possible(text: str, dialect: str | None) -> tuple[Statement, ...]:
    try:
        return read_sql(text, dialect, ORDERS)
    except Unreadable:
        return ()


@pytest.mark.parametrize(
    "text",
    ["select id into @x from t", "select * from t where a = 1 lock in share mode"],
)
def test_a_word_that_the_parser_leaves_out_makes_a_text_unreadable(text: str) -> None:
    assert writes(text, "mysql")


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_what_databases_read_differently_is_unreadable_without_a_dialect(text: str) -> None:
    with pytest.raises(Unreadable):
        read_sql(text)


def only(text: str, dialect: str | None = None, tables: Mapping[str, Table] | None = None) -> Statement:
    (statement,) = read_sql(text, dialect, tables)
    return statement


def test_a_query_names_its_tables_and_no_cte_hides_one() -> None:
    assert only("with x as (select * from y) select * from x join z using (id)").tables_read == {"y", "z"}
    assert only("with users as (select * from users) select * from users").tables_read == {"users"}
    assert only("with users as (select 1) select * from public.users").tables_read == {"public.users"}
    assert only("select (select max(a) from inner_one) from outer_one").tables_read == {"inner_one", "outer_one"}


def test_a_write_names_its_tables_and_columns() -> None:
    inserted = only("insert into Orders (id, Total) select a, b from carts")
    assert (inserted.kind, inserted.tables_written, inserted.tables_read) == ("insert", {"orders"}, {"carts"})
    assert inserted.columns_written == {"id", "total"}
    assert only("insert into orders values (1)").columns_written is None
    assert only("update orders set a = 1, b = 2 where id = 3").columns_written == {"a", "b"}
    assert only("truncate orders, carts").tables_written == {"orders", "carts"}
    assert only("drop table orders").tables_written == {"orders"}
    assert only("drop schema public cascade").tables_written is None
    assert only("call archive()").tables_written is None
    assert only("delete o from orders o join users u on u.id = o.user_id where u.id = 1").tables_written == {"orders"}
    assert only("update o set a = 1 from orders as o where o.id = 1", "tsql").tables_written is None
    assert only("update orders o, users u set u.a = 1 where u.id = o.id", "mysql").tables_written != {"orders"}


def test_a_write_inside_a_query_is_a_statement_of_its_own() -> None:
    found = read_sql("with gone as (delete from users where id = 1 returning *) select * from gone", tables=None)
    assert [(one.kind, one.writes) for one in found] == [("delete", True), ("select", False)]
    assert found[0].tables_written == {"users"}


@pytest.mark.parametrize(
    ("condition", "is_bounded"),
    [
        ("", False),
        ("where true", False),
        ("where 1 = 1", False),
        ("where id = id", False),
        ("where id > 0", False),
        ("where id is not null", False),
        ("where id = 1 or true", False),
        ("where id = 1 or id <> 1", False),
        ("where not id = 1", False),
        ("where id in (select id from users)", False),
        ("where 'a' = 'a'", False),
        ("where id = 1", True),
        ("where 1 = id", True),
        ("where id = $1 and x > 3", True),
        ("where (id in (1, 2)) and day is not null", True),
        ("where users.id = '7'", True),
        ('where "id" = 7', True),
        ('where "ID" = 7', False),
        ("where x = 7", False),
        ("where (id in (1, 2)) and true", False),
        ("where id = 1 and x between 1 and 3", False),
        ("where id = 7::int", False),
        ("where id = -7", False),
        ("where id = x", False),
        ("where (id = 1) = false", False),
        ("where day between '2024-01-01' and '2024-01-31'", False),
    ],
)
def test_a_delete_is_bounded_only_by_given_values(condition: str, is_bounded: bool) -> None:
    for text in (f"delete from users {condition}", f"update users set a = 1 {condition}"):
        assert only(text, "postgres", USERS).bounded is is_bounded
        assert is_bounded or not only(text, "postgres", {}).bounded


def test_a_named_dialect_decides_what_is_ambiguous() -> None:
    assert not writes("select 'a\\' as b", "postgres")
    assert not writes("table users", "postgres")
    assert not writes("select j #>> '{a,b}' from t", "postgres")
    assert not writes("select $$delete from users$$", "postgres")
    assert not writes("select 'it\\'s'", "mysql")
    assert not writes("select 1 # a comment", "mysql")
    assert writes("select '\\'; delete from users; --'", "postgres")


def test_an_unknown_dialect_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not a dialect"):
        read_sql("select 1", "klingon")


def test_the_parser_puts_nothing_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    read_sql("replace into users values ('a secret')", "mysql")
    assert caplog.records == []


ORDERS = {
    "orders": Table(frozenset({"id", "total", "price"}), frozenset({"id"})),
    "lines": Table(frozenset({"price"})),
}


@pytest.mark.parametrize("dialect", ["postgres", None])
@pytest.mark.parametrize(
    "text",
    [
        "select current_date.f from current_date",
        'select "current_user".f from current_user',
        "select d.f from current_date d",
        "select o.purge from orders o",
        "select orders.purge from orders",
        "select 1 from orders o order by o.purge",
        "select o.purge from (select * from orders) o",
        "with o as (select total from orders) select o.purge from o",
        "select o.purge from orders o, (select 1 as purge) p",
        "select o.purge from orders o, (with o as (select 1 as purge) select o.purge from o) p",
        "select o.purge from orders o, lateral (select 1 as purge) o2, (select (select 1 as purge) as a) q",
        "select o.total from orders as o (id)",
        "select f.total from orders as f, lateral unnest(array[1]) as g (purge) where g.total = 1",
        "with unnest as (select 1 as f) select (select unnest.f from unnest(array['x'])) from unnest",
        "update orders set total = orders.purge where id = 1",
        "delete from orders o where id = 1 returning o.purge",
        "insert into orders (id) values (1) on conflict (id) do update set id = excluded.purge",
        "select ('/etc/passwd'::text).pg_read_file",
        "select f.pg_read_file from unnest(array['/etc/passwd']) f",
        "select ('/etc/passwd'::text).lo_import",
        "select (2).pg_advisory_lock",
        "select f.pg_terminate_backend from generate_series(1, 9) as f",
        "select f.PG_READ_FILE from unnest(array['/etc/passwd']) as f(\"PG_READ_FILE\")",
        "select f.lo_import from unnest(array['a']) as f, unnest(array['b']) as \"F\"(lo_import)",
        "select (select f.lo_import from unnest(array['a']) f) from unnest(array['b']) as f(lo_import)",
    ],
)
def test_an_attribute_that_may_be_a_function_of_postgresql_is_unreadable(text: str, dialect: str | None) -> None:
    with pytest.raises(Unreadable):
        read_sql(text, dialect, ORDERS)


@pytest.mark.parametrize(
    "text",
    [
        "select o.total from (select * from orders) o",
        "with a as (select * from orders), b as (select a.*, 1 as n from a) select b.n, b.id from b",
        "with a (x) as (select 1) select a.x from a",
        "with recursive a as (select id from orders union select a.id + 1 from a where a.id < 9) select a.id from a",
        "select g.i from generate_series(1, 3) as g(i)",
        "select s.total from orders o, lateral (select o.price as total) s",
        "select o.id, (select max(l.price) from lines l) from orders o",
    ],
)
def test_declared_columns_are_no_functions(text: str) -> None:
    assert not any(each.writes for each in read_sql(text, "postgres", ORDERS))
