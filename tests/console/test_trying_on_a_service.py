"""A check tried on a service: on its own tenant's conversations, with a patch for an answer, and nothing written."""

import re
from pathlib import Path
from typing import Any

import pytest

from bylaw.cli.serve import pages_of
from bylaw.console.pack_state import PackStates
from bylaw.console.trying import drafts_of
from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, hash_of
from tests.console.browser.worlds import call_the_desk, card_pack
from tests.console.test_inbox import Person

FEE = "late-cancel-fee"
KEYS = {
    hash_of("agent"): Key("acme"),
    hash_of("rob"): Key("acme", "review", "rob"),
    hash_of("vic"): Key("acme", "view", "vic"),
    hash_of("eve"): Key("other", "review", "eve"),
}


@pytest.fixture
def app(tmp_path: Path) -> Any:
    with Log(str(tmp_path / "decisions.db")) as log:
        pack = card_pack(tmp_path / "pack")
        made = Service(Desk(pack, log), KEYS, **pages_of(log, pack, KEYS, "", b"s" * 32))
        call_the_desk(made, "chat-2", membership={"membership_id": "M878", "tier": "gold"})
        yield made


def reversed_fee(root: Path) -> str:
    """The guard, letting every fee through but the right one."""
    return drafts_of(PackStates(root).now(), FEE)[0].text.replace("== due", "!= due")


def test_a_service_offers_the_patch_and_writes_nothing(app: Service, tmp_path: Path) -> None:
    rob, root = Person(app).sign_in("rob"), tmp_path / "pack"
    before = {path: path.read_bytes() for path in root.rglob("*.*") if path.is_file()}
    assert f'href="/try/{FEE}"' in rob.get("/policy")
    edited = reversed_fee(root)
    assert "as saved" in rob.get(f"/try/{FEE}")
    tried = rob.send(f"/try/{FEE}", text=edited)
    assert "chat-2" in tried
    assert 'href="/live/c/chat-2' in tried
    assert "+    return permit() if money(call.late_fee) != due" in tried
    assert "Save to the pack" not in tried
    digest = drafts_of(PackStates(root).now(), FEE)[0].digest
    assert "cannot be changed from this page" in rob.send(f"/try/{FEE}/save", 422, text=edited, digest=digest)
    assert {path: path.read_bytes() for path in root.rglob("*.*") if path.is_file()} == before


def test_who_may_only_look_tries_nothing(app: Service, tmp_path: Path) -> None:
    vic = Person(app).sign_in("vic")
    # A link from an audit's page leads to the check here.
    assert "Try it" not in (page := vic.get(f"/policy/{FEE}"))
    assert re.search(r'<textarea id="check"[^>]* readonly>', page)
    assert not re.search(r'<textarea id="check"[^>]* readonly>', Person(app).sign_in("rob").get(f"/try/{FEE}"))
    vic.send(f"/try/{FEE}", 403, text=reversed_fee(tmp_path / "pack"))
    assert Person(app).client.get(f"/try/{FEE}", follow_redirects=False).status_code == 303


def test_another_tenants_conversations_are_not_tried(app: Service, tmp_path: Path) -> None:
    eve = Person(app).sign_in("eve")
    tried = eve.send(f"/try/{FEE}", text=reversed_fee(tmp_path / "pack"))
    assert "chat-2" not in tried
    assert "Tried on 0 recent conversations" in tried
