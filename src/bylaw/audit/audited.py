"""`audited.json`: what an audit was made from, so that a call it did not keep the conversation of can be shown too."""

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.audit.line import conversation_line
from bylaw.audit.redaction import Redaction
from bylaw.audit.request import Request
from bylaw.audit.shelf import Shelf
from bylaw.errors import BylawError
from bylaw.trace import Identities, Trajectory, read


class Audited(Struct, frozen=True, omit_defaults=True):
    """The files and the pack of an audit, as the command named them."""

    logs: list[str]
    pack: str
    world: str | None = None
    document: str | None = None
    agent: str | None = None


def write_audited(request: Request, out: Path) -> None:
    """Note what was audited; never for a redacted audit, whose reader must not be led to the logs."""
    record = Audited(
        [str(file) for file in request.files],
        request.pack,
        world=str(request.world) if request.world is not None else None,
        document=str(request.document) if request.document is not None else None,
        agent=request.agent,
    )
    # Not msgspec, here and below: the name of a file need not be text, and only `json` writes and reads what is not.
    (out / "audited.json").write_text(json.dumps(msgspec.to_builtins(record), indent=1) + "\n", encoding="utf-8")


def events_in_logs(out: Path, trajectory: str) -> list[dict[str, Any]]:
    """The events of a conversation, read from the logs again; none where they, or the pack, are no longer there."""
    path = out / "audited.json"
    if not path.is_file():
        return []
    try:
        audited = msgspec.convert(json.loads(path.read_bytes()), Audited)
        shelf = Shelf(audited.pack, document=Path(audited.document) if audited.document else None)
        found = _find(audited, trajectory)
    except (BylawError, OSError, ValueError):
        return []
    if found is None:
        return []
    told = conversation_line(found, found.agent, found.outcome)
    redaction = Redaction(shelf.pack_for(found))
    if redaction:
        told = redaction.cover(found.events, None, ()).conversation(told)
    events: list[dict[str, Any]] = told["events"]
    return events


def _find(audited: Audited, name: str) -> Trajectory | None:
    identities = Identities()
    for file in audited.logs:
        for each in read(file, agent=audited.agent):
            if isinstance(each, Trajectory) and (own := identities.own(each)).id == name:
                return own
    return None
