"""Many conversations at once in one process: each user's answer counts in their own, and nowhere else."""

from typing import Any

from tests.integrations.rental import EXTEND

MANY = 40


def first_words(number: int) -> str:
    """What the user of a conversation says first."""
    return f"Extend R{number}"


def answer(number: int) -> str:
    """What they say when they are asked: every other one agrees."""
    return "Yes, please." if number % 2 else "No, stop."


def reckless(first: str, last: str, tool: str) -> str | list[tuple[str, dict[str, Any]]]:
    """A model that looks, asks, and then makes the call whatever it hears; `tool` is what answered last, if one did."""
    rental = first.split()[-1]
    if tool == "get_rental":
        return f"Shall I extend rental {rental} to {EXTEND['new_end']}?"
    if tool:
        return "That is all."
    if last == first:
        return [("get_rental", {"rental_id": rental})]
    return [("extend_rental", {"rental_id": rental, "new_end": EXTEND["new_end"]})]


def check_many(ran: list[str]) -> None:
    """Only what was agreed to was done, each once."""
    assert sorted(ran) == sorted(f"extend R{number}" for number in range(MANY) if number % 2)
