"""Circuits: the weights of a pack's soft rules, learned from labelled calls in the logs (ShieldAgent, section 3.2.4).

No model is asked. What is learned stands in `weights.yaml`, how right the rules are with and without it beside it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from bylaw.compile.check import Question
from bylaw.compile.lesson import Label, Lesson, soft_rules, teach
from bylaw.pack import Pack
from bylaw.policy.yaml import read_yaml
from bylaw.rule.rule import Rule
from bylaw.scan.written import dump
from bylaw.trace import Trajectory


class Weighed(Struct, frozen=True):
    """What the labels taught."""

    weights: str
    """`weights.yaml`."""
    record: dict[str, Any]
    """For `compiled.yaml`."""
    questions: dict[str, list[Question]]
    """By policy what a reviewer has to look at: a rule that no longer stops a call."""


def learn_weights(
    files: Mapping[str, str], trajectories: Sequence[Trajectory], labels: Mapping[str, Sequence[Label]]
) -> Weighed | None:
    """Weights for the rules of a pack that loads; None where no rule has a weight."""
    pack = Pack.from_files(files)
    if not soft_rules(pack):
        return None
    lesson = teach(pack, trajectories, labels)
    record = _record(lesson)
    weights = {"weights": lesson.learned.weights, "eps": round(lesson.learned.eps, 6), "learned": record}
    questions: dict[str, list[Question]] = {}
    for place, rule in enumerate(lesson.rules):
        if -lesson.learned.weights[rule.name] >= lesson.learned.threshold:
            questions.setdefault(rule.policy, []).append(_question(lesson, place, rule))
    return Weighed(dump(weights), record, questions)


def told_weights(weights: str) -> str:
    """What `weights.yaml` says of itself, in a line."""
    learned = read_yaml(weights, file="weights.yaml").data["learned"]
    shares = [f"{learned.get(f'kept_back_right_{each}_weights', 0):.1%}" for each in ("with", "without")]
    if not learned.get("kept_back"):
        return f"weights: {learned['examples']} labelled calls, none kept back"
    return (
        f"weights: {learned['examples']} labelled calls; of {learned['kept_back']} kept back the rules are right about"
        f" {shares[0]} with them and {shares[1]} without"
    )


def _record(lesson: Lesson) -> dict[str, Any]:
    """How many examples, and the share that the rules are right about with weights of 1 and with the learned ones."""
    record: dict[str, Any] = {"labels": "given", "loss": "hinge"}
    for name, examples in (("examples", lesson.taught), ("kept_back", lesson.kept_back)):
        record[name] = len(examples)
        if examples:
            before, after = lesson.right(examples)
            record[f"{name}_safe"] = sum(each.safe for each in examples)
            record[f"{name}_right_without_weights"] = round(before, 4)
            record[f"{name}_right_with_weights"] = round(after, 4)
    if lesson.learned.untouched:
        record["no_example_speaks_of"] = list(lesson.learned.untouched)
    return record


def _question(lesson: Lesson, place: int, rule: Rule) -> Question:
    against = [each for each in lesson.taught if each.leans[place] < 0]
    safe = sum(each.safe for each in against)
    text = (
        f"weight {lesson.learned.weights[rule.name]:.2f}: where `{rule.name}` alone is broken, a shield lets the call"
        f" pass; of {len(against)} labelled calls that break it, {safe} are labelled safe"
    )
    return Question("a rule that its learned weight silences", text)
