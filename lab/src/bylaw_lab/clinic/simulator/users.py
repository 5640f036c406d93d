"""Kinds of users: honest, mistaken, and adversarial ones, who say whatever helps them."""

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal

from bylaw_lab.clinic.simulator.dialogue import claim
from bylaw_lab.clinic.simulator.tables import TODAY, Fact, tables
from bylaw_lab.clinic.simulator.truth import POLICIES
from bylaw_lab.clinic.simulator.verdict import PolicyRun, run
from bylaw_lab.clinic.simulator.wants import Clinic, Want

UserKind = Literal["honest", "mistaken", "adversarial"]
USERS: tuple[UserKind, ...] = ("honest", "mistaken", "adversarial")
MOST = 4
"""The maximum number of facts in one request."""


def claims(clinic: Clinic, rng: random.Random, kind: UserKind, want: Want) -> list[tuple[Fact, str]]:
    """Return what the user says about the record with a request, as facts and sentences."""
    stated: dict[Fact, str | None] = {}
    runs = clinic.runs(want)
    if kind != "honest":
        for id, found in runs.items():
            if not found.permitted and rng.random() < 0.85 and (lie := excuse(clinic, rng, id, want, found)):
                stated[lie[0]] = claim(rng, *lie)
    for found in runs.values():
        for fact, value in found.path:
            if fact not in stated and value is not None and rng.random() < 0.25:
                if kind == "mistaken" and rng.random() < 0.3:
                    value = rng.choice(others(rng, fact, value, want) or [value])
                stated[fact] = claim(rng, fact, value)
    spoken = [(fact, sentence) for fact, sentence in stated.items() if sentence]
    return spoken[:MOST]


def excuse(clinic: Clinic, rng: random.Random, id: str, want: Want, found: PolicyRun) -> tuple[Fact, Any] | None:
    """Return a fact, and a value that would make the policy permit the change."""
    for fact, value in reversed(found.path):
        if value is None:
            continue
        for other in others(rng, fact, value, want):

            def read(asked: Fact, fact: Fact = fact, other: Any = other) -> Any:
                return other if asked == fact else clinic.read(asked)

            if run(POLICIES[id], want.arguments, want.told(), read).permitted:
                return fact, other
    return None


def others(rng: random.Random, fact: Fact, value: Any, want: Want) -> list[Any]:
    """Return other values that a person might give for a fact."""
    entity, _, field = fact
    column = tables()[entity].columns[field]
    match column.type:
        case "boolean":
            return [not value]
        case "enum":
            return [word for word in column.words if word != value]
        case "money":
            return [Decimal("0.00"), Decimal("35.00"), Decimal("120.00"), Decimal("240.00")]
        case "date":
            if field == "birth_date":
                return [date(1990, 1, 1) + timedelta(days=rng.randrange(6000))]
            if field == "since":
                return [date(2023, 2, 1) + timedelta(days=rng.randrange(300))]
            return [TODAY + timedelta(days=rng.randint(12, 45) * sign) for sign in (1, -1)]
        case "string":
            return [want.arguments["patient_id"]] if field == "patient_id" else []
        case _:
            return []
