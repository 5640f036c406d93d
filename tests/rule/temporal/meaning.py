"""What a formula means, step by step. Slow on purpose: the engine is tested against this, so it must be obvious."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from bylaw.rule.formula import (
    Always,
    And,
    Atom,
    Constant,
    Eventually,
    Formula,
    Historically,
    Implies,
    Next,
    Not,
    Once,
    Or,
    Release,
    Since,
    Until,
    WeakNext,
    WeakUntil,
    Xor,
    Yesterday,
)

Step = Mapping[str, bool]


def holds(formula: Formula, steps: Sequence[Step], now: int = 0) -> bool:
    """Whether `formula` holds at step `now` of a whole, finite trace."""
    match formula:
        case Constant(value):
            return value
        case Atom(name):
            return steps[now][name]
        case Not(operand):
            return not holds(operand, steps, now)
        case And(left, right):
            return holds(left, steps, now) and holds(right, steps, now)
        case Or(left, right):
            return holds(left, steps, now) or holds(right, steps, now)
        case Xor(left, right):
            return holds(left, steps, now) != holds(right, steps, now)
        case Implies(left, right):
            return not holds(left, steps, now) or holds(right, steps, now)
        case Next(operand):
            return now + 1 < len(steps) and holds(operand, steps, now + 1)
        case WeakNext(operand):
            return now + 1 == len(steps) or holds(operand, steps, now + 1)
        case Always(operand):
            return all(holds(operand, steps, later) for later in range(now, len(steps)))
        case Eventually(operand):
            return any(holds(operand, steps, later) for later in range(now, len(steps)))
        case Until(kept, goal):
            return any(
                holds(goal, steps, then) and all(holds(kept, steps, before) for before in range(now, then))
                for then in range(now, len(steps))
            )
        case Release(freed, kept):
            return all(
                holds(kept, steps, then) or any(holds(freed, steps, before) for before in range(now, then))
                for then in range(now, len(steps))
            )
        case WeakUntil(kept, goal):
            return holds(Until(kept, goal), steps, now) or holds(Always(kept), steps, now)
        case Yesterday(operand):
            return now > 0 and holds(operand, steps, now - 1)
        case Once(operand):
            return any(holds(operand, steps, then) for then in range(now + 1))
        case Historically(operand):
            return all(holds(operand, steps, then) for then in range(now + 1))
        case Since(kept, start):
            return any(
                holds(start, steps, then) and all(holds(kept, steps, later) for later in range(then + 1, now + 1))
                for then in range(now + 1)
            )


def completions(steps: Sequence[Mapping[str, bool | None]], names: Iterable[str]) -> list[list[dict[str, bool]]]:
    """Every whole trace that a trace with unknown (absent or None) values may stand for."""
    wanted = tuple(names)
    choices = [(False, True) if step.get(name) is None else (bool(step[name]),) for step in steps for name in wanted]
    return [
        [dict(zip(wanted, values[at : at + len(wanted)], strict=True)) for at in range(0, len(values), len(wanted))]
        if wanted
        else [{} for _ in steps]
        for values in product(*choices)
    ]
