"""Stops on a service's pages: who may see, make and lift them, and what becomes of calls meanwhile."""

import time
from pathlib import Path
from typing import Any

import pytest

from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.keys import Key, hash_of
from tests.console.test_inbox import HOSTILE, Person, service
from tests.service.asgi import post
from tests.service.malformed import LOOK, REFUND

FORM = {"what": "tool", "name": "refund", "span": "2h", "answer": "deny", "reason": "wrong amounts since noon"}
KEYS = {
    hash_of("agent"): Key("acme"),
    hash_of("ann"): Key("acme", "approve", "ann"),
    hash_of("rob"): Key("acme", "review", "rob"),
    hash_of("vic"): Key("acme", "view", "vic"),
    hash_of("bob"): Key("other", "approve", "bob"),
}


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with Log(str(tmp_path / "decisions.db")) as opened:
        yield opened


def refund(app: Any) -> dict[str, Any]:
    shown = [{"result": {"order_id": "7", "returned": True}, "call": "a"}]
    post(app, "/v1/decide", {"conversation": "c", **LOOK, "events": [{"user": "Refund my order"}]}, key="agent")
    answer = post(app, "/v1/decide", {"conversation": "c", **REFUND, "events": shown}, key="agent")
    return answer.json["decisions"][0]


def test_what_is_stopped_on_the_page_is_refused_until_it_is_lifted(log: Log) -> None:
    app = service(log, KEYS)
    ann = Person(app).sign_in("ann")
    assert "Nothing is stopped" in ann.get("/stops")
    assert "is stopped until" in ann.send("/stops/make", **FORM)
    (found,) = log.every_stop("acme")
    assert (found.stop.by, found.stop.what, found.stop.name) == ("ann", "tool", "refund")
    assert 7100 < found.stop.until - time.time() < 7300
    refused = refund(app)
    assert (refused["answer"], refused["allowed"]) == ("deny", False)
    assert "wrong amounts since noon" in refused["feedback"]
    assert "enter a reason" in ann.send("/stops/lift", status=422, id=found.stop.id, reason=" ")
    assert "no longer stopped" in ann.send("/stops/lift", id=found.stop.id, reason="mended")
    (lifted,) = log.every_stop("acme")
    assert lifted.lift is not None
    assert (lifted.lift.by, lifted.lift.reason) == ("ann", "mended")
    assert "already lifted" in ann.send("/stops/lift", status=422, id=found.stop.id, reason="again")
    assert verify(log.journal.store, "acme").faults == ()


def test_only_an_approver_of_the_tenant_stops_and_lifts(log: Log) -> None:
    app = service(log, KEYS)
    ann, bob = Person(app).sign_in("ann"), Person(app).sign_in("bob")
    ann.send("/stops/make", **FORM)
    (found,) = log.every_stop("acme")
    for name in ("rob", "vic"):
        person = Person(app).sign_in(name)
        page = person.get("/stops")
        assert "wrong amounts since noon" in page
        assert '<form method="post" action="/stops' not in page
        assert "role `approve`" in person.send("/stops/make", status=403, **FORM)
        assert "role `approve`" in person.send("/stops/lift", status=403, id=found.stop.id, reason="r")
    assert "Nothing is stopped" in bob.get("/stops")
    assert "no stop" in bob.send("/stops/lift", status=422, id=found.stop.id, reason="r")
    assert Person(app).client.get("/stops", follow_redirects=False).headers["location"] == "/sign-in?next=%2Fstops"
    assert [each.lift for each in log.every_stop("acme")] == [None]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": "refnd"}, "the pack has no tool `refnd`"),
        ({"what": "policy", "name": "no-such"}, "the pack has no policy"),
        ({"what": "agent", "name": ""}, "needs a name"),
        ({"what": "all"}, "all writes cannot have a name"),
        ({"what": "world"}, "choose what to stop"),
        ({"span": "soon"}, "choose a duration"),
        ({"span": "5"}, "choose a duration"),
        ({"span": "9999d"}, "within a year"),
        ({"reason": "  "}, "needs a reason"),
    ],
)
def test_what_would_stop_nothing_is_refused_with_its_reason(log: Log, change: dict[str, str], why: str) -> None:
    ann = Person(service(log, KEYS)).sign_in("ann")
    assert why in ann.send("/stops/make", status=422, **FORM | change)
    assert log.every_stop("acme") == []


def test_another_site_stops_nothing(log: Log) -> None:
    ann = Person(service(log, KEYS)).sign_in("ann")
    form = {**FORM, "token": ann.token}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert ann.client.post("/stops/make", data=form, headers=headers).status_code == 403
    assert ann.client.post("/stops/make", data=form | {"token": "0"}).status_code == 403
    assert log.every_stop("acme") == []


def test_hostile_words_of_a_stop_are_shown_inert(log: Log) -> None:
    app = service(log, {})
    page = Person(app).send(
        "/stops/make", **FORM | {"reason": HOSTILE, "what": "agent", "name": HOSTILE, "by": HOSTILE}
    )
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
