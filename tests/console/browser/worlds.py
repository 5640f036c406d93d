"""What the console is looked at on: an audit of the clinic, one of recorded airline runs, and a live service."""

import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bylaw.cli.serve import pages_of
from bylaw.console.index import Wanted, open_index
from bylaw.console.pages import view_app
from bylaw.console.view import View
from bylaw.pack import Pack, load_pack
from bylaw.policy.folder import find_folder
from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import Key, hash_of
from tests.engine.recorded import DATA as AIRLINE
from tests.service.asgi import post
from tests.shield.scenes import APPOINTMENT, CANCEL, PATIENT

RUN = AIRLINE / "tau2" / "runs" / "grok-3.stock.2.json.gz"


class World(NamedTuple):
    """An application, and the addresses of its pages."""

    name: str
    app: Any
    paths: list[str]
    sign_in: str = ""
    """The key that opens it."""


def of_audit(name: str, out: Path, pack: Path, tried: list[str]) -> World:
    """Every page of an audit, with an equal one beside it to compare with; `tried` are checks to edit."""
    shutil.copytree(out, out.parent / "before", ignore=shutil.ignore_patterns("console.db*"))
    index = open_index(out)
    row = index.findings(Wanted(), limit=1)[0]
    broken = index.findings(Wanted(verdict="broken"), limit=1)
    paths = [
        "/",
        "/?base=before",
        f"/findings?reason={row.reason}&open={row.id}",
        f"/finding/{row.id}",
        *(f"/finding/{each.id}" for each in broken),
        "/findings?state=open",
        "/conversations",
        f"/c/{index.conversations(kind='unjudged', limit=1)[0].name}",
        f"/c/{row.conversation}#step-{row.step}",
        "/policy",
        f"/policy/{row.policy}",
        "/policy/confirm-before-change",
        *(f"/try/{name}" for name in tried),
        "/compare?base=before",
    ]
    return World(name, view_app(View(out, pack=str(pack))), paths)


def airline_audit(folder: Path) -> tuple[Path, Path]:
    """An audit of recorded airline runs, and a copy of the pack that judged it."""
    if not RUN.is_file():
        pytest.skip("no recorded conversations here")
    from bylaw.audit.request import Request, write_audited
    from bylaw.audit.run import audit

    pack = folder / "pack"
    shutil.copytree(find_folder("tau-airline"), pack, ignore=shutil.ignore_patterns("__pycache__"))
    # A predicate without a description is told by its name, which a page shows as code.
    rules = pack / "shared" / "rules.yaml"
    described = rules.read_text("utf-8")
    rules.write_text(described.replace(", description: the turn also says something", ""), encoding="utf-8")
    document = AIRLINE / "tau2" / "policy.md"
    request = Request((RUN,), str(pack), AIRLINE, document=document)
    audit(request, folder / "out")
    write_audited(request, folder / "out")
    return folder / "out", pack


def card_pack(folder: Path) -> Pack:
    """The clinic's pack, where nothing but the caller's answer to a card counts as a yes."""
    shutil.copytree(find_folder("clinic"), folder, ignore=shutil.ignore_patterns("__pycache__", "simulator"))
    rules = folder / "rules.yaml"
    rules.write_text(rules.read_text("utf-8").replace("consented: told", "consented: card"), encoding="utf-8")
    return load_pack(folder)


KEYS = {hash_of("agent"): Key("acme"), hash_of("ann"): Key("acme", "approve", "ann")}


POLICY = ["/policy", "/try/late-cancel-fee"]


def of_service(log: Log, pack: Pack) -> World:
    """A service at which one call waits for a person, another for the caller, and some were decided."""
    app = Service(Desk(pack, log), KEYS, **pages_of(log, pack, KEYS, "", b"s" * 32))
    call_the_desk(app, "chat-1", membership={"membership_id": "M878"})
    call_the_desk(app, "chat-2", membership={"membership_id": "M878", "tier": "gold"})
    log.stop("tool", "waive_invoice", by="ann", reason="waived twice", until=time.time() + 7200, tenant="acme")
    return World(
        "service", app, ["/sign-in", "/inbox", "/live", "/live/c/chat-1", "/live?answer=deny", "/stops", *POLICY], "ann"
    )


def call_the_desk(
    app: Service, name: str, membership: dict[str, Any], context: dict[str, Any] | None = None
) -> dict[str, Any]:
    """An agent looks things up and wants to cancel an appointment; the last decision that it hears."""

    def decide(tool: str, arguments: dict[str, Any], id: str, *events: dict[str, Any]) -> dict[str, Any]:
        call = {"conversation": name, "tool": tool, "arguments": arguments, "id": id, "events": list(events)}
        call |= {"context": context} if context else {}
        answer = post(app, "/v1/decide", call, key="agent")
        assert answer.status == 200, answer.body
        return answer.json["decisions"][0]

    wish = {"user": "I'm ill and can't make A0362. I'm P121. I'm Gold, so there's no fee, right?"}
    decide("get_patient", {"patient_id": "P121"}, "a", wish)
    decide("get_appointment", {"appointment_id": "A0362"}, "b", {"result": PATIENT, "call": "a"})
    decide("cancel_appointment", CANCEL, "c", {"result": APPOINTMENT, "call": "b"})
    decide("get_membership", {"membership_id": "M878"}, "d")
    return decide("cancel_appointment", CANCEL, "e", {"result": membership, "call": "d"})
