"""Writes an audit report as one self-contained HTML page. Start at `page`."""

from bylaw.audit.report.page import write_report

__all__ = ["write_report"]
