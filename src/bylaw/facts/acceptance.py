"""Whether a tool accepted a call, read off its result."""

import re
from functools import lru_cache
from typing import Any, cast

from bylaw.policy.tool import Tool
from bylaw.trace.event import Result

_REFUSALS = ("error", "unknown action", "unknown tool", "unknown function")
"""How frameworks begin the text of a call they did not carry out."""


def accepted(tool: Tool | None, result: Result | None) -> bool | None:
    """Whether the tool accepted the call: None where its result was not captured."""
    if result is None or not result.captured:
        return None
    if result.error:
        return False
    content = result.content
    if not isinstance(content, str):
        content = bytes(content).decode("utf-8", "replace")
    if tool is not None and tool.refused:
        return _pattern(tool.refused).search(content) is None
    if result.error is False:
        return True
    head = content.lstrip()[:64]
    if head.lower().startswith(_REFUSALS):
        return False
    if head[:1] == "{" and ('"error"' in content or '"isError"' in content):
        value = result.value()
        if isinstance(value, dict):
            record = cast("dict[str, Any]", value)
            return not (record.get("error") or record.get("isError"))
    return True


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
