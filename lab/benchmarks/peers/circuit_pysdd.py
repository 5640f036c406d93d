"""Margins by PySDD: each rule has an indicator variable equivalent to it, which carries the weight."""

import json
import math
import statistics
import sys
import time

from pysdd.sdd import SddManager, Vtree


def build(manager, literals, formula):
    kind, *parts = formula
    if kind == "atom":
        return literals[parts[0]]
    made = [build(manager, literals, part) for part in parts]
    return ~made[0] if kind == "not" else made[0] & made[1] if kind == "and" else made[0] | made[1]


def compile_query(rules):
    names = sorted({name for rule in rules for name in rule["names"]} | {"act"})
    count = len(names) + len(rules)
    manager = SddManager.from_vtree(Vtree(count, list(range(1, count + 1)), "balanced"))
    literals = {name: manager.literal(i + 1) for i, name in enumerate(names)}
    theory = manager.true()
    for number, rule in enumerate(rules):
        indicator = manager.literal(len(names) + number + 1)
        body = build(manager, literals, rule["formula"])
        theory = theory & ((indicator & body) | (~indicator & ~body))
    return names, manager, literals, theory


def query(names, literals, theory, rules):
    counter = theory.wmc(log_mode=False)
    for number, rule in enumerate(rules):
        counter.set_literal_weight(theory.manager.literal(len(names) + number + 1), math.exp(rule["weight"]))
    act = literals["act"]
    counter.propagate()
    taken, without = counter.literal_pr(act), counter.literal_pr(-act)
    return (taken - without) / (taken + without)


def main():
    whole, bare, margins = [], [], []
    for question in json.load(sys.stdin):
        rules = question["formulas"]
        start = time.process_time_ns()
        names, manager, literals, theory = compile_query(rules)
        margins.append(query(names, literals, theory, rules))
        whole.append((time.process_time_ns() - start) / 1e3)
        start = time.process_time_ns()
        query(names, literals, theory, rules)
        bare.append((time.process_time_ns() - start) / 1e3)
        del theory, literals, manager
    print(json.dumps({"whole": statistics.median(whole), "query": statistics.median(bare), "margins": margins}))


main()
