"""Rule R in plain Python, as a lower bound for the time."""

import json
from datetime import datetime, timedelta

from timing import calls_of, measure

NOW = datetime(2024, 5, 15, 15)


def decide(line):
    seen = {}
    for tool, arguments, result in calls_of(line):
        if tool == "get_reservation_details" and result:
            seen[arguments["reservation_id"]] = json.loads(result)
        elif tool == "cancel_reservation":
            found = seen.get(arguments["reservation_id"])
            return found is not None and (
                found["cabin"] == "business"
                or found["insurance"] == "yes"
                or datetime.fromisoformat(found["created_at"]) > NOW - timedelta(hours=24)
            )
    return True


if __name__ == "__main__":
    measure(decide)
