"""Decides whether a user's request covers a call. Start at `allowance.py`, then `keeping.py`."""

from bylaw.engine.request.allowance import (
    Allowance,
    Choice,
    Deed,
    Delegation,
    Limit,
    Objection,
    ReadRequest,
    Slot,
    Source,
    Span,
    fetches,
    is_deed,
    kinds_of,
)
from bylaw.engine.request.keeping import Delegating, Keeping
from bylaw.engine.request.meaning import Doubt, RequestModel
from bylaw.engine.request.requests import Granted, Requests

__all__ = [
    "Allowance",
    "Choice",
    "Deed",
    "Delegating",
    "Delegation",
    "Doubt",
    "Granted",
    "Keeping",
    "Limit",
    "Objection",
    "ReadRequest",
    "RequestModel",
    "Requests",
    "Slot",
    "Source",
    "Span",
    "fetches",
    "is_deed",
    "kinds_of",
]
