"""Rule R in agentltl: every cancellation has a reason. The reason is a Python predicate over the trace."""

import json
import logging
from datetime import datetime, timedelta

from agentltl import Constraint, Globally, Implies, Now, Predicate
from agentltl.enforcer import Enforcer
from timing import calls_of, measure

logging.disable()
NOW = datetime(2024, 5, 15, 15)


def has_ground(trace, position):
    wanted = trace.calls[position].args.get("reservation_id")
    for call in trace.calls[:position]:
        if call.name == "get_reservation_details" and call.args.get("reservation_id") == wanted:
            found = json.loads(call.result)
            return (
                found["cabin"] == "business"
                or found["insurance"] == "yes"
                or datetime.fromisoformat(found["created_at"]) > NOW - timedelta(hours=24)
            )
    return False


RULE = Constraint("R", Globally(Implies(Now("cancel_reservation"), Predicate(has_ground, "has a ground"))))


def decide(line):
    enforcer = Enforcer([RULE])
    *before, (tool, arguments, _) = calls_of(line)
    for name, given, result in before:
        enforcer.record_completed(name, given, result=result)
    return enforcer.check(tool, arguments).allowed


if __name__ == "__main__":
    measure(decide)
