"""An audit that is written again, half written or taken away while its pages are open."""

import json
import re
import shutil
from pathlib import Path

import pytest

from bylaw.console.index import Wanted, open_index
from bylaw.console.pages import view_app
from bylaw.console.view import View
from tests.console.conftest import Reader


@pytest.fixture
def reader(out: Path, pack: Path) -> Reader:
    return Reader(view_app(View(out, pack=str(pack))))


def test_pages_show_the_audit_that_was_written_last(reader: Reader, out: Path) -> None:
    first, second = open_index(out).findings(Wanted(), limit=2)
    token = reader.token
    lines = (out / "calls.jsonl").read_text().splitlines(keepends=True)
    (out / "calls.jsonl").write_text("".join(line for line in lines if first.id not in line))
    reader.get(f"/finding/{first.id}", 404)
    assert second.id in reader.get(f"/finding/{second.id}")
    form = {"token": token, "by": "Mara", "reason": "agreed", "expires": "2999-01-01"}
    assert reader.client.post(f"/finding/{second.id}/waive", data=form).status_code == 200


def test_a_half_written_audit_is_waited_for_and_no_form_is_taken(reader: Reader, out: Path) -> None:
    token = reader.token
    summary = (out / "summary.json").read_bytes()
    (out / "summary.json").unlink()
    answer = reader.client.get("/findings")
    assert (answer.status_code, answer.headers["refresh"]) == (503, "2")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for file in re.findall(r'(?:href|src)="(/static/[^"]+)"', answer.text):
        assert reader.client.get(file).status_code == 200, file
    assert reader.client.get("/", headers={"host": "evil.example"}).status_code == 403
    assert "Nothing was written" in reader.client.post("/finding/x/waive", data={"token": token}).text
    (out / "summary.json").write_bytes(summary)
    assert "Findings" in reader.get("/findings")


def test_a_folder_that_is_gone_is_said_to_be(reader: Reader, out: Path) -> None:
    shutil.move(out, out.with_name("elsewhere"))
    assert "has been moved" in reader.get("/", 503)
    shutil.move(out.with_name("elsewhere"), out)
    assert json.loads((out / "summary.json").read_bytes())["date"] in reader.get("/")
