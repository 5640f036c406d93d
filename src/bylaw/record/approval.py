"""Approvals: requests that wait for a person's answer. Their state is computed from the log's entries.

A waiting request can be approved, be rejected or expire. An approval can be used once, for the exact call, or expire. A
request or an approval expires if it is not answered or used in time, or if the facts behind it change.
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
"""For each state, the states from which it can be reached."""


class Change(Struct, frozen=True, omit_defaults=True):
    """A change in the state of an approval, as stored in the log."""

    approval: str
    status: Status
    by: str = ""
    note: str = ""
    expires: float = 0.0
    """When the waiting request expires or, once it is approved, when the approval expires. 0 means never."""
    call: str = ""
    """A hash of the exact call."""
    facts: str = ""
    """A hash of the facts and objections on which the request is based."""
    apart: str = ""
    """A hash like `facts`, but without the objections of stops, doubts and limits, because these are temporary."""
    question: str = ""
    decision: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None
    lifetime: float = 0.0
    """For how many seconds an approval will be valid, as set by the request. 0 means no limit."""
    for_person: str = ""
    """The message for reviewers from the decision, with the call and the objections."""


class Approval(Struct, frozen=True):
    id: str
    conversation: str
    status: Status
    asked: float
    expires: float
    request: Change
    answer: Change | None = None
    """The change with the reviewer's answer. It stays the same if the approval is used or expires later."""
    answered: float = 0.0
    """When the reviewer answered. 0 if nobody has answered."""
    end: Change | None = None
    """The change that ended the approval, because it was used or expired."""
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
        if change.status in ("approved", "rejected"):
            return _Kept(self.request, change, time)
        return _Kept(self.request, self.answer, self.answered, change, time)


_kept = msgspec.json.Decoder(_Kept).decode


def draft(tenant: str, conversation: str, change: Change) -> Draft:
    """Return the log entry for a change. The log stores it only once, even if it is written again."""
    name = f"approval:{change.approval}:{change.status}"
    return Draft(tenant, conversation, "approval", encode(change), name)


_encode_in_order = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def fingerprint(value: Any) -> str:
    """Return a hash of plain data that does not depend on the order of keys."""
    return hashlib.sha256(_encode_in_order(value)).hexdigest()


def read_approval(row: tuple[str, str, Status, float, float, Any]) -> Approval:
    name, conversation, status, asked, expires, body = row
    kept = _kept(body if isinstance(body, str) else bytes(body))
    if kept.answer is not None and kept.answer.status in ("used", "expired"):
        # An earlier version stored only the last change.
        kept = _Kept(kept.request, end=kept.answer)
    said = (kept.answer, kept.answered, kept.end, kept.ended)
    return Approval(name, conversation, status, asked, expires, kept.request, *said)


def project(cursor: "Cursor", draft: Draft, time: float) -> str:
    """Apply an entry to the table of approvals. If the change is not allowed, return the reason."""
    change = read_change(draft.body)
    cursor.execute(
        "SELECT status, expires, body FROM approvals WHERE tenant = ? AND id = ?", (draft.tenant, change.approval)
    )
    row = cursor.fetchone()
    if change.status == "waiting":
        if row is not None:
            return f"approval `{change.approval}` was already requested"
        kept = encode(_Kept(change))
        values = (draft.tenant, change.approval, draft.conversation, "waiting", time, change.expires, kept)
        cursor.execute(
            "INSERT INTO approvals (tenant, id, conversation, status, asked, expires, body) VALUES (?,?,?,?,?,?,?)",
            values,
        )
        return ""
    if row is None:
        return f"there is no approval `{change.approval}`"
    status, expires, body = row
    if status not in FROM[change.status]:
        return f"approval `{change.approval}` is {status} and cannot become {change.status}"
    if change.status in ("approved", "rejected") and time >= expires:
        return f"approval `{change.approval}` has expired"
    kept = encode(_kept(bytes(body)).after(change, time))
    cursor.execute(
        "UPDATE approvals SET status = ?, body = ? WHERE tenant = ? AND id = ?",
        (change.status, kept, draft.tenant, change.approval),
    )
    return ""


WORDS = 500
"""The maximum length of a reason in characters."""


class Attestation(Struct, frozen=True):
    """A person's statement that the customer confirmed a card. It does not answer the card, because only the customer
    can do that.
    """

    card: str
    by: str
    reason: str


read_attestation = msgspec.json.Decoder(Attestation).decode
