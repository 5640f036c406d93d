"""Finds patterns in logs without a pack. Start at `survey`."""

from bylaw.scan.survey import Scan, Survey, scan

__all__ = ["Scan", "Survey", "scan"]
