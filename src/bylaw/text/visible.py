"""Makes untrusted text safe for a terminal, so that no character can move the cursor or hide a line."""

import json
import logging
import traceback
from typing import Any, cast


def visible(text: str) -> str:
    """Return the text with every invisible character escaped, except line breaks."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else f"\\u{ord(each):04x}" for each in text)


def all_visible(data: Any) -> Any:
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, list):
        return [all_visible(item) for item in cast(list[Any], data)]
    if isinstance(data, dict):
        return {all_visible(name): all_visible(value) for name, value in cast(dict[Any, Any], data).items()}
    return data


def visible_json(data: Any, indent: int | None = None) -> str:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    return text if text.replace("\n", "").isprintable() else json.dumps(data, indent=indent)


def clean(text: str, most: int) -> str:
    """Return the text as one line without invisible characters, cut to `most` characters."""
    plain = visible(text[: most + 1]).replace("\n", "\\u000a")
    return plain if len(plain) <= most else plain[: most - 3] + "..."


class _Visible(logging.Filter):
    """Escapes every invisible character in a log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = visible(record.getMessage()), ()
        if record.exc_info:
            # Handlers reuse `exc_text` if it is already set, so it must be escaped too.
            record.exc_text = visible("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        return True


_visible = _Visible()


def own_log() -> logging.Logger:
    logger = logging.getLogger("bylaw")
    logger.addFilter(_visible)
    return logger
