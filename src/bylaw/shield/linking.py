"""The conversation that another principal begins in the place of one that goes on under the same name."""

from collections.abc import Mapping
from typing import Any

from bylaw.engine.context import PRINCIPAL
from bylaw.record.approval import fingerprint


def linked(name: str, context: Mapping[str, Any] | None) -> str:
    """Its name: nothing that was agreed to, given as a reason or approved in one of them counts in another."""
    given = dict(context or {})
    return f"{name} > {fingerprint(given.get(PRINCIPAL, given))[:16]}"
