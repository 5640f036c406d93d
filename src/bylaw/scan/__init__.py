"""Finds patterns in logs without a pack. Start with `survey`."""

from bylaw.scan.survey import Scan, Survey, scan

__all__ = ["Scan", "Survey", "scan"]
