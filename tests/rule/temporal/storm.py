"""The risk report by the model checker Storm, where its Python binding `stormpy` is installed."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bylaw.rule.risk import Chain, Product, Risk
from bylaw.rule.rule import Rule


def has_storm() -> bool:
    """Whether `risk_by_storm` can run here."""
    return find_spec("stormpy") is not None


def prism_program(rule: Rule, chain: Chain) -> str:
    """The chain times the rule's automaton in the PRISM language, with the labels `broken` and `unmet`."""
    product = Product(rule, chain)
    numbers = {place: number for number, place in enumerate(product.moves, 1)}
    broken, unmet, over = (len(numbers) + more for more in (1, 2, 3))
    lines = [_line(0, {numbers[place]: chance for place, chance in product.first.items()}, broken)]
    for place, moves in product.moves.items():
        chances = {numbers[after]: chance for after, chance in moves.items()}
        chances[broken] = product.breaks[place]
        chances[unmet] = product.unmet[place]
        lines.append(_line(numbers[place], chances, over))
    lines += [f"  [] s={last} -> (s'={last});" for last in (broken, unmet, over)]
    return "\n".join(
        [
            "dtmc",
            "module rule",
            f"  s : [0..{over}] init 0;",
            *lines,
            "endmodule",
            f'label "broken" = s={broken};',
            f'label "unmet" = s={unmet};',
            "",
        ]
    )


def risk_by_storm(rule: Rule, chain: Chain, *, steps: int = 20) -> Risk:
    """What `risk.risk` gives, worked out by Storm."""
    storm: Any = import_module("stormpy")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rule.pm"
        file.write_text(prism_program(rule, chain))
        program = storm.parse_prism_program(str(file))

    def ask(path: str) -> float:
        [wanted] = storm.parse_properties(f"P=? [{path}]", program)
        model = storm.build_model(program, [wanted])
        result = storm.model_checking(model, wanted)
        # Bindings before 2.0 call it `at`.
        value = result.get_value if hasattr(result, "get_value") else result.at
        return float(value(model.initial_states[0]))

    return Risk(
        tuple(ask(f'F<={count} "broken"') for count in range(1, steps + 1)), ask('F "broken"'), ask('F "unmet"')
    )


def _line(number: int, chances: dict[int, float], rest: int) -> str:
    """One state's moves; what is left to one goes to `rest`."""
    left = 1.0 - sum(chances.values())
    kept = {target: chance for target, chance in chances.items() if chance > 0.0}
    if left > 1e-12:
        kept[rest] = kept.get(rest, 0.0) + left
    moves = " + ".join(f"{chance!r} : (s'={target})" for target, chance in kept.items())
    return f"  [] s={number} -> {moves};"
