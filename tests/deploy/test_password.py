"""A database's password in a file: what libpq does not read, and does not say, is told."""

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bylaw.errors import UsageError
from bylaw.record import Log

pytest.importorskip("psycopg")


@pytest.fixture
def asking() -> Iterator[int]:
    """The port of a server that asks everybody for a password."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    while True:
                        size, code = struct.unpack(">II", connection.recv(8, socket.MSG_WAITALL))
                        connection.recv(size - 8, socket.MSG_WAITALL)
                        if code == 3 << 16:
                            break
                        connection.sendall(b"N")  # neither TLS nor GSS
                    connection.sendall(b"R" + struct.pack(">II", 8, 3))
                    connection.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("line", "mode", "said"),
    [
        ("*:*:*:bylaw:secret", 0o644, "with mode 600"),
        ("elsewhere:*:*:bylaw:secret", 0o600, "has no line for this database and user"),
        (None, 0, "cannot be found"),
    ],
)
def test_why_a_file_of_passwords_is_not_used(
    asking: int, tmp_path: Path, line: str | None, mode: int, said: str
) -> None:
    file = tmp_path / "pgpass"
    if line is not None:
        file.write_text(line + "\n")
        file.chmod(mode)
    with pytest.raises(UsageError) as raised:
        Log(f"postgresql://bylaw@127.0.0.1:{asking}/bylaw?passfile={file}")
    assert said in str(raised.value)
    assert str(file) in str(raised.value)
