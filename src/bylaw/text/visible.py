"""Text of logs, packs and file names, made safe for a terminal: nothing in it moves the cursor or hides a line."""

import json
from typing import Any, cast


def visible(text: str) -> str:
    """The text with its line breaks, every other character that cannot be seen written out."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else f"\\u{ord(each):04x}" for each in text)


def all_visible(data: Any) -> Any:
    """Decoded JSON with every text in it made `visible`."""
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, list):
        return [all_visible(item) for item in cast(list[Any], data)]
    if isinstance(data, dict):
        return {all_visible(name): all_visible(value) for name, value in cast(dict[Any, Any], data).items()}
    return data


def visible_json(data: Any, indent: int | None = None) -> str:
    """JSON in which every character that cannot be seen is an escape."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    return text if text.replace("\n", "").isprintable() else json.dumps(data, indent=indent)


def clean(text: str, most: int) -> str:
    """One line of bounded length that can be seen."""
    plain = visible(text[: most + 1]).replace("\n", "\\u000a")
    return plain if len(plain) <= most else plain[: most - 3] + "..."
