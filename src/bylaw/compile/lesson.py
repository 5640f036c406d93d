"""Learns the weights of soft rules from labelled calls (ShieldAgent, section 3.2.4). Also collects episodes for
estimating the risk of rules.

Guards' verdicts are not used as labels: guards ignore consent and the rules, so weights learned from their verdicts
would disable rules.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from bylaw.compile.check import Question
from bylaw.engine.conduct import binding_of
from bylaw.engine.session import Session
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.rule.circuit import Speech
from bylaw.rule.formula import atoms
from bylaw.rule.learning import LabelledAct, Learned, Loss, accuracy, learn, threshold_for, worst_leans
from bylaw.rule.monitor import Act
from bylaw.rule.rule import Rule, threshold_of
from bylaw.scan.written import dump
from bylaw.trace.event import Call, Trajectory

LEANS: dict[Speech, float] = {"against": -1.0, "for": 1.0}
Acts = Sequence[tuple[Act, dict[str, bool | None]]]


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """A reviewer's judgement of a call or, without `step`, of the whole conversation."""

    trajectory: str
    safe: bool
    step: int | None = None
    rules: list[str] | None = None
    """The rules that the reviewer judged, or None for all rules."""


def read_labels(path: Path) -> dict[str, list[Label]]:
    """Read labels, one JSON object per line, and group them by conversation."""
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
    """Return the rules that have a weight."""
    return [rule for rule in pack.book.rules if not rule.hard]


def labelled(pack: Pack, trajectory: Trajectory, labels: Sequence[Label]) -> list[LabelledAct]:
    """Return the soft rules' values for each labelled call or conversation. Rules that the label does not judge have
    the value 0.

    Calls denied by a hard rule are left out, because weights do not affect them.
    """
    if not labels:
        return []
    names = [rule.name for rule in soft_rules(pack)]
    said = leans(pack, trajectory)
    found: list[LabelledAct] = []
    for label in labels:
        if label.step is not None and label.step not in said:
            raise UsageError(f"step {label.step} of `{trajectory.id}` is not a call of the agent")
        for name in label.rules or ():
            if all(rule.name != name for rule in pack.book.rules):
                raise UsageError(f"a label of `{trajectory.id}` names `{name}`, but the pack has no such rule")
        acts = list(said.values()) if label.step is None else [said[label.step]]
        spoken = worst_leans([act for act in acts if act is not None])
        if not spoken or None in acts:
            continue
        judged = names if label.rules is None else label.rules
        own = (lean if name in judged else 0.0 for name, lean in zip(names, spoken, strict=True))
        found.append(LabelledAct(tuple(own), label.safe))
    return found


def leans(pack: Pack, trajectory: Trajectory) -> dict[int, tuple[float, ...] | None]:
    """Return each soft rule's value for a call, keyed by step: -1 (against), 1 (for) or 0 (uncertain). None if a hard
    rule denies the call.
    """
    names = [rule.name for rule in soft_rules(pack)]
    session = Session(pack)
    found: dict[int, tuple[float, ...] | None] = {}
    for step, event in enumerate(trajectory.events):
        weighed = session.weigh(event) if isinstance(event, Call) else None
        if weighed is not None:
            said: dict[str, float] = {state.name: LEANS.get(state.speech, 0.0) for state in weighed.rules}
            found[step] = None if weighed.veto else tuple(said[name] for name in names)
        session.observe(event)
    return found


class Lesson(Struct, frozen=True):
    """The learned weights, with the rules' accuracy before and after learning."""

    learned: Learned
    taught: list[LabelledAct]
    kept_back: list[LabelledAct]
    """Examples held out from learning: the labels of every fifth conversation."""
    rules: list[Rule]
    eps: float
    """The margin that the pack sets."""

    def accuracies(self, examples: Sequence[LabelledAct]) -> tuple[float, float]:
        """Return the accuracy on these examples: first with the pack's weights, then with the learned weights."""
        before = accuracy(examples, [rule.weight for rule in self.rules], threshold_of(self.eps))
        after = [self.learned.weights[rule.name] for rule in self.rules]
        return before, accuracy(examples, after, self.learned.threshold)

    @property
    def fault(self) -> str:
        """Return why the weights must not be used. Empty if they improve the accuracy on held-out examples."""
        if not self.kept_back:
            return "no labelled conversation was held back (every fifth one is), so the weights could not be tested"
        before, after = self.accuracies(self.kept_back)
        if after > before:
            return ""
        change = "falls" if after < before else "does not rise"
        return f"accuracy on the {len(self.kept_back)} held-back examples {change} ({before:.1%} to {after:.1%})"

    @property
    def disarmed(self) -> list[Rule]:
        """Return the rules that can no longer deny a call on their own."""
        return [rule for rule in self.rules if -self.learned.weights[rule.name] >= self.learned.threshold]

    def file(self, labels: str, loss: Loss = "hinge") -> str:
        """Return the text of `weights.yaml`."""
        learned = self.record(labels, loss)
        return dump({"weights": self.learned.weights, "eps": round(self.learned.eps, 6), "learned": learned})

    def record(self, labels: str, loss: Loss = "hinge") -> dict[str, Any]:
        """Return the number of examples, the accuracy with the pack's weights, and the accuracy with the learned
        weights.
        """
        record: dict[str, Any] = {"labels": labels, "loss": loss}
        for name, examples in (("examples", self.taught), ("kept_back", self.kept_back)):
            record[name] = len(examples)
            if examples:
                before, after = self.accuracies(examples)
                record[f"{name}_safe"] = sum(each.safe for each in examples)
                record[f"{name}_right_without_weights"] = round(before, 4)
                record[f"{name}_right_with_weights"] = round(after, 4)
        if self.learned.untouched:
            record["no_example_speaks_of"] = list(self.learned.untouched)
        return record


