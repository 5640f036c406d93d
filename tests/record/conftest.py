"""A log in every store that is here: SQLite always, PostgreSQL where `BYLAW_POSTGRES` names a server."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

STORES = ["sqlite", *(["postgres"] if os.environ.get("BYLAW_POSTGRES") else [])]


@pytest.fixture(params=STORES)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "log.db")
        return
    import psycopg

    server = os.environ["BYLAW_POSTGRES"]
    name = f"bylaw_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
