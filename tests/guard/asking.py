"""How the tests of this folder put a question to a guard."""

from typing import Any

from bylaw.facts.entity import Fact
from bylaw.guard import Completion, Inquiry, evaluate

from .shop import ARGUMENTS, NOW, guard, order
from .twin import Table

EXISTS = order(exists=True)


def wrapped(condition: str, before: str = "") -> str:
    """A guard that permits where the condition holds."""
    lines = "".join(f"    {line}\n" for line in before.splitlines())
    return (
        f"def g(call, facts):\n"
        f"    r = facts.Order(call.order_id)\n"
        f"{lines}    if {condition}:\n"
        f"        return permit()\n"
        f'    return deny("no")\n'
    )


def all_said(text: str, facts: dict[Fact, Any] | None = None, **options: Any) -> tuple[Completion, ...]:
    arguments = options.pop("arguments", ARGUMENTS)
    source = options.pop("source", None) or Table(EXISTS | (facts or {}))
    now = options.pop("now", NOW)
    completions = evaluate(guard(text), arguments, source, now=now, **options)
    if "coverage" not in options:
        # While branches are noted, both ways of every fork are run.
        assert evaluate(guard(text), arguments, source, now=now, coverage=set(), **options) == completions
    shared = {name: options.pop(name) for name in ("tool", "seen") if name in options}
    inquiry = Inquiry(arguments, source, now=now, **shared)
    for _ in range(2):  # The second time every fact has been asked for already.
        assert inquiry.ask(guard(text), **options) == completions
    return completions


def said(text: str, facts: dict[Fact, Any] | None = None, **options: Any) -> Completion:
    (only,) = all_said(text, facts, **options)
    return only


def outcome(condition: str, facts: dict[Fact, Any] | None = None, before: str = "", **options: Any) -> str:
    return said(wrapped(condition, before), facts, **options).outcome


def names(facts: tuple[Fact, ...]) -> list[str]:
    return [str(fact) for fact in facts]
