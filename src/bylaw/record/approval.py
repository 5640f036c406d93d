"""Approvals: questions that wait for a person. Their state is what the log's entries about them add up to.

waiting -> approved -> used        an approval is used once, for the exact call it was given for
waiting -> rejected
waiting | approved -> expired      nobody answered in time, or used the yes in time, or what it rested on has changed
"""

import hashlib
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from bylaw.record.entry import Draft

if TYPE_CHECKING:
    from bylaw.record.database import Cursor


Status = Literal["waiting", "approved", "rejected", "expired", "used"]

FROM: dict[Status, tuple[Status, ...]] = {
    "waiting": (),
    "approved": ("waiting",),
    "rejected": ("waiting",),
    "expired": ("waiting", "approved"),
    "used": ("approved",),
}
"""Which states each state may follow."""


class Change(Struct, frozen=True, omit_defaults=True):
    """One step in an approval's life, as its entry in the log says it."""

    approval: str
    status: Status
    by: str = ""
    note: str = ""
    expires: float = 0.0
    """When it stops waiting, said where it begins to; when a yes lapses, said with the yes. 0: never."""
    call: str = ""
    """Hash of the exact call it is for."""
    facts: str = ""
    """Hash of the facts it rests on: those that were seen, and what stood against the call."""
    apart: str = ""
    """The same apart from stops, doubts and limits, which come and go."""
    question: str = ""
    decision: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None
    lifetime: float = 0.0
    """For how many seconds a yes would hold; said where it begins to wait. 0: without an end."""
    for_person: str = ""
    """What the decision says to the person: the call, and what stands against it."""


class Approval(Struct, frozen=True):
    """An approval as it stands now."""

    id: str
    conversation: str
    status: Status
    asked: float
    expires: float
    request: Change
    """What was asked."""
    answer: Change | None = None
    """What a person said, whatever became of it."""
    answered: float = 0.0
    """When."""
    end: Change | None = None
    """How it was over: used, or expired."""
    ended: float = 0.0


encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode
read_change = msgspec.json.Decoder(Change).decode


class _Kept(Struct, frozen=True):
    request: Change
    answer: Change | None = None
    answered: float = 0.0
    end: Change | None = None
    ended: float = 0.0

    def after(self, change: Change, time: float) -> "_Kept":
        """The same after what was said at a time."""
        if change.status in ("approved", "rejected"):
            return _Kept(self.request, change, time)
        return _Kept(self.request, self.answer, self.answered, change, time)


_kept = msgspec.json.Decoder(_Kept).decode


def draft(tenant: str, conversation: str, change: Change) -> Draft:
    """The entry that tells of a change; sent twice it is written once."""
    name = f"approval:{change.approval}:{change.status}"
    return Draft(tenant, conversation, "approval", encode(change), name)


def fingerprint(value: Any) -> str:
    """A hash of plain data, the same whatever the order of keys."""
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic", enc_hook=str)).hexdigest()


def read_approval(row: tuple[str, str, Status, float, float, Any]) -> Approval:
    """A row of the store as a record."""
    name, conversation, status, asked, expires, body = row
    kept = _kept(body if isinstance(body, str) else bytes(body))
    if kept.answer is not None and kept.answer.status in ("used", "expired"):
        # Written by an earlier version, which kept the last word alone.
        kept = _Kept(kept.request, end=kept.answer)
    said = (kept.answer, kept.answered, kept.end, kept.ended)
    return Approval(name, conversation, status, asked, expires, kept.request, *said)


def project(cursor: "Cursor", draft: Draft, time: float) -> str:
    """Move the table of approvals with an entry; what is wrong, where the approval cannot move so."""
    change = read_change(draft.body)
    cursor.execute(
        "SELECT status, expires, body FROM approvals WHERE tenant = ? AND id = ?", (draft.tenant, change.approval)
    )
    row = cursor.fetchone()
    if change.status == "waiting":
        if row is not None:
            return f"approval `{change.approval}` has been asked for already"
        kept = encode(_Kept(change))
        values = (draft.tenant, change.approval, draft.conversation, "waiting", time, change.expires, kept)
        cursor.execute(
            "INSERT INTO approvals (tenant, id, conversation, status, asked, expires, body) VALUES (?,?,?,?,?,?,?)",
            values,
        )
        return ""
    if row is None:
        return f"no approval `{change.approval}` was asked for"
    status, expires, body = row
    if status not in FROM[change.status]:
        return f"approval `{change.approval}` is {status}: it cannot become {change.status}"
    if change.status in ("approved", "rejected") and time >= expires:
        return f"approval `{change.approval}` has expired: nobody waits for it any more"
    kept = encode(_kept(bytes(body)).after(change, time))
    cursor.execute(
        "UPDATE approvals SET status = ?, body = ? WHERE tenant = ? AND id = ?",
        (change.status, kept, draft.tenant, change.approval),
    )
    return ""


WORDS = 500
"""Characters of a reason at most."""


class Attestation(Struct, frozen=True):
    """Somebody says that the customer confirmed to them what a card asks. The card stays open: only the customer's own
    answer settles it."""

    card: str
    by: str
    reason: str


read_attestation = msgspec.json.Decoder(Attestation).decode
