"""Bylaw's logger. It escapes control characters in text from servers, agents and files."""

import logging
import traceback

from bylaw.text.visible import visible


class _Visible(logging.Filter):
    """Escapes every invisible character of a log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = visible(record.getMessage()), ()
        if record.exc_info:
            # Handlers reuse an existing `exc_text`.
            record.exc_text = visible("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        return True


_visible = _Visible()


def own_log() -> logging.Logger:
    """The logger `bylaw`."""
    logger = logging.getLogger("bylaw")
    logger.addFilter(_visible)
    return logger
