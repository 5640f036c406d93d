"""Decisions as they happen, for who may see them."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from bylaw.record import Log
from bylaw.service.keys import Key, hash_of
from tests.console.test_inbox import HOSTILE, Person, service, waiting


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with Log(str(tmp_path / "decisions.db")) as opened:
        yield opened


def test_the_last_decisions_are_listed_with_answer_posture_and_time(log: Log) -> None:
    app = service(log, {})
    person = Person(app)
    assert "No decisions yet" in person.get("/live")
    waiting(app, "chat-1")
    page = person.get("/live")
    assert page.index("refund") < page.index("chat-1")
    assert re.search(r'<b class="answer ask">ask</b>', page)
    assert re.search(r"\d\.\d ms", page)
    assert "enforce" in page
    assert "No recent decision matches" in person.get("/live?answer=deny")
    assert "chat-1" in person.get("/live?answer=ask&q=CHAT-1")
    assert "No recent decision matches" in person.get("/live?q=other")


def test_a_decision_opens_its_conversation(log: Log) -> None:
    app = service(log, {})
    waiting(app, "chat/1 ?<b>")
    person = Person(app)
    (address,) = set(re.findall(r'href="(/live/c/[^"]+)"', person.get("/live")))
    page = person.get(address)
    assert "Refund my order" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert 'class="answer ask"' in page
    person.get("/live/c/nobody", 404)


@pytest.mark.parametrize("name", ["..", ".", "../../etc/passwd", "/etc", "a/./b"])
def test_a_conversation_named_like_a_path_can_be_opened(name: str, log: Log) -> None:
    app = service(log, {})
    waiting(app, name)
    person = Person(app)
    (address,) = set(re.findall(r'href="(/live/c/[^"]+)"', person.get("/live")))
    # As browsers read it: an address is made short before it is sent.
    assert urljoin("http://127.0.0.1/live", address).endswith(address)
    assert "refund" in person.get(address)


def test_events_say_when_something_was_decided(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bylaw.console.service_log.STREAM", 0.2)
    monkeypatch.setattr("bylaw.console.service_log.EVERY", 0.05)
    app = service(log, {})
    person = Person(app)
    assert "changed" not in person.get("/live/events?known=0")
    waiting(app)
    told = person.get("/live/events?known=0")
    (number,) = re.findall(r"event: changed\nid: \d+\ndata: (\d+)", told)
    assert "changed" not in person.get(f"/live/events?known={number}")


def test_another_tenants_decisions_are_not_seen(log: Log) -> None:
    keys = {
        hash_of("agent"): Key("acme"),
        hash_of("ann"): Key("acme", "approve", "ann"),
        hash_of("vic"): Key("other", "view", "vic"),
    }
    app = service(log, keys)
    waiting(app, "chat-1", key="agent")
    assert Person(app).client.get("/live", follow_redirects=False).status_code == 303
    assert Person(app).client.get("/live/events").status_code == 401
    assert "chat-1" in Person(app).sign_in("ann").get("/live")
    other = Person(app).sign_in("vic")
    assert "chat-1" not in other.get("/live")
    other.get("/live/c/chat-1", 404)
    assert HOSTILE not in other.get("/live")
