"""A log in every store: SQLite, and PostgreSQL on the server that `BYLAW_POSTGRES` names, or on one of our own, which
`lab/benchmarks/postgres_server.py` starts."""

import importlib.util
import os
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

KEY = b"a signing key that is kept outside the database"
"""What tests sign removals with."""
BENCHMARKS = Path(__file__).parent.parent / "lab" / "benchmarks"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a real server, started for these tests and reached over a socket of its own."""
    pytest.importorskip("psycopg", reason="needs the extra `postgres`")
    if given := os.environ.get("BYLAW_POSTGRES"):
        yield given
        return
    if not server_module().is_here():
        pytest.skip("no PostgreSQL server is installed")
    with server_module().server(is_synced=False) as address:
        yield address


@cache
def server_module() -> ModuleType:
    """The module that measurements start their server by."""
    spec = importlib.util.spec_from_file_location("postgres_server", BENCHMARKS / "postgres_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The name of a log that nobody has written to."""
    if request.param == "sqlite":
        yield str(tmp_path / "log.db")
        return
    server: str = request.getfixturevalue("postgres")
    import psycopg

    name = f"bylaw_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    head, _, options = server.partition("?")
    yield head.rpartition("/")[0] + f"/{name}" + (f"?{options}" if options else "")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
