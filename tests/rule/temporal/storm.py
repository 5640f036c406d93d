"""The risk report by the model checker Storm, where its Python binding `stormpy` is installed."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bylaw.rule.automaton import VERDICTS
from bylaw.rule.lines import Chain, Risk
from bylaw.rule.monitor import program
from bylaw.rule.rule import Rule

Place = tuple[int | None, int]
"""An act, or none before the first, and the state of the automaton after it."""


def has_storm() -> bool:
    """Whether `risk_by_storm` can run here."""
    return find_spec("stormpy") is not None


def prism_program(rule: Rule, chain: Chain) -> str:
    """The chain times the rule's automaton in the PRISM language, with the labels `broken` and `unmet`."""
    ready = program(rule.formula)
    face = ready.pair.plain
    begin: Place = (None, face.start)
    moves: dict[Place, dict[Place | str, float]] = {}
    waiting = [begin]
    for place in waiting:
        if place in moves:
            continue
        act, state = place
        follows = chain.first if act is None else chain.next.get(act, {})
        here = moves[place] = {"unmet": 0.0 if face.accepts(state) else 1.0 - sum(follows.values()), "broken": 0.0}
        for other, chance in follows.items():
            values = {name: bool(other >> bit & 1) for bit, name in enumerate(chain.names)}
            reached, verdict = face.step(state, ready.letters(values)[0])
            if VERDICTS[verdict or 0] == "permanently_violated":
                here["broken"] += chance
            else:
                here[other, reached] = chance
                waiting.append((other, reached))
    numbers: dict[Place | str, int] = {place: number for number, place in enumerate(moves)}
    numbers |= {"broken": len(moves), "unmet": len(moves) + 1}
    broken, unmet, over = numbers["broken"], numbers["unmet"], len(moves) + 2
    lines = [
        _line(numbers[place], {numbers[after]: chance for after, chance in here.items()}, over)
        for place, here in moves.items()
    ]
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
        model_text = storm.parse_prism_program(str(file))

    def ask(path: str) -> float:
        [wanted] = storm.parse_properties(f"P=? [{path}]", model_text)
        model = storm.build_model(model_text, [wanted])
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
    moves = " + ".join(f"{chance!r} : (s'={target})" for target, chance in sorted(kept.items()))
    return f"  [] s={number} -> {moves};"
