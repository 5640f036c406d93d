"""Rules that reason over time: LTL-f formulas, their monitors, and the weighted circuits they form. Start at `monitor`."""
