"""What recorded conversations teach about a pack's rules: labelled calls for their weights, episodes for their risk.

The weights of soft rules (ShieldAgent, section 3.2.4) are learned without a model. They stand in `weights.yaml`, how
right the rules are with and without them beside them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from bylaw.compile.check import Question
from bylaw.engine.conduct import binding_of
from bylaw.engine.finished import verdicts
from bylaw.engine.session import Session
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.policy.yaml import read_yaml
from bylaw.rule.act import Act
from bylaw.rule.circuit import Speech
from bylaw.rule.formula import atoms
from bylaw.rule.learning import (
    LabelledAct,
    Learned,
    Loss,
    accuracy,
    learn,
    threshold_for,
    threshold_of,
    worst_leans,
)
from bylaw.rule.rule import Rule
from bylaw.scan.written import dump
from bylaw.trace.event import Call
from bylaw.trace.trajectory import Trajectory

LEANS: dict[Speech, float] = {"against": -1.0, "for": 1.0}
Acts = Sequence[tuple[Act, dict[str, bool | None]]]


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's word on a call, or, without a step, on a whole conversation."""

    trajectory: str
    safe: bool
    step: int | None = None


def read_labels(path: Path) -> dict[str, list[Label]]:
    """Labels by conversation, from lines of JSON."""
    found: dict[str, list[Label]] = {}
    decoder = msgspec.json.Decoder(Label)
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                label = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                hint = 'write lines like {"trajectory": "sam", "step": 1, "safe": false}'
                raise UsageError(f"not a label: {error}", place=f"{path}:{number}", hint=hint) from None
            found.setdefault(label.trajectory, []).append(label)
    return found


def soft_rules(pack: Pack) -> list[Rule]:
    """The rules whose weight matters."""
    return [rule for rule in pack.book.rules if not rule.hard]


def labelled(pack: Pack, trajectory: Trajectory, labels: Sequence[Label] | None) -> list[LabelledAct]:
    """What the soft rules say of the calls of a conversation that have a label.

    Without `labels` the guards give them: unsafe where the audit says violation, safe where it says compliant.
    """
    said = leans(pack, trajectory)
    if labels is None:
        judged = {call.made.step: call.determined for call in verdicts(pack, trajectory).calls}
        named = {step: word == "compliant" for step, word in judged.items() if word in ("compliant", "violation")}
        labels = [Label(trajectory.id, safe, step) for step, safe in named.items()]
    for label in labels:
        if label.step is not None and label.step not in said:
            raise UsageError(f"step {label.step} of `{trajectory.id}` is not a call of the agent")
    steps = [LabelledAct(said[label.step], label.safe) for label in labels if label.step is not None]
    wholes = [LabelledAct(worst_leans(said.values()), label.safe) for label in labels if label.step is None and said]
    return steps + wholes


def leans(pack: Pack, trajectory: Trajectory) -> dict[int, tuple[float, ...]]:
    """By step, what each soft rule says of a call: -1 against it, 1 for it, 0 nothing, or nothing that is certain."""
    names = [rule.name for rule in soft_rules(pack)]
    session = Session(pack)
    found: dict[int, tuple[float, ...]] = {}
    for step, event in enumerate(trajectory.events):
        weighed = session.weigh(event) if isinstance(event, Call) else None
        if weighed is not None:
            said: dict[str, float] = {state.name: LEANS.get(state.speech, 0.0) for state in weighed.rules}
            found[step] = tuple(said[name] for name in names)
        session.observe(event)
    return found


class Lesson(Struct, frozen=True):
    """What labelled calls taught: weights for the soft rules, and how right the rules are with and without them."""

    learned: Learned
    taught: list[LabelledAct]
    kept_back: list[LabelledAct]
    """Every fifth conversation, which the weights were not learned from."""
    rules: list[Rule]
    eps: float
    """The pack's own margin."""

    def right(self, examples: Sequence[LabelledAct]) -> tuple[float, float]:
        """The share of examples that the rules are right about: with the pack's weights, and with the learned ones."""
        before = accuracy(examples, [rule.weight for rule in self.rules], threshold_of(self.eps))
        after = [self.learned.weights[rule.name] for rule in self.rules]
        return before, accuracy(examples, after, self.learned.threshold)


def teach(
    pack: Pack,
    trajectories: Iterable[Trajectory],
    labels: Mapping[str, Sequence[Label]] | None,
    *,
    loss: Loss = "hinge",
    false_alarms: float | None = None,
) -> Lesson:
    """Learn the weights of a pack's soft rules; without `labels` the guards say which calls were safe."""
    rules = soft_rules(pack)
    if not rules:
        raise UsageError(f"`{pack.name}` has no rule whose weight matters", hint="rules with `hard: true` have none")
    by_talk: list[list[LabelledAct]] = []
    unused = dict(labels) if labels is not None else {}
    for trajectory in trajectories:
        mine = labelled(pack, trajectory, None if labels is None else unused.pop(trajectory.id, ()))
        by_talk += [mine] if mine else []
    if unused:
        raise UsageError(f"no conversation `{next(iter(unused))}` in these logs")
    kept_back = [example for mine in by_talk[4::5] for example in mine]
    taught = [example for number, mine in enumerate(by_talk) if number % 5 != 4 for example in mine]
    if not taught:
        raise UsageError("no call in these logs has a label", hint="give --labels FILE, or logs with judged writes")
    found = learn(taught, [rule.name for rule in rules], loss=loss)
    if false_alarms is not None:
        limit = threshold_for(taught, list(found.weights.values()), false_alarms)
        found = Learned(weights=found.weights, threshold=limit, untouched=found.untouched)
    return Lesson(found, taught, kept_back, rules, pack.book.eps)


Episode = list[dict[str, bool]]
"""What a rule saw of one conversation: its predicates at each act."""


class Episodes(Struct):
    """What one rule saw of recorded conversations; a `FOR EACH` rule, of each value apart."""

    rule: Rule
    seen: list[Episode] = field(default_factory=list[Episode])
    left_out: int = 0
    """Those in which some predicate of the rule had no value."""


def episodes(pack: Pack, trajectories: Iterable[Trajectory]) -> list[Episodes]:
    """What every rule saw of these conversations."""
    found = [Episodes(rule) for rule in pack.book.rules]
    for trajectory in trajectories:
        acts = Session(pack).acts(trajectory.events)
        for each in found:
            for episode in _seen_by(each.rule, acts, pack.book.actions):
                known: Episode = [{name: value for name, value in act.items() if value is not None} for act in episode]
                if known == episode:
                    each.seen.append(known)
                else:
                    each.left_out += 1
    return found


def _seen_by(rule: Rule, acts: Acts, actions: Sequence[str]) -> Iterator[list[dict[str, bool | None]]]:
    """The rule's predicates at each act; for a `FOR EACH` rule once for each value that the acts name."""
    names = atoms(rule.formula)
    if not rule.for_each:
        yield [{name: values[name] for name in names} for _, values in acts]
        return
    about = [binding_of(act, rule.for_each) for act, _ in acts]
    for binding in dict.fromkeys(filter(None, about)):
        yield [
            {
                name: values[name] and (False if there is not None else None)
                if name in actions and there != binding
                else values[name]
                for name in names
            }
            for (_, values), there in zip(acts, about, strict=True)
        ]


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
