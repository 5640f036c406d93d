"""Rules over time: LTL-f formulas, their monitors, and weighted circuits built from them. Start at `monitor`."""

from bylaw.rule.formula import Formula, parse
from bylaw.rule.monitor import Family, Monitor, MonitorReport, MonitorSet
from bylaw.rule.rule import Rule, read_rule

__all__ = ["Family", "Formula", "Monitor", "MonitorReport", "MonitorSet", "Rule", "parse", "read_rule"]
