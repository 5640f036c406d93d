"""Calls that hide what they do: each was allowed once, in a starter pack or in a pack of a few lines."""

from typing import Any

import pytest

from bylaw import Shield, verdicts
from tests.packs import made

ROOT = """tools:
  bash: {effect: write}
  write_file: {effect: write, parameters: {path: string, text: string}}
actions:
  look: {of: bash, reads: {argument: command, as: shell, root: /repo, inside: true}, effect: read}
  test: {of: bash, reads: {argument: command, as: shell, commands: ['pytest( -[xq]+| [\\w.][\\w./]*)*']}, effect: write}
  pay: {of: bash, reads: {argument: command, as: shell, program: paycli}, effect: write}
  other: {of: bash, reads: {argument: command, as: shell, program: [pytest, make]}, effect: write, fallback: true}
  write: {of: write_file, reads: {argument: path, as: path, root: /repo, inside: true}, effect: write}
unread: {bash: [timeout]}
"""
PACK = {
    "pack.yaml": "format: 1\nname: repo\ndocument: policy.md\n",
    "policy.md": "No other form of a program is run.\nBe careful.\n",
    "tools.yaml": ROOT,
    "guards/repo.py": '''def no_other_form(call: other, facts):
    """No other form of a program is run."""
    return deny("it is another form")


def careful(call: test | pay | write, facts):
    """Be careful."""
    return permit()
''',
}


def answer(tool: str, arguments: dict[str, Any]) -> str:
    with Shield(made(PACK)) as shield, shield.session("c") as session:
        return session.decide(tool, arguments).answer


@pytest.mark.parametrize("name", ["cwd", "workdir", "env", "stdin", "args", "shell"])
def test_an_argument_that_nothing_reads_leaves_open_what_a_command_does(name: str) -> None:
    assert answer("bash", {"command": "ls", "timeout": 5}) == "allow"
    assert answer("bash", {"command": "ls", name: None}) == "allow"
    assert answer("bash", {"command": "ls", name: "/etc"}) == "ask"


def test_a_declared_argument_that_nothing_reads_leaves_open_what_a_command_does() -> None:
    tools = ROOT.replace("bash: {effect: write}", "bash: {effect: write, parameters: {command: string, cwd: string?}}")
    with Shield(made({**PACK, "tools.yaml": tools})) as shield, shield.session("c") as session:
        assert session.decide("bash", {"command": "ls"}).answer == "allow"
        assert session.decide("bash", {"command": "ls", "cwd": "/etc"}).answer == "ask"


def test_an_argument_that_a_tool_does_not_declare_is_not_passed_over() -> None:
    assert answer("write_file", {"path": "a", "text": "b"}) == "allow"
    assert answer("write_file", {"path": "a", "text": "b", "file_path": "/etc/x"}) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "pytest -p evil",
        "pytest -x -c /tmp/x",
        "make",
        "PYTEST_ADDOPTS=-pevil pytest",
        "pytest $X",
        "pytest *",
        "pytest 'a b'",
    ],
)
def test_a_command_is_as_one_of_its_patterns_says_or_another(command: str) -> None:
    assert answer("bash", {"command": "pytest -xq src/a.py"}) == "allow"
    assert answer("bash", {"command": f"timeout 5 env CI=1 {command}"}) != "allow"
    assert answer("bash", {"command": command}) == "deny"


@pytest.mark.parametrize("prefix", ["sudo ", "su -c '", "./", "doas "])
def test_a_pattern_of_commands_fits_no_other_rights_and_no_other_program(prefix: str) -> None:
    assert answer("bash", {"command": f"{prefix}pytest{chr(39) if chr(39) in prefix else ''}"}) != "allow"


@pytest.mark.parametrize(
    "command",
    [
        "for i in 1 2 3; do paycli 5; done",
        "while true; do paycli 5; done",
        "until false; do paycli 5; done",
        "seq 9 | xargs -n1 paycli",
        "find . -exec paycli 5 {} ';'",
        "for i in 1 2; do sh -c 'paycli 5'; done",
    ],
)
def test_what_may_run_many_times_is_no_single_write(command: str) -> None:
    assert answer("bash", {"command": "paycli 5"}) == "allow"
    assert answer("bash", {"command": command}) == "ask"


@pytest.mark.parametrize("command", ["cd .. && ls", "cd /; ls", "cd .. && git log -5", "cd src/../.. && rg main"])
def test_the_folder_that_a_command_runs_in_is_one_of_its_paths(command: str) -> None:
    assert answer("bash", {"command": "cd src && ls"}) == "allow"
    assert answer("bash", {"command": command}) != "allow"


