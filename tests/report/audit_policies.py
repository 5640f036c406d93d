"""The policies of the audit folders that the report is tested with."""

from typing import Any

Record = dict[str, Any]

POLICIES: dict[str, Record] = {
    "late-fee-by-membership": {
        "definition": "Gold members pay no late-cancellation fee; Silver members pay 15.00; everyone else pays 30.00.",
        "severity": "high",
        "kind": "guard",
        "citations": [
            {
                "document": "policy.md",
                "heading": "Fees",
                "line": 88,
                "text": "The late-cancellation fee is waived for Gold members only. Check the membership on file "
                "before charging; what a caller says about it does not count.",
            }
        ],
    },
    "cancel-window": {
        "definition": "An appointment may be cancelled only while it is booked and at least 24 hours away.",
        "severity": "medium",
        "kind": "guard",
        "citations": [
            {
                "document": "policy.md",
                "heading": "Cancelling",
                "line": 41,
                "text": "Appointments can be cancelled up to 24 hours before they start, and only while still booked.",
            }
        ],
    },
    "referral-for-specialists": {
        "definition": "A specialist appointment needs a referral that is still valid on the day.",
        "severity": "high",
        "kind": "guard",
        "citations": [{"document": "policy.md", "heading": "Specialists", "line": 63, "text": None}],
    },
    "consent-before-sharing": {
        "definition": "Records leave the clinic only with the patient's consent on file.",
        "severity": "high",
        "kind": "guard",
        "citations": [
            {
                "document": "policy.md",
                "heading": "Privacy",
                "line": 120,
                "text": "No record is shared without written consent on file.",
            }
        ],
    },
    "one-open-slot": {
        "definition": "A patient holds at most one open appointment with the same doctor.",
        "severity": "low",
        "kind": "guard",
        "citations": [
            {"document": "policy.md", "heading": "Booking", "line": 30, "text": "One open appointment per doctor."}
        ],
    },
    "minors-with-guardian": {
        "definition": "Bookings for patients under 16 name a guardian.",
        "severity": "medium",
        "kind": "guard",
        "citations": [
            {"document": "policy.md", "heading": "Booking", "line": 34, "text": "Under 16: a guardian is named."}
        ],
    },
}

POLICIES["confirm-before-change"] = {
    "definition": "The agent asks before every change.",
    "severity": "medium",
    "kind": "rule",
    "citations": [
        {"document": "policy.md", "heading": "Talking", "line": 12, "text": "Ask before you change anything, and wait."}
    ],
    "predicates": {"change": "the act changes something", "agreed": "the caller has just said yes"},
}
