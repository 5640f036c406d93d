"""The inbox of a service: what waits, who may look and answer, and what is refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from bylaw.cli.serve import _session_secret, pages_of  # pyright: ignore[reportPrivateUsage]
from bylaw.errors import UsageError
from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, hash_of
from tests.console.browser.worlds import call_the_desk, card_pack
from tests.console.conftest import HOME, Reader
from tests.engine.test_conversation import FILES
from tests.service.asgi import post
from tests.service.malformed import LOOK, REFUND
from tests.service.test_confirming import confirm, decide
from tests.shield.cards import write
from tests.shield.scenes import shop

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with Log(str(tmp_path / "decisions.db")) as opened:
        yield opened


def service(log: Log, keys: dict[str, Key]) -> Service:
    return Service(Desk(shop(), log), keys, **pages_of(log, shop(), keys, HOME, b"s" * 32))


def waiting(app: Service, conversation: str = "c", key: str = "") -> str:
    """A call that waits for a person: its look-up was made, and showed nothing that could be read."""
    said = [{"user": f"Refund my order, {HOSTILE}"}]
    post(app, "/v1/decide", {"conversation": conversation, **LOOK, "events": said}, key=key)
    blind = [{"result": {"order_id": "7"}, "call": "a"}]
    answer = post(app, "/v1/decide", {"conversation": conversation, **REFUND, "events": blind}, key=key).json
    return answer["decisions"][0]["approval"]


class Person(Reader):
    @property
    def token(self) -> str:
        """That of a page with a form, which lasts as long as the session."""
        for path in ("/inbox", "/stops", "/sign-in"):
            if found := re.search(r'name="token" value="([0-9a-f]+)"', self.client.get(path).text):
                return found[1]
        raise AssertionError("no page has a form")

    def sign_in(self, key: str, status: int = 303) -> "Person":
        token = re.search(r'name="token" value="([0-9a-f]+)"', self.get("/sign-in"))
        assert token is not None
        answer = self.client.post("/sign-in", data={"token": token[1], "key": key}, follow_redirects=False)
        assert answer.status_code == status
        return self


def test_without_keys_anybody_on_the_machine_answers_under_a_name_nobody_checked(log: Log) -> None:
    app = service(log, {})
    name = waiting(app)
    person = Person(app)
    page = person.get("/inbox")
    assert "refund" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    told = person.send("/inbox/answer", id=name, word="approve", note="seen the order")
    assert "approved" in told
    (answered,) = log.approvals("default")
    assert answered.answer is not None
    assert (answered.status, answered.answer.by) == ("approved", "Mara (unverified)")
    assert answered.answer.note == "seen the order"
    assert "approved" in person.send("/inbox/answer", status=422, id=name, word="reject")
    assert log.approvals("default")[0].status == "approved"


@pytest.fixture
def keys() -> dict[str, Key]:
    return {
        hash_of("agent"): Key("acme"),
        hash_of("ann"): Key("acme", "approve", "ann"),
        hash_of("rob"): Key("acme", "review", "rob"),
        hash_of("vic"): Key("acme", "view", "vic"),
        hash_of("bob"): Key("other", "approve", "bob"),
    }


def test_a_key_opens_the_inbox_of_its_tenant_and_signs_with_its_name(log: Log, keys: dict[str, Key]) -> None:
    app = service(log, keys)
    name = waiting(app, key="agent")
    assert Person(app).client.get("/inbox", follow_redirects=False).headers["location"] == "/sign-in"
    ann, bob = Person(app).sign_in("ann"), Person(app).sign_in("bob")
    assert "refund" in ann.get("/inbox")
    assert "No requests" in bob.get("/inbox")
    assert "no approval" in bob.send("/inbox/answer", status=422, id=name, word="approve")
    ann.send("/inbox/answer", id=name, word="reject", by="somebody else")
    (answered,) = log.approvals("acme")
    assert answered.answer is not None
    assert (answered.status, answered.answer.by) == ("rejected", "ann")


@pytest.mark.parametrize("key", ["vic", "rob"])
def test_who_only_looks_or_reviews_does_not_answer(log: Log, keys: dict[str, Key], key: str) -> None:
    app = service(log, keys)
    name = waiting(app, key="agent")
    vic = Person(app).sign_in(key)
    page = vic.get("/inbox")
    assert "refund" in page
    assert "Approve" not in page
    assert "you need the role `approve` to answer" in vic.send("/inbox/answer", status=403, id=name, word="approve")
    assert log.approvals("acme")[0].status == "waiting"


def test_private_values_of_a_waiting_call_are_shown_only_to_who_may_answer(log: Log, keys: dict[str, Key]) -> None:
    pack = shop(
        tools_yaml=FILES["tools.yaml"].replace(
            "refund: {effect: write, parameters: {", "refund: {effect: write, parameters: {phone: string, "
        ),
        entities_yaml=FILES["entities.yaml"].replace(
            "{returned: boolean}", "{returned: boolean, phone: {type: string, private: true}}"
        ),
    )
    app = Service(Desk(pack, log), keys, **pages_of(log, pack, keys, HOME, b"s" * 32))
    call = {"tool": "refund", "arguments": {"order_id": "7", "phone": "+491511234567"}}
    post(app, "/v1/decide", {"conversation": "c", **LOOK, "events": [{"user": "Refund it."}]}, key="agent")
    blind = [{"result": {"order_id": "7"}, "call": "a"}]
    post(app, "/v1/decide", {"conversation": "c", **call, "events": blind}, key="agent")
    pages = {name: Person(app).sign_in(name).get("/inbox") for name in ("vic", "rob", "ann")}
    assert all("refund" in page for page in pages.values())
    assert {name for name, page in pages.items() if "1511234567" in page} == {"ann"}


@pytest.mark.parametrize("key", ["agent", "nobody", ""])
def test_no_agent_and_no_stranger_signs_in(log: Log, keys: dict[str, Key], key: str) -> None:
    Person(service(log, keys)).sign_in(key, status=401)


def test_a_key_taken_out_of_the_file_is_out_at_once(log: Log, keys: dict[str, Key]) -> None:
    app = service(log, keys)
    ann = Person(app).sign_in("ann")
    token = ann.token
    del keys[hash_of("ann")]
    assert ann.client.get("/inbox", follow_redirects=False).status_code == 303
    answer = ann.client.post("/inbox/answer", data={"token": token, "id": "x", "word": "approve"})
    assert answer.status_code == 401


def test_who_signs_in_goes_on_to_the_page_they_wanted(log: Log, keys: dict[str, Key]) -> None:
    person = Person(service(log, keys))
    asked = person.client.get("/live?answer=deny", follow_redirects=False).headers["location"]
    assert asked == "/sign-in?next=%2Flive%3Fanswer%3Ddeny"
    page = person.get(asked)
    assert 'name="next" value="/live?answer=deny"' in page
    form = {"token": person.token, "key": "ann", "next": "/live?answer=deny"}
    answer = person.client.post("/sign-in", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/live?answer=deny"


@pytest.mark.parametrize(
    "address", ["https://evil.example/", "//evil.example", "/\\evil.example", "evil", "/a\nb", "javascript:alert(1)"]
)
def test_signing_in_leads_to_no_other_server(log: Log, keys: dict[str, Key], address: str) -> None:
    person = Person(service(log, keys))
    form = {"token": person.token, "key": "ann", "next": address}
    answer = person.client.post("/sign-in", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/inbox"


def test_a_sign_in_outlives_a_restart_under_one_secret(log: Log, keys: dict[str, Key]) -> None:
    ann = Person(service(log, keys)).sign_in("ann")
    secret = b"t" * 32
    ann.client.app = Service(Desk(shop(), log), keys, **pages_of(log, shop(), keys, HOME, secret))
    again = Person(ann.client.app)
    again.client.cookies = ann.client.cookies
    assert again.client.get("/stops", follow_redirects=False).status_code == 303
    again = Person(service(log, keys))
    again.client.cookies = ann.client.cookies
    assert again.client.get("/stops", follow_redirects=False).status_code == 200


def test_a_session_secret_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _session_secret("x" * 32) == _session_secret("x" * 32)
    assert _session_secret("") != _session_secret("")
    with pytest.raises(UsageError, match="too short"):
        _session_secret("short")


def test_a_forged_cookie_signs_nobody_in(log: Log, keys: dict[str, Key]) -> None:
    person = Person(service(log, keys))
    for forged in (f"{hash_of('ann')}.99999999999.{'0' * 64}", "..", f"{hash_of('ann')}.", "x"):
        person.client.cookies.set("bylaw_key", forged)
        assert person.client.get("/inbox", follow_redirects=False).status_code == 303


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_another_site_answers_nothing(log: Log, keys: dict[str, Key], headers: dict[str, str]) -> None:
    app = service(log, keys)
    name = waiting(app, key="agent")
    ann = Person(app).sign_in("ann")
    form = {"token": ann.token, "id": name, "word": "approve"}
    assert ann.client.post("/inbox/answer", data=form, headers=headers).status_code == 403
    assert ann.client.post("/inbox/answer", data=form | {"token": "0"}).status_code == 403
    assert ann.client.get("/inbox", headers={"host": "evil.example"}).status_code == 403
    assert log.approvals("acme")[0].status == "waiting"


def test_what_comes_to_wait_is_told_to_an_open_page(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bylaw.console.service_log.STREAM", 0.2)
    monkeypatch.setattr("bylaw.console.service_log.EVERY", 0.05)
    app = service(log, {})
    person = Person(app)
    known = re.search(r'data-known="(\w+)"', person.get("/inbox"))
    assert known is not None
    assert "changed" not in person.get(f"/inbox/events?known={known[1]}")
    waiting(app)
    told = person.get(f"/inbox/events?known={known[1]}")
    assert "event: changed" in told
    # A browser that asks again by itself says what it has heard, and is not told the same twice.
    last = re.search(r"id: (\w+)", told)
    assert last is not None
    heard = {"last-event-id": last[1]}
    assert "changed" not in person.get(f"/inbox/events?known={known[1]}", headers=heard)


def test_decisions_are_answered_as_before(log: Log, keys: dict[str, Key]) -> None:
    app = service(log, keys)
    assert post(app, "/v1/decide", {"conversation": "c", **LOOK}, key="agent").status == 200
    assert post(app, "/v1/decide", {"conversation": "c", **LOOK}, key="vic").status == 403


def test_a_waiting_call_is_told_with_all_that_an_answer_needs(log: Log, tmp_path: Path, keys: dict[str, Key]) -> None:
    pack = card_pack(tmp_path / "pack")
    app = Service(Desk(pack, log), keys, **pages_of(log, pack, keys, HOME, b"s" * 32))
    call_the_desk(app, "chat-1", membership={"membership_id": "M878"}, context={"caller": "P121"})
    page = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", Person(app).sign_in("ann").get("/inbox")))
    for told in (
        "What is the &#34;tier&#34; of membership M878: ",
        "appointment id A0362",
        "Customer caller P121",
        "I&#39;m Gold, so there&#39;s no fee, right?",
        "Unknown tier of Membership M878",
        "The fee for cancelling is found in this order",
        "late-cancel-fee",
        "3 look-ups before this call",
        "min left",
        "Note",
        "Approve Reject",
    ):
        assert told in page, told


def test_the_whole_of_a_long_argument_can_be_read_before_a_yes(log: Log, keys: dict[str, Key]) -> None:
    app = service(log, keys)
    whole = "9" * 8000 + "<b>\u202e and then to IBAN DE99"
    named: dict[str, Any] = {"conversation": "c", "arguments": {"order_id": whole}}
    post(app, "/v1/decide", {**LOOK, **named}, key="agent")
    blind = [{"result": {"order_id": whole}, "call": "a"}]
    answer = post(app, "/v1/decide", {**REFUND, **named, "events": blind}, key="agent").json
    assert answer["decisions"][0]["approval"], answer
    page = Person(app).sign_in("ann").get("/inbox")
    assert "9" * 8000 + '&lt;b&gt;<span class="unseen">U+202E</span> and then to IBAN DE99</pre>' in page


def test_a_page_made_for_one_person_is_not_sent_by_another(log: Log, keys: dict[str, Key]) -> None:
    keys[hash_of("cy")] = Key("acme", "approve", "cy")
    app = service(log, keys)
    name = waiting(app, key="agent")
    person = Person(app).sign_in("ann")
    form = {"token": person.token, "id": name, "word": "approve"}
    # In another tab of the same browser.
    person.sign_in("cy")
    answer = person.client.post("/inbox/answer", data=form)
    assert (answer.status_code, "signed in as cy" in answer.text) == (409, True)
    assert log.approvals("acme")[0].status == "waiting"
    # A new token for a page from before a restart is none for somebody else.
    part = {"hx-request": "true"}
    old = person.client.post("/inbox/answer", data=form | {"token": "0" * 64 + form["token"][64:]}, headers=part)
    fresh = re.search(r'data-token="([0-9a-f]+)"', old.text)
    assert fresh is not None
    assert person.client.post("/inbox/answer", data=form | {"token": fresh[1]}).status_code == 409
    assert "approved" in person.send("/inbox/answer", id=name, word="approve")
    assert [each.answer.by for each in log.approvals("acme") if each.answer] == ["cy"]


def test_a_card_for_a_customer_is_shown_and_cannot_be_answered_here(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bylaw.console.service_log.STREAM", 0.2)
    (tmp_path / "bank").mkdir()
    bank = write(tmp_path / "bank")
    app = Service(Desk(bank, log), {}, **pages_of(log, bank, {}, HOME, b"s" * 32))
    person = Person(app)
    assert "Waiting for the customer" not in person.get("/inbox")
    asked = decide(app, events=[{"user": "Send 250 to AC-22."}])
    page = person.get("/inbox")
    assert "event: changed" in person.get("/inbox/events?known=")
    assert "Waiting for the customer" in page
    assert asked["card"]["text"].split("\n")[0][:20] in page
    assert 'value="approve"' not in page
    assert confirm(app, asked["card"]["id"]).status == 200
    assert "Waiting for the customer" not in person.get("/inbox")


def test_a_persons_word_that_the_customer_confirmed_is_kept_and_settles_nothing(log: Log, tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    bank = write(tmp_path / "bank")
    app = Service(Desk(bank, log), {}, **pages_of(log, bank, {}, HOME, b"s" * 32))
    person = Person(app)
    card = decide(app, events=[{"user": "Send 250 to AC-22."}])["card"]["id"]
    form: dict[str, str] = {"conversation": "c", "card": card, "reason": f"by phone at noon {HOSTILE}"}
    assert "needs a name and a reason" in person.send("/inbox/attest", status=422, **form | {"reason": " "})
    assert "this card is no longer waiting" in person.send("/inbox/attest", status=422, **form | {"card": "c/77"})
    page = person.send("/inbox/attest", 200, **form)
    assert "Mara (unverified)" in page
    assert "by phone at noon" in page
    assert "<script>alert" not in page
    (entry,) = [each for each in log.conversation("default", "c") if each.kind == "attestation"]
    assert entry.body is not None
    assert b"by phone at noon" in entry.body
    asked = decide(app)
    assert (asked["answer"], asked["allowed"]) == ("ask", False)
    assert "says the customer confirmed the call" in person.get("/live/c/c")
    # The customer's own answer still counts, in a session that began before the attestation and in a new one.
    assert confirm(app, asked["card"]["id"]).status == 200
    assert decide(app)["allowed"]
    assert verify(log.journal.store, "default").faults == ()


def test_a_reviewer_attests_and_a_viewer_does_not(log: Log, tmp_path: Path, keys: dict[str, Key]) -> None:
    (tmp_path / "bank").mkdir()
    bank = write(tmp_path / "bank")
    app = Service(Desk(bank, log), keys, **pages_of(log, bank, keys, HOME, b"s" * 32))
    call = {"conversation": "c", "tool": "transfer", "arguments": {"to": "AC-22", "amount": 250}}
    asked = post(app, "/v1/decide", call | {"events": [{"user": "Send 250 to AC-22."}]}, key="agent").json
    form: dict[str, str] = {"conversation": "c", "card": asked["decisions"][0]["card"]["id"], "reason": "by phone"}
    vic, rob, bob = (Person(app).sign_in(name) for name in ("vic", "rob", "bob"))
    assert "The customer confirmed to me" not in vic.get("/inbox")
    assert "you need the role `approve` or `review` to save changes" in vic.send("/inbox/attest", status=403, **form)
    assert "this card is no longer waiting" in bob.send("/inbox/attest", status=422, **form)
    assert "rob says the customer" in re.sub("<[^>]+>", "", rob.send("/inbox/attest", 200, **form))


class TestProxy:
    """Names that a proxy vouches for."""

    @pytest.fixture
    def app(self, log: Log) -> Service:
        keys = {
            "- acme ann": Key("acme", "approve", "ann"),
            "- acme vic": Key("acme", "view", "vic"),
            "- acme pat": Key("acme", "view", "pat"),
            "- other pat": Key("other", "approve", "pat"),
            hash_of("agent"): Key("acme"),
        }
        pages = pages_of(log, shop(), keys, HOME, b"s" * 32, ("x-user", "10.0.0.5"))
        return Service(Desk(shop(), log), keys, **pages)

    def person(self, app: Service, address: str = "10.0.0.5", **headers: str) -> Person:
        from starlette.testclient import TestClient

        made = Person(app)
        made.client = TestClient(app, base_url=HOME, client=(address, 1), headers=headers)
        return made

    def test_whom_the_proxy_names_is_signed_in_with_the_role_of_the_file(self, app: Service, log: Log) -> None:
        name = waiting(app, key="agent")
        assert "role `approve`" in self.person(app, **{"x-user": "vic"}).send(
            "/inbox/answer", status=403, id=name, word="approve"
        )
        self.person(app, **{"x-user": "ann"}).send("/inbox/answer", id=name, word="approve", by="somebody")
        (answered,) = log.approvals("acme")
        assert answered.answer is not None
        assert (answered.status, answered.answer.by) == ("approved", "ann")

    @pytest.mark.parametrize("headers", [{"x-user": "eve"}, {"x-user": ""}, {"x-user": "pat"}, {}])
    def test_a_name_that_the_file_does_not_tell_is_nobody(self, app: Service, headers: dict[str, str]) -> None:
        answer = self.person(app, **headers).client.get("/inbox", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")

    def test_only_the_proxy_vouches_and_with_one_name(self, app: Service) -> None:
        stranger = self.person(app, address="10.0.0.6", **{"x-user": "ann"})
        assert stranger.client.get("/inbox", follow_redirects=False).status_code == 303
        twice = [("x-user", "vic"), ("x-user", "ann")]
        answer = self.person(app).client.get("/inbox", headers=twice, follow_redirects=False)
        assert answer.status_code == 303

    def test_no_key_opens_a_line_without_one(self, app: Service) -> None:
        for key in ("-", "- acme ann", "ann", ""):
            self.person(app).sign_in(key, status=401)


def test_after_an_answer_nothing_can_be_answered_until_somebody_goes_on(log: Log) -> None:
    app = service(log, {})
    first, second = waiting(app, "c1"), waiting(app, "c2")
    person = Person(app)
    page = person.get("/inbox")
    assert 'value="approve">' in page
    assert "first message" in page or "bubble user" in page
    assert "/live/c/c1" in page
    told = person.send("/inbox/answer", id=first, word="approve")
    assert "data-locked" in told
    assert 'value="approve" disabled' in told
    assert 'value="approve">' not in told
    assert f'name="id" value="{second}"' in told
    assert 'value="approve">' in person.get("/inbox")


def test_an_approval_is_taken_back_while_its_call_has_not_run(log: Log) -> None:
    app = service(log, {})
    name = waiting(app)
    person = Person(app)
    assert "/inbox/undo" in person.send("/inbox/answer", id=name, word="approve")
    assert "withdrawn" in person.send("/inbox/undo", id=name)
    assert log.approvals("default", id=name)[0].status == "expired"
    assert "cannot be withdrawn" in person.send("/inbox/undo", status=422, id=name)
    assert "withdrawn" in person.get("/inbox")