@pytest.mark.parametrize("path", [
        '["/etc/x"]', " /etc/x", "/repo/.env ", "a\u200bb", "a /b", '"/etc/x"', "{a}", "$HOME/x", "${X}",
        "%2e%2e/x", "a%2fb", "a\\..\\b", "\uff0e\uff0e/x", "\u2025/x", "a\uff0fb", "a,/etc/x", "a:/etc/x", "a;../x",
    ],
)  # fmt: skip
def test_a_path_that_tools_read_differently_is_not_read(path: str) -> None:
    assert answer("write_file", {"path": path, "text": ""}) == "ask"


@pytest.mark.parametrize(
    "query",
    [
        'WITH "PG_SHADOW" AS (SELECT 1) SELECT passwd FROM pg_shadow',
        'WITH "auth.users" AS (SELECT 1) SELECT * FROM auth.users',
        "WITH users AS (SELECT 1) SELECT * FROM auth.users",
        'WITH pg_shadow AS (SELECT 1) SELECT * FROM "pg_shadow"',
        'CREATE TABLE analysis.c AS WITH "auth.users" AS (SELECT 1) SELECT * FROM auth.users',
        'INSERT INTO analysis.c WITH "PG_SHADOW" AS (SELECT 1) SELECT * FROM pg_shadow',
        "SELECT most_common_vals FROM pg_stats WHERE schemaname = 'auth'",
        "SELECT * FROM information_schema.user_mapping_options",
        "SELECT subconninfo FROM pg_subscription",
        "SELECT * FROM pg_db_role_setting",
        "SELECT current_setting('app.jwt_secret')",
        "SHOW app.jwt_secret",
        "SHOW ALL",
        'SHOW "app.jwt_secret"',
        "SHOW primary_conninfo",
        'INSERT INTO "ANALYSIS".x VALUES (1)',
        "UPDATE analysis.public.orders SET a = 1 WHERE id = 1",
        "UPDATE analysis.top SET a = 1 WHERE b IN (true, false)",
        "UPDATE analysis.top SET a = 1 WHERE id BETWEEN -999999999 AND 999999999",
        "UPDATE analysis.top SET a = 1 WHERE paid = false",
        "INSERT INTO analysis.top VALUES (nextval('public.order_id_seq'))",
        "CREATE TABLE analysis.x (a int REFERENCES public.orders ON DELETE CASCADE)",
        "CREATE TABLE analysis.x (a int, FOREIGN KEY (a) REFERENCES public.orders (id))",
    ],
)
def test_sql_that_hides_what_it_reads_or_changes(query: str) -> None:
    with Shield("sql-analyst") as shield, shield.session("c") as session:
        assert session.decide("execute_sql", {"sql": "WITH u AS (SELECT 1 AS a) SELECT a FROM u"}).answer == "allow"
        assert session.decide("execute_sql", {"sql": query}).answer != "allow"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("explain_query", {"sql": "select 1", "query": "delete from orders", "analyze": True}),
        ("explain_query", {"sql": "select 1", "hypothetical_indexes": [{"table": "x'); delete from orders"}]}),
        ("explain_query", {"sql": "select 1", "more": True}),
        ("execute_sql", {"sql": "select 1", "parameters": ["x"]}),
        ("analyze_query_indexes", {"queries": ["delete from orders"]}),
        ("analyze_query_indexes", {"queries": ["select 1", "select * from auth.users"]}),
    ],
)
def test_sql_in_other_arguments_is_not_passed_over(tool: str, arguments: dict[str, Any]) -> None:
    with Shield("sql-analyst") as shield, shield.session("c") as session:
        assert session.decide(tool, arguments).answer != "allow"


@pytest.mark.parametrize(
    "command",
    ["ls src\u2026", "ls src...", "ls a [truncated]", "cat a [... 1200 characters omitted]", "ls \ufffd", "ls ... "],
)
def test_a_command_that_a_log_has_cut_short_may_have_done_anything(command: str) -> None:
    with Shield(made(PACK)) as shield, shield.session("c") as session:
        assert session.decide("bash", {"command": "ls ./..."}).answer == "allow"
        session.result("a")
        assert session.decide("bash", {"command": command}).answer == "ask"
        assert [each.determined for each in verdicts(shield.pack, session.trajectory()).calls][-1] == "inconclusive"
