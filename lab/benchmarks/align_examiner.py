"""What a model of the alignment experiment does on the test tasks, and what it knows."""

import gzip
import json
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from align_arms import Arm
from align_questions import at_the_desk, held_out_questions

from bylaw.align.episode import Episode
from bylaw.align.evaluation import evaluate, score
from bylaw.align.matcher import Matcher
from bylaw.align.prompt import pack_named
from bylaw.align.rollout import play
from bylaw.align.shielded import ShieldedEpisode
from bylaw_lab.align.knowledge import examine
from bylaw_lab.align.override import obedience


class Examiner:
    """Examines the model that an experiment has loaded, and writes what it finds into its logs."""

    def __init__(self, experiment: Any) -> None:
        self.experiment = experiment

    def evaluate(self, arm: Arm) -> dict[str, Any]:
        """pass@1 and the words it took, on the test tasks."""
        policy = arm.policy
        began = time.monotonic()
        self.experiment.player.generator.forget()
        outcomes, shielded = self.played(arm, policy)
        played = time.monotonic() - began
        for how, (held, stopped) in shielded.items():
            label = f"shield_{how}-{arm.label}"
            found = self.scored(label, policy, held, played)
            found["stopped"] = stopped
            summary = {"arm": msgspec.to_builtins(arm), policy: found}
            (self.experiment.logs / f"{label}.json").write_text(json.dumps(summary) + "\n", encoding="utf-8")
            told = {name: found[name] for name in ("passed", "writes", "violation_rate", "near_miss_rate")}
            self.experiment.log(arm=label, **told)
        found = self.scored(arm.label, policy, outcomes, played)
        self.experiment.log(
            arm=arm.name, policy=policy, passed=found["passed"], words=found["words"], played=found["seconds"]
        )
        return found

    def scored(self, label: str, policy: str, outcomes: Sequence[Any], played: float) -> dict[str, Any]:
        """What the test tasks came to; writes a line for each, and the conversations that failed."""
        scores = list(self.experiment.pool.map(score, self.experiment.tasks, outcomes, chunksize=16))
        found: dict[str, Any] = msgspec.to_builtins(evaluate(self.experiment.tasks, scores))
        found["hallucination"] = self.hallucination(outcomes)
        found["seconds"] = round(played, 1)
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in scores)
        (self.experiment.logs / f"{label}.{policy}.tasks.jsonl").write_bytes(lines)
        with (self.experiment.logs / f"{label}.{policy}.talks.jsonl").open("wb") as file:
            for outcome in outcomes[:6]:
                file.write(msgspec.json.encode(outcome) + b"\n")
        failed = b"".join(msgspec.json.encode(one) + b"\n" for one in outcomes if not one.success)
        (self.experiment.logs / f"{label}.{policy}.failed.jsonl.gz").write_bytes(gzip.compress(failed))
        # Where it came out well by luck.
        lucky = (each for each, one in zip(outcomes, scores, strict=True) if each.success and one.near_misses)
        near = b"".join(msgspec.json.encode(each) + b"\n" for each in lucky)
        (self.experiment.logs / f"{label}.{policy}.near.jsonl.gz").write_bytes(gzip.compress(near))
        return found

    def played(self, arm: Arm, policy: Any) -> tuple[list[Any], dict[str, tuple[list[Any], list[list[str]]]]]:
        """How the test tasks went; and how they went under each shield, with what it stopped in them.

        A tuned arm plays the development tasks along with them. All of it together takes hardly longer than one.
        """
        tasks, apart = self.experiment.tasks, self.experiment.development if arm.is_tuned else ()
        held = [ShieldedEpisode(task, policy=policy, resolve=how) for how in arm.shields for task in tasks]
        begun = iter([*(Episode(task, policy=policy) for task in (*tasks, *apart)), *held])
        together = [*tasks, *apart, *(task for _ in arm.shields for task in tasks)]
        outcomes = play(
            together,
            self.experiment.player,
            policy=policy,
            side_by_side=len(together),
            begin=lambda _: next(begun),
        )
        plain, rest = outcomes[: len(tasks)], outcomes[len(tasks) + len(apart) :]
        if apart:
            passed = [outcome.success for outcome in outcomes[len(tasks) : len(tasks) + len(apart)]]
            self.experiment.write_development(arm, passed)
        found: dict[str, tuple[list[Any], list[list[str]]]] = {}
        for place, how in enumerate(arm.shields):
            part = slice(place * len(tasks), (place + 1) * len(tasks))
            found[how] = rest[part], [each.stopped for each in held[part]]
        return plain, found

    def held_out(self, arm: Arm) -> dict[str, Any]:
        """Questions on policies of which no stage has learned any, at once and after a thought, at the desk."""
        began = time.monotonic()
        asked = held_out_questions("clinic")[: self.experiment.asked]
        prompts = [at_the_desk("clinic", question.text, "none") for question in asked]
        thoughts = recalled(self.experiment.player, prompts, longest=224)
        found: dict[str, Any] = {}
        for name, after in (("at once", None), ("after a thought", thoughts)):
            leaning = [yes - no for yes, no in self.experiment.player.chances(prompts, ["Yes", "No"], after)]
            found[name] = msgspec.to_builtins(examine(asked, leaning))
            found[name]["each"] = [
                {"policy": one.policy, "answer": one.answer, "leaning": round(lean, 4)}
                for one, lean in zip(asked, leaning, strict=True)
            ]
        found["thoughts"] = thoughts
        shown = {name: [found[name]["accuracy"], found[name]["balanced"]] for name in ("at once", "after a thought")}
        self.experiment.log(arm=arm.name, held_out=shown, seconds=round(time.monotonic() - began, 1))
        return found

    def changed(self, arm: Arm) -> dict[str, Any]:
        """Tasks under changed policies of which no stage has learned any change."""
        began = time.monotonic()
        cases = self.experiment.changed
        policy: Any = arm.policy
        begun = iter([Episode(case.task, policy=policy, override=(case.old, case.new)) for case in cases])
        self.experiment.player.generator.forget()
        outcomes = play(
            [case.task for case in cases],
            self.experiment.player,
            policy=policy,
            side_by_side=len(cases),
            begin=lambda _: next(begun),
        )
        found: dict[str, Any] = msgspec.to_builtins(obedience(cases, outcomes))
        found["each"] = [
            {"task": case.task.id, "policy": case.policy, "followed": one.success}
            for case, one in zip(cases, outcomes, strict=True)
        ]
        failed = b"".join(msgspec.json.encode(one) + b"\n" for one in outcomes if not one.success)
        (self.experiment.logs / f"{arm.label}.changed.failed.jsonl.gz").write_bytes(gzip.compress(failed))
        seconds = round(time.monotonic() - began, 1)
        self.experiment.log(arm=arm.name, changed=found["followed"], cases=len(cases), seconds=seconds)
        return found

    def hallucination(self, outcomes: Sequence[Any]) -> dict[str, float]:
        """Of the policies that thoughts state, the share that there is not; and how many thoughts state one."""
        parts = [[outcome.thoughts for outcome in outcomes[start::16]] for start in range(16)]
        stated, made_up, thoughts, wrong = map(sum, zip(*self.experiment.pool.map(_mentions, parts), strict=True))
        return {
            "thoughts": thoughts,
            "policies_stated": stated,
            "made_up": made_up,
            "rate": made_up / (stated + made_up) if stated + made_up else 0.0,
            "thoughts_with_one": wrong / thoughts if thoughts else 0.0,
        }


def recalled(player: Any, conversations: Sequence[Any], *, longest: int) -> list[str]:
    """What a model thinks before its next output, closed where it did not close it itself."""
    dialect, generator = player.dialect, player.generator
    opened = dialect.tokenizer("<think>", add_special_tokens=False)["input_ids"]
    prompts = [[*dialect.prompt(messages), *opened] for messages in conversations]
    found: list[str] = []
    for start in range(0, len(prompts), generator.slots):
        part = generator.generate(prompts[start : start + generator.slots], longest=longest)
        found += [f"<think>{dialect.text(ids).partition('</think>')[0]}</think>\n" for ids in part]
    return found


@cache
def matcher() -> Matcher:
    return Matcher(pack_named("clinic"))


def _mentions(talks: Sequence[Sequence[str]]) -> tuple[int, int, int, int]:
    reader = matcher()
    stated = made_up = thoughts = wrong = 0
    for thought in (thought for talk in talks for thought in talk):
        found = reader.mentions(thought)
        thoughts += 1
        stated += len(found.recalled)
        made_up += len(found.made_up)
        wrong += bool(found.made_up)
    return stated, made_up, thoughts, wrong