def teach(
    pack: Pack,
    trajectories: Iterable[Trajectory],
    labels: Mapping[str, Sequence[Label]],
    *,
    loss: Loss = "hinge",
    false_alarms: float | None = None,
) -> Lesson:
    rules = soft_rules(pack)
    if not rules:
        hint = "rules with `hard: true` and rules about consent have no weight"
        raise UsageError(f"`{pack.name}` has no rule with a weight", hint=hint)
    unused = dict(labels)
    by_talk = [mine for each in trajectories if (mine := labelled(pack, each, unused.pop(each.id, ())))]
    if unused:
        raise UsageError(f"no conversation `{next(iter(unused))}` in these logs")
    kept_back = [example for mine in by_talk[4::5] for example in mine]
    taught = [example for number, mine in enumerate(by_talk) if number % 5 != 4 for example in mine]
    if not taught:
        raise UsageError("no call in these logs has a label", hint="label calls of these conversations in --labels")
    found = learn(taught, [rule.name for rule in rules], loss=loss)
    if false_alarms is not None:
        limit = threshold_for(taught, list(found.weights.values()), false_alarms)
        found = Learned(weights=found.weights, threshold=limit, untouched=found.untouched)
    return Lesson(found, taught, kept_back, rules, pack.book.eps)


Episode = list[dict[str, bool]]
"""The values of one rule's predicates at each act of one conversation."""


class Episodes(Struct):
    """One rule's predicate values in all recorded conversations. A `FOR EACH` rule has one episode for each value."""

    rule: Rule
    seen: list[Episode] = field(default_factory=list[Episode])
    left_out: int = 0
    """The number of episodes left out because one of the rule's predicates is unknown."""


def episodes(pack: Pack, trajectories: Iterable[Trajectory]) -> list[Episodes]:
    found = [Episodes(rule) for rule in pack.book.rules]
    for trajectory in trajectories:
        acts = Session(pack).acts(trajectory.events)
        for each in found:
            for episode in _seen_by(each.rule, acts, pack):
                known: Episode = [{name: value for name, value in act.items() if value is not None} for act in episode]
                if known == episode:
                    each.seen.append(known)
                else:
                    each.left_out += 1
    return found


def _seen_by(rule: Rule, acts: Acts, pack: Pack) -> Iterator[list[dict[str, bool | None]]]:
    """Yield the values of a rule's predicates at each act. A `FOR EACH` rule yields them once for each value in the
    acts.
    """
    names = atoms(rule.formula)
    if not rule.for_each:
        yield [{name: values[name] for name in names} for _, values in acts]
        return
    about = [binding_of(act, rule.for_each, pack.schema.tools) for act, _ in acts]
    for binding in dict.fromkeys(filter(None, about)):
        yield [
            {
                name: values[name] and (False if there is not None else None)
                if name in pack.book.actions and there != binding
                else values[name]
                for name in names
            }
            for (_, values), there in zip(acts, about, strict=True)
        ]


class Weighed(Struct, frozen=True):
    """What a compile learned from labels."""

    weights: str
    """The text of `weights.yaml`. Empty if the weights do not improve the accuracy on held-out examples."""
    record: dict[str, Any]
    questions: dict[str, list[Question]]
    """For each policy, a question about every rule that can no longer deny a call on its own."""


def learn_weights(
    files: Mapping[str, str], trajectories: Sequence[Trajectory], labels: Mapping[str, Sequence[Label]]
) -> Weighed | None:
    """Learn weights for the rules of a pack. Return None if no rule has a weight."""
    pack = Pack.from_files(files)
    if not soft_rules(pack):
        return None
    lesson = teach(pack, trajectories, labels)
    if lesson.fault:
        return Weighed("", lesson.record("given") | {"not_used": lesson.fault}, {})
    questions: dict[str, list[Question]] = {}
    for rule in lesson.disarmed:
        questions.setdefault(rule.policy, []).append(_question(lesson, rule))
    return Weighed(lesson.file("given"), lesson.record("given"), questions)


def describe_weights(learned: Mapping[str, Any]) -> str:
    """Describe a record of learned weights in one line."""
    examples, kept_back = learned.get("examples", 0), learned.get("kept_back")
    if "not_used" in learned:
        return f"weights: not used: {learned['not_used']}"
    if not kept_back:
        return f"weights: {examples} labelled calls, none held back"
    with_weights, without = (learned.get(f"kept_back_right_{each}_weights", 0) for each in ("with", "without"))
    return (
        f"weights: {examples} labelled calls; on the {kept_back} held back, the rules are correct for"
        f" {with_weights:.1%} with the weights and {without:.1%} without"
    )


def _question(lesson: Lesson, rule: Rule) -> Question:
    against = [each for each in lesson.taught if each.leans[lesson.rules.index(rule)] < 0]
    safe = sum(each.safe for each in against)
    text = (
        f"weight {lesson.learned.weights[rule.name]:.2f}: a call that breaks only `{rule.name}` is not denied; of"
        f" {len(against)} labelled calls that break it, {safe} are labelled safe"
    )
    return Question("a rule that no longer denies on its own", text)
