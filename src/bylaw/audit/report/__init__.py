"""Writes one self-contained HTML page from an audit's output folder. Start at `page`."""

from bylaw.audit.report.page import write_report

__all__ = ["write_report"]
