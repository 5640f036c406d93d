"""Texts and values of an audit, bounded in length."""

import json
from typing import Any, cast

from bylaw.audit.store import JsonRecord


def cut(data: Any, limit: int = 2000) -> Any:
    """Data with every text in it, names included, cut to `limit` characters."""
    if isinstance(data, str):
        return data if len(data) <= limit else data[: limit - 1] + "…"
    if isinstance(data, list):
        return [cut(item, limit) for item in cast(list[Any], data)]
    if isinstance(data, dict):
        return {cut(name, limit): cut(item, limit) for name, item in cast(JsonRecord, data).items()}
    return data


def whole_text(value: Any) -> str:
    """A value as text: strings as they are, None as an empty string, other values as JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(too deeply nested to show)"


def spelled(value: Any, limit: int = 300) -> str:
    """The same in at most `limit` characters."""
    return cut(whole_text(value), limit)
