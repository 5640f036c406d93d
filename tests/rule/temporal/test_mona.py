"""The engine against MONA: both automata are walked side by side over every word."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
from bylaw.rule.monitor import program

from .formulas import every_step, random_formula

pytestmark = pytest.mark.skipif(shutil.which("mona") is None, reason="MONA is not installed")


def first_order(formula: Formula, now: str, fresh: int = 0) -> str:
    """The formula in monadic logic over the positions of a string, `max($)` being the last."""
    then, other = f"x{fresh}", f"y{fresh}"

    def at(part: Formula, place: str) -> str:
        return first_order(part, place, fresh + 1)

    match formula:
        case Constant(value):
            return "true" if value else "false"
        case Atom(name):
            return f"({now} in {name.upper()})"
        case Not(operand):
            return f"(~{at(operand, now)})"
        case And(left, right):
            return f"({at(left, now)} & {at(right, now)})"
        case Or(left, right):
            return f"({at(left, now)} | {at(right, now)})"
        case Xor(left, right):
            return f"(~({at(left, now)} <=> {at(right, now)}))"
        case Implies(left, right):
            return f"({at(left, now)} => {at(right, now)})"
        case Next(operand):
            return f"({now} < max($) & ex1 {then}: {then} = {now} + 1 & {at(operand, then)})"
        case WeakNext(operand):
            return f"({now} < max($) => ex1 {then}: {then} = {now} + 1 & {at(operand, then)})"
        case Always(operand):
            return f"(all1 {then}: {now} <= {then} => {at(operand, then)})"
        case Eventually(operand):
            return f"(ex1 {then}: {now} <= {then} & {at(operand, then)})"
        case Until(kept, goal):
            before = f"all1 {other}: ({now} <= {other} & {other} < {then}) => {at(kept, other)}"
            return f"(ex1 {then}: {now} <= {then} & {at(goal, then)} & ({before}))"
        case Release(freed, kept):
            before = f"ex1 {other}: {now} <= {other} & {other} < {then} & {at(freed, other)}"
            return f"(all1 {then}: {now} <= {then} => ({at(kept, then)} | ({before})))"
        case WeakUntil(kept, goal):
            return first_order(Or(Until(kept, goal), Always(kept)), now, fresh)
        case Yesterday(operand):
            return f"({now} > 0 & ex1 {then}: {now} = {then} + 1 & {at(operand, then)})"
        case Once(operand):
            return f"(ex1 {then}: {then} <= {now} & {at(operand, then)})"
        case Historically(operand):
            return f"(all1 {then}: {then} <= {now} => {at(operand, then)})"
        case Since(kept, start):
            after = f"all1 {other}: ({then} < {other} & {other} <= {now}) => {at(kept, other)}"
            return f"(ex1 {then}: {then} <= {now} & {at(start, then)} & ({after}))"


class Mona:
    """The automaton MONA makes of a formula over `a` and `b`."""

    def __init__(self, formula: Formula, folder: Path) -> None:
        file = folder / "formula.mona"
        file.write_text(f"m2l-str;\nvar2 A, B;\n{first_order(formula, '0')} & (A = A) & (B = B);\n")
        shown = subprocess.run(["mona", "-w", "-q", file], capture_output=True, text=True, check=True).stdout
        accepting = re.search(r"Accepting states: ([\d ]*)", shown)
        self.accepting = {int(state) for state in accepting[1].split()} if accepting else set()
        self.edges: dict[int, list[tuple[str, int]]] = {}
        for state, word, after in re.findall(r"State (\d+): ([01X]*) -> state (\d+)", shown):
            self.edges.setdefault(int(state), []).append((word, int(after)))
        [(_, self.start)] = self.edges[0]

    def step(self, state: int, values: str) -> int:
        for word, after in self.edges[state]:
            if all(bit in ("X", value) for bit, value in zip(word, values, strict=True)):
                return after
        raise AssertionError("an incomplete automaton")


def assert_same_language(formula: Formula, folder: Path) -> None:
    mona = Mona(formula, folder)
    ready = program(formula)
    ours = ready.pair.plain
    seen = {(ours.start, mona.start)}
    waiting = list(seen)
    for own, other in waiting:
        for step in every_step():
            pair = (
                ours.move(own, ready.letters(step)[0]),
                mona.step(other, "".join(str(int(step[name])) for name in "ab")),
            )
            assert ours.accepts(pair[0]) == (pair[1] in mona.accepting), str(formula)
            if pair not in seen:
                seen.add(pair)
                waiting.append(pair)


def test_five_hundred_random_formulas_have_the_language_that_mona_finds(tmp_path: Path) -> None:
    dice = random.Random(500)
    for _ in range(500):
        assert_same_language(random_formula(dice, dice.randint(2, 9)), tmp_path)
