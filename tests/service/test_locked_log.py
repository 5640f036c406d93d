"""While the log's file is locked, the service says so: nobody waits in vain, and no call is allowed meanwhile."""

import http.client
import json
import re
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.service import desk
from tests.command import environment
from tests.ready import begin
from tests.service.malformed import LOOK
from tests.service.test_workers import shop


def ask(port: int, method: str, path: str, content: Any = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = json.dumps(content) if content is not None else None
    connection.request(method, path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def eventually(status: int, answer: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
    """The answer of that status, or what stands in its place after a hundred seconds."""
    until = time.monotonic() + 100
    while (found := answer())[0] != status and time.monotonic() < until:
        time.sleep(0.05)
    return found


@pytest.mark.process
def test_health_and_metrics_are_answered_while_another_process_keeps_the_file_locked(tmp_path: Path) -> None:
    log = tmp_path / "decisions.db"
    command = [*begin("bylaw"), "serve", "--pack", shop(tmp_path), "--store", str(log), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None
            port = int(found[1])
            assert ask(port, "GET", "/health")[0] == 200
            first: list[Any] = []
            other = sqlite3.connect(log, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            waiting = threading.Thread(
                target=lambda: first.append(ask(port, "POST", "/v1/decide", {"conversation": "c", **LOOK}))
            )
            waiting.start()
            status, body = eventually(503, lambda: ask(port, "GET", "/health"))
            assert (status, json.loads(body)["status"]) == (503, "the log does not respond")
            assert f"`{log}` has not finished writing" in json.loads(body)["error"]
            status, page = ask(port, "GET", "/metrics")
            waits = re.search(rb"^bylaw_log_waits_seconds (\S+)$", page, re.MULTILINE)
            assert waits is not None
            assert (status, float(waits[1]) >= desk.PATIENCE) == (200, True)
            status, body = ask(port, "POST", "/v1/decide", {"conversation": "d", **LOOK})
            assert (status, json.loads(body)["error"]["code"]) == (503, "BY701")
            assert not first
            other.execute("ROLLBACK")
            other.close()
            waiting.join()
            status, body = first[0]
            assert (status, json.loads(body)["decisions"][0]["id"]) == (200, "c/1")
            # A tenth of a second may pass until the loop has said that it goes on.
            assert eventually(200, lambda: ask(port, "GET", "/health"))[0] == 200
            assert json.loads(ask(port, "POST", "/v1/decide", {"conversation": "d", **LOOK})[1])["decisions"]
        finally:
            process.terminate()
            process.wait(120)
    # Who stops a service breaks nothing off.
    assert process.returncode == 0
