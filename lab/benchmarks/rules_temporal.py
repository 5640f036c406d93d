"""How fast rules are compiled and followed, beside a bare loop over table look-ups and two peers in the same run.

    python lab/benchmarks/rules_temporal.py [--peers FOLDER]

With `--peers` (a folder for their virtual environments, made where absent) agentltl and ltl-harness answer the same
query as we do: the same rules over the same acts, one act at a time.
"""

import argparse
import json
import random
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path

from bylaw.rule import automaton, program, rulebook
from bylaw.rule.monitor import Monitor
from bylaw.rule.monitors import MonitorSet
from bylaw.rule.rule import Rule, read_rule

SHAPES = (
    "ALWAYS ({a} IMPLIES ONCE {b})",
    "ALWAYS ({a} AND {c} IMPLIES YESTERDAY {b})",
    "(NOT {a}) WEAK_UNTIL {b}",
    "ALWAYS ({a} IMPLIES NEXT {b})",
    "ALWAYS ({a} IMPLIES {b} OR {c})",
    "ALWAYS ({a} AND {c} IMPLIES ({b} SINCE {c}))",
)
PEER_RULES = (("ALWAYS ({a} IMPLIES EVENTUALLY {b})", "response"), ("(NOT {a}) WEAK_UNTIL {b}", "precedence"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--peers", type=Path)
    chosen = options.parse_args()
    dice = random.Random(5)
    compiling()
    following(dice)
    if chosen.peers:
        peers(chosen.peers, dice)


def best(measure: Callable[[], float], rounds: int = 60) -> float:
    """The least of many short measurements: what the code takes when nothing else runs."""
    return min(measure() for _ in range(rounds))


def compiling() -> None:
    """A thousand rules, from text to tables: of six shapes, and all of different shapes."""
    texts = [SHAPES[i % len(SHAPES)].format(a=f"a{i}", b=f"b{i}", c=f"c{i}") for i in range(1000)]
    print(f"compile 1,000 rules of 6 shapes        {_compile(texts):8.3f} s")
    print(f"compile 1,000 rules of 1,000 shapes    {_compile(_different(1000)):8.3f} s")


def _compile(texts: list[str]) -> float:
    def once() -> float:
        for cache in (program.program, automaton._pair, rulebook._book):
            cache.cache_clear()
        start = time.perf_counter()
        MonitorSet([read_rule(f"r{i}", text) for i, text in enumerate(texts)])
        return time.perf_counter() - start

    return best(once, 3)


def _different(count: int) -> list[str]:
    """Rules no two of which have the same temporal skeleton."""
    scopes = [
        "{}",
        "EVENTUALLY r AND {}",
        "{} OR ALWAYS NOT r",
        "(NOT r) UNTIL s AND {}",
        "{} OR EVENTUALLY (r AND NEXT s)",
    ]
    whens = ["a", "NEXT a", "YESTERDAY a", "(a SINCE d)", "ONCE a", "(a AND WEAK_NEXT d)", "HISTORICALLY a"]
    thens = ["b", "ONCE b", "EVENTUALLY b", "NEXT b", "(b UNTIL c)", "(c RELEASE b)", "(b WEAK_UNTIL c)", "(b SINCE c)"]
    frames = ["ALWAYS ({} IMPLIES {})", "EVENTUALLY ({} AND {})", "({}) WEAK_UNTIL ({})", "({}) RELEASE ({})"]
    found = [
        scope.format("(" + frame.format(when, then) + ")")
        for scope in scopes
        for frame in frames
        for when in whens
        for then in thens
    ]
    return [found[i % len(found)] for i in range(count)]


def example_rules(dice: random.Random, count: int) -> list[Rule]:
    """Rules that nearly all speak of one action, over thirty or so predicates."""
    names = [f"p{i}" for i in range(40)]
    rules: list[Rule] = []
    for i in range(count):
        b, c = dice.sample(names, 2)
        action = "pay" if i % 5 else "refund"
        rules.append(read_rule(f"r{i}", SHAPES[i % len(SHAPES)].format(a=action, b=b, c=c), weight=0.5 + i % 3))
    return rules


def following(dice: random.Random) -> None:
    """Thirty rules, everything known: the monitor step and the margin, beside a bare loop over thirty tables."""
    monitors = MonitorSet(example_rules(dice, 30))
    width = len(monitors.predicates)

    def sparse() -> int:
        return sum(1 << place for place in dice.sample(range(width), dice.randint(1, 6)))

    pool = [sparse() for _ in range(300)]

    def ours(acts: list[int]) -> float:
        act = monitors.act
        start = time.perf_counter()
        for values in acts:
            act("pay", values)
        return (time.perf_counter() - start) / len(acts) * 1e6

    tables = [[[dice.randrange(3) for _ in range(8)] for _ in range(3)] for _ in range(30)]

    def bare() -> float:
        letters = [[dice.randrange(8) for _ in range(30)] for _ in range(300)]
        states = [0] * 30
        start = time.perf_counter()
        for letter in letters:
            for i in range(30):
                states[i] = tables[i][states[i]][letter[i]]
        return (time.perf_counter() - start) / len(letters) * 1e6

    floor = best(bare)
    print(f"bare loop over 30 table look-ups       {floor:8.2f} us")
    for label, acts in (
        ("acts that come again", lambda: dice.choices(pool, k=300)),
        ("acts never seen before, few true", lambda: [sparse() for _ in range(300)]),
        ("acts never seen before, half true", lambda: [dice.getrandbits(width) for _ in range(300)]),
    ):
        taken = best(lambda acts=acts: ours(acts()))
        floor = best(bare)
        print(f"step and margin, 30 rules              {taken:8.2f} us  {taken / floor:4.1f} x bare  ({label})")


def peers(folder: Path, dice: random.Random) -> None:
    """The same rules over the same trace, one act at a time, by us and by the peers: microseconds per rule and step."""
    kinds = [dice.choices("abo", (1, 3, 6), k=50) for _ in range(4)]
    traces = [[{"a": kind == "a", "b": kind == "b"} for kind in trace] for trace in kinds]
    for shape, kind in PEER_RULES:
        rule = read_rule("r", shape.format(a="a", b="b"))

        def ours(rule: Rule = rule) -> float:
            start = time.perf_counter()
            for trace in traces:
                monitor = Monitor(rule)
                for step in trace:
                    monitor.step(step)
            return (time.perf_counter() - start) / sum(map(len, traces)) * 1e6

        print(f"{kind:12} bylaw, one monitor          {best(ours):8.2f} us per rule and step")
        for peer in ("agentltl", "ltl-harness"):
            print(f"{kind:12} {peer:27} {_ask(folder, peer, kind, traces)}")


def _ask(folder: Path, peer: str, kind: str, traces: list[list[dict[str, bool]]]) -> str:
    place = folder / peer
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", peer], check=True)
    script = Path(__file__).with_name("rules_temporal_peer.py")
    question = json.dumps({"peer": peer, "kind": kind, "traces": traces})
    answer = subprocess.run([python, script], input=question, capture_output=True, text=True, check=False)
    if answer.returncode:
        return f"failed: {answer.stderr.strip().splitlines()[-1:]}"
    return f"{json.loads(answer.stdout)['us']:8.2f} us per rule and step"


if __name__ == "__main__":
    sys.exit(main())
