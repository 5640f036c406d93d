"""Run by `rules_temporal.py` inside a peer's own environment: a question on stdin, time per rule and step on stdout."""

import json
import sys
import time


def main() -> None:
    question = json.load(sys.stdin)
    measure = {"agentltl": agentltl, "ltl-harness": ltl_harness}[question["peer"]](question["kind"])
    steps = sum(map(len, question["traces"]))
    best = min(measure(question["traces"]) for _ in range(20))
    json.dump({"us": best / steps * 1e6}, sys.stdout)


def agentltl(kind):
    """Each act is a call of the tool `a`, `b` or another; the enforcer judges it and then it is recorded."""
    from agentltl import Constraint, Eventually, Globally, Implies, Not, Now, WeakUntil
    from agentltl.enforcer import Enforcer

    formula = {
        "response": Globally(Implies(Now("a"), Eventually(Now("b")))),
        "precedence": WeakUntil(Not(Now("a")), Now("b")),
    }[kind]

    def measure(traces):
        enforcers = [Enforcer([Constraint("r", formula)]) for _ in traces]
        start = time.perf_counter()
        for enforcer, trace in zip(enforcers, traces, strict=True):
            for step in trace:
                tool = name(step)
                enforcer.check(tool)
                enforcer.record_completed(tool)
        return time.perf_counter() - start

    return measure


def ltl_harness(kind):
    """Its monitor's `advance`, after its PreToolUse question."""
    from ltl_harness.engine.dfa import compile_formula
    from ltl_harness.engine.monitor import RunMonitor
    from ltl_harness.engine.rulebook import Rule, Rulebook

    formula = {"response": "G(a -> F(b))", "precedence": "(G(!a)) | ((!a) U b)"}[kind]
    rule = Rule("r", "", "LTLf", {}, "seatbelt", formula, "", compile_formula(formula))
    book = Rulebook("bench", 1, "", {}, ["a", "b"], [rule])

    def measure(traces):
        monitors = [RunMonitor(book) for _ in traces]
        start = time.perf_counter()
        for monitor, trace in zip(monitors, traces, strict=True):
            for step in trace:
                monitor.advance(name(step))
        return time.perf_counter() - start

    return measure


def name(step):
    return "b" if step["b"] else "a" if step["a"] else "other"


main()
