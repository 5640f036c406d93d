"""Rule R in acel-core: a look-up stores the reservation in the session state, and the cancellation reads it there."""

import json
from datetime import datetime, timedelta

from acel import ContractViolation, Session, must_precede
from timing import calls_of, measure

NOW = datetime(2024, 5, 15, 15)


def remember(state, arguments, result):
    state.set(arguments["reservation_id"], result)


def has_ground(state, arguments):
    found = state.get(arguments["reservation_id"])
    return found is not None and (
        found["cabin"] == "business"
        or found["insurance"] == "yes"
        or datetime.fromisoformat(found["created_at"]) > NOW - timedelta(hours=24)
    )


def decide(line):
    session = Session()
    session.add_contract(must_precede("get_reservation_details", "cancel_reservation"))
    session.register_tool("get_reservation_details", commit=remember)
    session.register_tool("cancel_reservation", precondition=has_ground)
    try:
        for tool, arguments, result in calls_of(line):
            known = json.loads(result) if tool == "get_reservation_details" else result
            session.call(tool, arguments, result=known)
    except ContractViolation:
        return False
    return True


if __name__ == "__main__":
    measure(decide)
