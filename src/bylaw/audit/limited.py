"""What the summary of an audit says of limits that span conversations."""

from collections.abc import Iterable, Sequence
from typing import Any

from bylaw.engine.limited import LimitedCall, by_limit, over_and_open
from bylaw.pack import Pack
from bylaw.rule.rule import Limit

SHOWN = 20
"""Calls that are named for each limit at most."""


def limits_record(packs: Sequence[Pack], calls: Iterable[LimitedCall]) -> list[dict[str, Any]]:
    """What `summary.json` says of each limit."""
    severities = {name: policy.severity for pack in packs for name, policy in pack.policies.items()}
    return [_record(limit, made, severities[limit.policy]) for limit, made in by_limit(packs, calls)]


def _record(limit: Limit, calls: Sequence[LimitedCall], severity: str) -> dict[str, Any]:
    over, is_open = over_and_open(limit, calls)
    return {
        "limit": limit.name,
        "policy": limit.policy,
        "severity": severity,
        "text": limit.text,
        "calls": len(calls),
        "over": len(over),
        "open": len(is_open),
        "untimed": sum(call.time is None for call in calls),
        "unknown_whose": sum(call.whose is None for call in calls),
        "first": [{"file": call.file, "position": call.position, "step": call.step} for call in over[:SHOWN]],
    }
