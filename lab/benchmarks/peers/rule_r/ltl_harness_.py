"""The part of rule R that ltl-harness can express: a look-up that showed business comes before a cancellation.

It cannot join ids or compare dates.
"""

import json

from ltl_harness.engine.monitor import RunMonitor
from ltl_harness.engine.rulebook import candidate_activities, parse_rulebook, resolve_activity
from timing import calls_of, measure

BOOK = parse_rulebook(
    {
        "name": "R",
        "activities": {
            "saw_business": {"tool": "get_reservation_details", "result": {"path": "cabin", "equals": "business"}},
            "saw_other": {"tool": "get_reservation_details"},
            "cancel": {"tool": "cancel_reservation"},
            "search": {"tool": "search_flights"},
        },
        "rules": [
            {"id": "R", "template": "Precedence", "params": {"a": "saw_business", "b": "cancel"}, "posture": "seatbelt"}
        ],
    }
)


def decide(line):
    monitor = RunMonitor(BOOK)
    *before, (tool, _, _) = calls_of(line)
    for name, _, result in before:
        activity = resolve_activity(BOOK, name, json.loads(result))
        if activity is not None:
            monitor.advance(activity)
    return monitor.decide(candidate_activities(BOOK, tool))["decision"] == "allow"


if __name__ == "__main__":
    measure(decide)
