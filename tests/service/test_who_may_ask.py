"""Who may ask the service: keys and their tenants, and no web page where there are none."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.errors import BylawError, UsageError
from bylaw.record import Log
from bylaw.service import keys as keys_of_service
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, KeyFile, hash_of, key_line, new_key, person_named, read_keys
from bylaw.service.run import check_address
from tests.command import bylaw
from tests.service.asgi import ask, get, post
from tests.service.malformed import LOOK, REFUND
from tests.shield.scenes import shop


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({b"origin": b"http://localhost:3000", b"host": b"localhost:8300"}, 200),
        ({b"content-type": b"application/json; charset=utf-8", b"host": b"[::1]:8300"}, 200),
        ({b"origin": b"https://evil.example"}, 403),
        ({b"origin": b"null"}, 403),
        ({b"origin": b"http://127.0.0.1.evil.example"}, 403),
        ({b"host": b"evil.example:8300"}, 403),
        ({b"content-type": b"text/plain"}, 415),
        ({b"content-type": b"application/x-www-form-urlencoded"}, 415),
        ({b"content-type": b"text/plain; application/json"}, 415),
    ],
)
def test_without_keys_no_web_page_decides_or_approves(app: Any, headers: dict[bytes, bytes], status: int) -> None:
    sent = {b"host": b"127.0.0.1:8300", b"content-type": b"application/json"} | headers
    for path, body in (
        ("/v1/events", {"conversation": "c", "events": []}),
        ("/v1/decide", {"conversation": "c", **LOOK}),
    ):
        answer = asyncio.run(ask(app, "POST", path, json.dumps(body).encode(), only=tuple(sent.items())))
        assert answer.status == status
    wanted = 200 if status != 403 else 403
    assert asyncio.run(ask(app, "GET", "/v1/approvals", only=tuple(sent.items()))).status == wanted


def test_a_key_counts_while_its_line_is_in_the_file(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keys_of_service, "LOOK", 0.0)
    first, second, path = new_key(), new_key(), tmp_path / "keys"
    path.write_text(key_line("ann", first) + "\n")
    app = Service(Desk(shop(), log), KeyFile(path))

    def statuses() -> list[int]:
        return [post(app, "/v1/events", {"conversation": "c", "events": []}, key=key).status for key in (first, second)]

    assert statuses() == [200, 401]
    path.write_text(key_line("ann", first) + "\n" + key_line("ann", second) + "\n")
    assert statuses() == [200, 200]
    path.write_text(key_line("ann", second) + "\n")
    assert statuses() == [401, 200]
    # Half of a file, or none, says nothing of who may come in.
    path.write_text("ann 12")
    assert statuses() == [401, 200]
    path.unlink()
    assert statuses() == [401, 200]
    assert f"{path}:1" in capsys.readouterr().err
    path.write_text(key_line("ann", first) + "\n")
    assert statuses() == [200, 401]


def test_a_person_without_a_key_is_known_by_name_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("acme - approve ann\nacme - view vic\nother - view vic\n")
    keys = read_keys(path)
    assert person_named("ann", keys) == Key("acme", "approve", "ann")
    assert [person_named(name, keys) for name in ("vic", "eve", "")] == [None, None, None]
    for line in ("acme - approve", "acme - decide ann", "acme -"):
        path.write_text(line)
        with pytest.raises(UsageError, match="not a key"):
            read_keys(path)


def test_a_key_never_sees_another_tenants_data(log: Log, tmp_path: Path) -> None:
    ann, bob = new_key(), new_key()
    people = {name: new_key() for name in ("ann", "bob")}
    lines = [key_line("ann", ann), key_line("bob", bob), *(key_line(*each, "approve") for each in people.items())]
    (tmp_path / "keys").write_text("# who\n" + "\n".join(lines) + "\n")
    keys = read_keys(tmp_path / "keys")
    assert ann not in (tmp_path / "keys").read_text()
    app = Service(Desk(shop(), log), keys)
    seen = {"conversation": "c", **LOOK}
    for key in ("", "nonsense", hash_of(ann), ann + "x"):
        refused = post(app, "/v1/decide", seen, key=key)
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert get(app, "/v1/approvals", key=key).status == 401
    assert post(app, "/v1/decide", seen, key=ann).status == 200
    post(app, "/v1/events", {"conversation": "c", "events": [{"result": {"order_id": "7"}, "call": "a"}]}, key=ann)
    waits = post(app, "/v1/decide", {"conversation": "c", **REFUND}, key=ann).json["decisions"][0]["approval"]
    # The same name is another conversation for another tenant: nothing that Ann's agent saw is seen there.
    theirs = post(app, "/v1/decide", {"conversation": "c", **REFUND}, key=bob).json["decisions"][0]
    assert (theirs["answer"], theirs["id"]) == ("look_up", "c/1")
    assert get(app, "/v1/approvals", key=bob).json == {"approvals": [], "unsupported": {}}
    assert post(app, "/v1/approvals", {"id": waits, "answer": "approve", "by": "bob"}, key=people["bob"]).status == 422
    assert [each["id"] for each in get(app, "/v1/approvals?status=waiting", key=ann).json["approvals"]] == [waits]
    # An agent's key does not approve, and a person's does not decide.
    for word in ("approve", "reject"):
        refused = post(app, "/v1/approvals", {"id": waits, "answer": word, "by": "ann"}, key=ann)
        assert (refused.status, "required role `approve`" in str(refused.json)) == (403, True)
    assert not post(app, "/v1/decide", {"conversation": "c", **REFUND}, key=ann).json["decisions"][0]["allowed"]
    for path in ("/v1/decide", "/v1/events", "/v1/confirm", "/v1/decide/batch", "/access/v1/evaluation"):
        assert post(app, path, {"conversation": "c", **REFUND}, key=people["ann"]).status == 403
    assert [each["id"] for each in get(app, "/v1/approvals", key=people["ann"]).json["approvals"]] == [waits]
    yes = {"id": waits, "answer": "approve", "by": "ann"}
    assert post(app, "/v1/approvals", yes, key=people["ann"]).status == 200
    assert post(app, "/v1/decide", {"conversation": "c", **REFUND}, key=ann).json["decisions"][0]["allowed"]
    assert {entry.tenant for tenant in ("ann", "bob") for entry in log.journal.store.entries(tenant)} == {"ann", "bob"}


def test_elsewhere_than_at_loopback_only_with_keys() -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        check_address(host, {})
    check_address("0.0.0.0", {hash_of("x"): "ann"})
    for host in ("0.0.0.0", "::", "example.org", "10.0.0.1", ""):
        with pytest.raises(BylawError, match="without keys"):
            check_address(host, {})


def test_the_command_makes_keys_and_refuses_to_listen_openly(tmp_path: Path) -> None:
    made = bylaw(tmp_path, "serve", "--new-key", "ann").stdout.split()
    key, line = made[6], " ".join(made[-2:])
    assert line == key_line("ann", key)
    ran = bylaw(tmp_path, "serve", "--pack", "clinic", "--host", "0.0.0.0")
    assert (ran.returncode, "without keys" in ran.stderr) == (2, True)
    assert not (tmp_path / "decisions.db").exists()
    (tmp_path / "keys").write_text("ann nonsense\n")
    assert "keys:1: this line is not a key" in bylaw(tmp_path, "serve", "--pack", "clinic", "--keys", "keys").stderr
