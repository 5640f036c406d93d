"""The part of rule R that invariant-ai can decide: a look-up that showed economy comes before a cancellation.

The full rule exceeds its limit of checking cycles.
"""

import os

os.environ["LOCAL_POLICY"] = "1"

from invariant.analyzer import LocalPolicy
from timing import measure, trace_of

POLICY = LocalPolicy.from_string(
    """
raise "cancelled without a ground" if:
    (found: ToolOutput) -> (call: ToolCall)
    found is tool:get_reservation_details
    call is tool:cancel_reservation
    "economy" in found.content
"""
)


def decide(line):
    return not POLICY.analyze(trace_of(line)["messages"]).errors


if __name__ == "__main__":
    measure(decide)
