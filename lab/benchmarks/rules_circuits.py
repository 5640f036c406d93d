"""Circuits beside their peers, in one run: everything known, unknown predicates, pgmpy, PySDD, learned weights.

    python lab/benchmarks/rules_circuits.py            # peers each in a venv of their own, made on first use
    python lab/benchmarks/rules_circuits.py --no-peers

Times are medians of CPU time per query, in microseconds; every query has evidence of its own.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rules_learning import learning

from bylaw.rule import elimination
from bylaw.rule.circuit import Circuit
from bylaw.rule.formula import And, Atom, Formula, Implies, Not, Or, atoms
from bylaw.rule.inference import Inference
from bylaw.rule.monitors import MonitorSet
from bylaw.rule.rule import Rule, read_rule
from bylaw.rule.table import condition, table_of

PEERS = {"pgmpy": "pgmpy==1.1.2", "pysdd": "pysdd==1.0.0"}
HERE = Path(__file__).parent


def median(function: Callable[[object], object], items: Iterable[object]) -> float:
    """The median CPU time of one call, in microseconds."""
    times: list[float] = []
    for item in items:
        start = time.process_time_ns()
        function(item)
        times.append((time.process_time_ns() - start) / 1e3)
    return statistics.median(times)


def bounded_circuit(
    rng: random.Random, *, unknown: int = 15, known: int = 15, width: int = 5, rules: int = 30
) -> Circuit:
    """Rules over the cliques of a random tree of cliques, so that eliminating the unknown predicates has this width."""
    faces = [list(range(width))]
    cliques: list[list[int]] = []
    for new in range(width, unknown):
        face = rng.choice(faces)
        cliques.append([*face, new])
        faces += [[*face[:i], *face[i + 1 :], new] for i in range(width)]
    made: list[Rule] = []
    for number in range(rules):
        near = [f"u{i}" for i in rng.sample(rng.choice(cliques), rng.randint(2, 4))]
        body: Formula | None = None
        for name in [*near, f"k{rng.randrange(known)}"]:
            literal: Formula = Not(Atom(name)) if rng.random() < 0.4 else Atom(name)
            body = literal if body is None else rng.choice([And, Or])(body, literal)
        assert body is not None
        made.append(Rule(name=f"r{number}", formula=Implies(Atom("act"), body), weight=round(rng.uniform(0.2, 3), 3)))
    return Circuit(action="act", rules=tuple(made))


def all_known() -> None:
    """Thirty temporal rules, step and margin, beside a bare loop over thirty table look-ups."""
    rng = random.Random(1)
    shapes = [
        "ALWAYS (act IMPLIES ONCE {})",
        "ALWAYS (act IMPLIES NOT ONCE {})",
        "ALWAYS ({} IMPLIES WEAK_NEXT NOT act)",
        "NOT act WEAK_UNTIL {}",
        "ALWAYS (act IMPLIES {} OR {})",
    ]
    names = [f"p{i}" for i in range(20)]
    rules = [
        read_rule(f"r{i}", shapes[i % 5].format(*rng.sample(names, 2)), weight=rng.uniform(0.2, 3)) for i in range(30)
    ]
    watched = MonitorSet(rules)
    acts = [rng.getrandbits(len(watched.predicates)) for _ in range(50_000)]
    repeated = [acts[i] for i in (rng.randrange(50) for _ in range(50_000))]
    tables = [[[rng.randrange(3) for _ in range(4)] for _ in range(3)] for _ in range(30)]
    letters = [[rng.randrange(4) for _ in range(30)] for _ in range(1000)]

    def bare() -> float:
        states = [0] * 30
        start = time.process_time_ns()
        for letter in letters * 20:
            for i in range(30):
                states[i] = tables[i][states[i]][letter[i]]
        return (time.process_time_ns() - start) / 1e3 / 20_000

    def ours(values: list[int]) -> float:
        act = watched.act
        start = time.process_time_ns()
        for each in values:
            act("act", each)
        return (time.process_time_ns() - start) / 1e3 / len(values)

    floor, fresh, seen = (
        min(bare() for _ in range(3)),
        min(ours(acts) for _ in range(3)),
        min(ours(repeated) for _ in range(3)),
    )
    print("30 rules, all known: monitor step and margin, us per act")
    print(f"  bare loop over 30 table look-ups      {floor:8.2f}")
    print(f"  ours, every act at random             {fresh:8.2f}   {fresh / floor:.1f} x the bare loop")
    print(f"  ours, 50 different acts               {seen:8.2f}   {seen / floor:.1f} x the bare loop")


def unknown(circuits: list[Circuit], evidence: list[list[dict[str, bool]]]) -> dict[str, float]:
    """Fifteen unknown predicates at width up to 5, and what lies above the cap."""
    ready = [Inference(circuit) for circuit in circuits]
    queries = [(one, each) for one, own in zip(ready, evidence, strict=True) for each in own]
    for one, own in zip(ready, evidence, strict=True):
        one.assess(own[0])
    margin = median(lambda q: q[0].margin(q[1]), queries)  # type: ignore[index]
    whole = median(lambda q: q[0].assess(q[1]), queries)  # type: ignore[index]

    def cold(query: tuple[Circuit, dict[str, bool]]) -> None:
        elimination.plan.cache_clear()
        elimination.elimination_order.cache_clear()
        Inference(query[0]).margin(query[1])

    first = median(cold, [(c, each) for c, own in zip(circuits, evidence, strict=True) for each in own[:10]])  # type: ignore[arg-type]
    narrow = [Inference(Circuit(action="act", rules=c.rules, width_cap=2)) for c in circuits]
    capped = [one.assess(own[0]) for one, own in zip(narrow, evidence, strict=True)]
    beyond = median(
        lambda q: q[0].assess(q[1]),  # type: ignore[index]
        [(one, each) for one, own in zip(narrow, evidence, strict=True) for each in own],
    )
    print("30 rules, 15 unknown predicates, width up to 5, us per query")
    print(f"  exact margin                          {margin:8.0f}")
    print(f"  margin, interval, states, influence   {whole:8.0f}")
    print(f"  exact margin, circuit compiled anew   {first:8.0f}")
    given = sum(each.margin is not None for each in capped)
    print(f"  above the cap (cap 2): interval only  {beyond:8.0f}   margins given: {given}")
    return {"margin": margin, "cold": first}


def question(circuit: Circuit, evidence: dict[str, bool]) -> dict[str, object]:
    """A query for the peers: whole tables and the evidence, and formulas with what is known put in already."""
    tables = [table_of(rule.formula) for rule in circuit.rules]
    left = [(condition(rule.formula, evidence), rule.weight) for rule in circuit.rules]
    return {
        "evidence": evidence,
        "tables": [
            {"names": table.atoms, "values": list(table.values), "weight": rule.weight}
            for table, rule in zip(tables, circuit.rules, strict=True)
        ],
        "formulas": [
            {"names": atoms(formula), "weight": weight, "formula": _nested(formula)}
            for formula, weight in left
            if atoms(formula)
        ],
    }


def _nested(formula: Formula) -> list[object]:
    match formula:
        case Atom(name):
            return ["atom", name]
        case Not(operand):
            return ["not", _nested(operand)]
        case And(left, right):
            return ["and", _nested(left), _nested(right)]
        case Or(left, right):
            return ["or", _nested(left), _nested(right)]
    raise AssertionError(formula)


def peers(circuits: list[Circuit], evidence: list[list[dict[str, bool]]], ours: dict[str, float], venvs: Path) -> None:
    """The same queries by the peers; PySDD is spared the known predicates, which are put in beforehand."""
    queries = [(c, each) for c, own in zip(circuits, evidence, strict=True) for each in own[:5]]
    text = json.dumps([question(*query) for query in queries])
    margins = [Inference(c).margin(each) for c, each in queries]
    for name, requirement in PEERS.items():
        python = venvs / name / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(venvs / name)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", requirement], check=True)
        run = subprocess.run(
            [str(python), str(HERE / "peers" / f"circuit_{name}.py")],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            print(f"  {name}: failed\n{run.stderr[-2000:]}")
            continue
        found = json.loads(run.stdout.splitlines()[-1])
        worst = max(abs(a - b) for a, b in zip(margins, found["margins"], strict=True) if a is not None)
        print(f"{requirement}, the same {len(queries)} queries; largest difference of margins {worst:.1e}")
        for what, (own, label) in {"query": ("margin", "bare query"), "whole": ("cold", "compilation counted")}.items():
            if what in found:
                factor = found[what] / ours[own]
                print(f"  {label:<24} peer {found[what]:10.0f}   ours {ours[own]:8.0f}   {factor:6.1f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-benchmarks")
    options = parser.parse_args()
    rng = random.Random(2)
    circuits = [bounded_circuit(rng) for _ in range(6)]
    evidence = [[{f"k{i}": rng.random() < 0.5 for i in range(15)} for _ in range(60)] for _ in circuits]
    all_known()
    ours = unknown(circuits, evidence)
    if not options.no_peers:
        peers(circuits, evidence, ours, options.venvs)
    learning()


if __name__ == "__main__":
    main()
