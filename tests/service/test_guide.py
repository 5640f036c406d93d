"""The guide's requests, sent with curl to a real service, get the answers that it tells of."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ready import begin

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "shield-http.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_guides_requests_get_the_answers_it_tells_of(tmp_path: Path) -> None:
    blocks = re.findall(r"<!-- over http.*?```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    typed = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    serve = [*begin("bylaw"), "serve", "--pack", "clinic", "--port", "0"]
    with subprocess.Popen(serve, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            address = re.search(r"http://[\d.]+:\d+", service.stdout.readline())
            assert address is not None
            answers = [
                json.loads(
                    subprocess.run(
                        shlex.split(command.replace("http://127.0.0.1:8300", address[0])),
                        capture_output=True,
                        check=True,
                        timeout=120,
                    ).stdout
                )
                for command in typed
            ]
        finally:
            service.terminate()
    assert answers[0] == {"conversation": "chat-17", "taken": 1, "position": 1}
    said = [decision for answer in answers for decision in answer.get("decisions", [])]
    assert [each["answer"] for each in said] == ["look_up", "allow", "allow"]
    assert said[0]["look_ups"][0]["arguments"] == {"invoice_id": "I0255"}
    assert "get_invoice(invoice_id=I0255)" in said[0]["feedback"]
