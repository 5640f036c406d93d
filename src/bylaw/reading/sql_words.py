"""The effects of SQL words, from `sql_words.toml`."""

import tomllib
from pathlib import Path

_LISTS = {
    name: frozenset(text.split())
    for name, text in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}

FUNCTIONS = _LISTS["functions"]
OPERATORS = _LISTS["operators"]
BEFORE_BRACKETS = _LISTS["before_brackets"]
OF_WRITES = _LISTS["of_writes"]
SESSION_STATEMENTS = _LISTS["session_statements"]
TRANSACTION_WORDS = _LISTS["transaction_words"]
WRITE_STATEMENTS = _LISTS["write_statements"]
PARSED_WRITES = _LISTS["parsed_writes"]
PRAGMAS = _LISTS["pragmas"]
PRAGMAS_OF_A_TABLE = _LISTS["pragmas_of_a_table"]
SETTINGS = _LISTS["settings"]
SHOWN = _LISTS["shown"]
BEFORE_SHOWN = _LISTS["before_shown"]
EXPLAIN_OPTIONS = _LISTS["explain_options"]
NODES = _LISTS["nodes"]
TABLE_HINTS = _LISTS["table_hints"]
FUNCTIONS_OF_WRITES = _LISTS["functions_of_writes"]
BEFORE_QUERIES = _LISTS["before_queries"]
TYPES = (BEFORE_BRACKETS - BEFORE_QUERIES) | _LISTS["functions_named_as_types"]
POSTGRES_TYPES = _LISTS["postgres_types"]
BEFORE_STRINGS = BEFORE_BRACKETS | BEFORE_QUERIES | POSTGRES_TYPES | _LISTS["before_strings"]
REWRITTEN = _LISTS["rewritten"] | TYPES
SCHEMA_TABLES = _LISTS["schema_tables"]
