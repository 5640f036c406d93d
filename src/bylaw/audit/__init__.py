"""Audits recorded conversations and writes verdicts, rates and a report. Start at `run`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bylaw.audit.request import Request
    from bylaw.audit.run import Report, audit, read_calls

__all__ = ["Report", "Request", "audit", "read_calls"]


def __getattr__(name: str) -> Any:
    # `run` imports the other modules, so they must not be imported before it.
    if name in __all__:
        from bylaw.audit import run

        return getattr(run, name)
    raise AttributeError(f"module `{__name__}` has no `{name}`")
