"""Margins by pgmpy: a Markov network with one factor per rule, asked by variable elimination."""

import itertools
import json
import math
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")

from pgmpy.factors.discrete import DiscreteFactor  # noqa: E402
from pgmpy.inference import VariableElimination  # noqa: E402
from pgmpy.models import DiscreteMarkovNetwork  # noqa: E402


def build(rules):
    model = DiscreteMarkovNetwork()
    factors = []
    for rule in rules:
        names = rule["names"]
        model.add_nodes_from(names)
        model.add_edges_from(itertools.combinations(names, 2))
        # pgmpy's first variable is the slowest; our tables have the first predicate lowest.
        values = [math.exp(rule["weight"] * value) for value in rule["values"]]
        factors.append(DiscreteFactor(list(reversed(names)), [2] * len(names), values))
    model.add_factors(*factors)
    return VariableElimination(model)


def query(engine, evidence):
    without, taken = engine.query(["act"], evidence=evidence, show_progress=False).values
    return float((taken - without) / (taken + without))


def main():
    whole, bare, margins = [], [], []
    for question in json.load(sys.stdin):
        start = time.process_time_ns()
        engine = build(question["tables"])
        evidence = {name: int(value) for name, value in question["evidence"].items() if name in engine.model.nodes}
        margins.append(query(engine, evidence))
        whole.append((time.process_time_ns() - start) / 1e3)
        start = time.process_time_ns()
        query(engine, evidence)
        bare.append((time.process_time_ns() - start) / 1e3)
    print(json.dumps({"whole": statistics.median(whole), "query": statistics.median(bare), "margins": margins}))


main()
