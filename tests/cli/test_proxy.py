"""What `bylaw proxy` says where it cannot begin; what it does is in tests/integrations."""

from pathlib import Path

import pytest

from tests.command import bylaw


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "pass exactly one server"),
        (("--url", "http://127.0.0.1:1/mcp", "--", "python", "server.py"), "pass exactly one server"),
        (("--listen", "0.0.0.0:80", "--", "python", "server.py"), "it cannot listen on `0.0.0.0`"),
        (("--listen", "shop.example:80", "--", "python", "server.py"), "it cannot listen on `shop.example`"),
        (("--listen", "127.0.0.1", "--", "python", "server.py"), "is not HOST:PORT"),
        (("--context", "caller", "--", "python", "server.py"), "is not NAME=VALUE"),
        (("--url", "127.0.0.1:8000/mcp"), "`--url 127.0.0.1:8000/mcp` is not an HTTP address"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ran = bylaw(tmp_path, "proxy", "--pack", "clinic", *options)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
