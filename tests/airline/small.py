"""A small airline of our own in the layouts of both generations."""

import gzip
import json
from pathlib import Path
from typing import Any

USERS = {
    "ada": {
        "name": {"first_name": "Ada", "last_name": "Byron"},
        "address": {"state": "CA"},
        "payment_methods": {
            "credit_card_1": {"source": "credit_card", "id": "credit_card_1"},
            "gift_card_1": {"source": "gift_card", "amount": 300, "id": "gift_card_1"},
            "certificate_1": {"source": "certificate", "amount": 150, "id": "certificate_1"},
        },
        "membership": "silver",
        "reservations": ["R1"],
    }
}
RESERVATIONS = {
    "R1": {
        "reservation_id": "R1",
        "user_id": "ada",
        "origin": "SFO",
        "destination": "JFK",
        "flight_type": "one_way",
        "cabin": "basic_economy",
        "flights": [
            {"origin": "SFO", "destination": "JFK", "flight_number": "HAT001", "date": "2024-05-20", "price": 50}
        ],
        "passengers": [{"first_name": "Ada", "last_name": "Byron", "dob": "1990-01-01"}],
        "payment_history": [{"payment_id": "gift_card_1", "amount": 50}],
        "created_at": "2024-05-01T10:00:00",
        "total_baggages": 1,
        "nonfree_baggages": 0,
        "insurance": "no",
    }
}


def flight(number: str, origin: str, destination: str, leaves: str, arrives: str) -> dict[str, Any]:
    """A flight that landed on the 14th and can be booked on the 20th and 21st."""
    day = {
        "status": "available",
        "available_seats": {"basic_economy": 2, "economy": 2, "business": 1},
        "prices": {"basic_economy": 50, "economy": 100, "business": 400},
    }
    return {
        "flight_number": number,
        "origin": origin,
        "destination": destination,
        "scheduled_departure_time_est": leaves,
        "scheduled_arrival_time_est": arrives,
        "dates": {"2024-05-14": {"status": "landed"}, "2024-05-20": day, "2024-05-21": day},
    }


FLIGHTS = {
    "HAT001": flight("HAT001", "SFO", "JFK", "08:00:00", "16:00:00"),
    "HAT002": flight("HAT002", "SFO", "DEN", "20:00:00", "00:30:00+1"),
    "HAT003": flight("HAT003", "DEN", "JFK", "06:00:00", "12:00:00"),
}


def write_tau1(folder: Path, **others: Any) -> Path:
    """The first generation: one file per table, here gzip."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"users": USERS, "reservations": RESERVATIONS, "flights": FLIGHTS, **others}
    for name, table in tables.items():
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(table).encode()))
    return folder


def write_tau2(folder: Path) -> Path:
    """The second generation: one plain file."""
    folder.mkdir(parents=True, exist_ok=True)
    users = {key: {**user, "user_id": key} for key, user in USERS.items()}
    tables = {"users": users, "reservations": RESERVATIONS, "flights": FLIGHTS}
    (folder / "db.json").write_text(json.dumps(tables))
    return folder
