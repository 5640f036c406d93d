"""The program's own log: what servers, agents and files say in it does nothing to a terminal."""

import logging
import traceback

from bylaw.text.visible import visible


class _Visible(logging.Filter):
    """Writes out every character of a record that cannot be seen."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = visible(record.getMessage()), ()
        if record.exc_info:
            # A handler takes the text that is there.
            record.exc_text = visible("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        return True


_visible = _Visible()


def own_log() -> logging.Logger:
    """The logger `bylaw`."""
    logger = logging.getLogger("bylaw")
    logger.addFilter(_visible)
    return logger
