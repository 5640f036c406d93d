"""The page on alignment that a practitioner acts on, from the logs of the last runs.

uv run python lab/benchmarks/align_page.py     # writes lab/results/pages/align.md
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from align_logs import (
    LOGS,
    RESULTS,
    Model,
    count,
    gap,
    log_of,
    over,
    part,
    passed,
    percents,
    points,
    rate_gap,
    rate_share,
    shares,
    table,
)

from bylaw.align.bootstrap import interval

PAGE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
Places = Sequence[tuple[int, int]]
"""Runs, each with a seed."""
SHOWN: Places = ((11, 3), (12, 3), (14, 3))
"""Trainings of stage 2 that were played under `show`; one seed, trained three times."""
BOTH: Places = SHOWN[:2]
"""Those of them that were played under `live` too."""
PRACTISED: Places = ((9, 1), (10, 2))
"""Runs of practice on whole conversations: the first and the second recipe."""
TRAININGS: Places = ((8, 1), *PRACTISED, *BOTH)
"""Trainings of stage 2 that were played under `live`."""
SIXTH: Places = ((6, 1), (6, 2), (6, 3))
WORKED: Places = ((13, 1), (13, 2), (14, 3))
"""Trainings of stage 2 with plain thoughts and with worked ones."""
LONG = Model(13, "long-3", "context")
"""A stage 1 of as many steps as both stages take."""
LAST = 14
READS, ALONE, ASKED = Model(LAST, "reads-3", "context"), Model(LAST, "alone-3"), Model(LAST, "asked-3")
SECOND, SHOWING = Model(LAST, "stage2-3"), Model(LAST, "worked-3")
"""The last run's stage 2, with plain thoughts and with worked ones."""
ARMS = {
    "stage 1, handbook in the prompt": Model(LAST, "stage1-1", "context"),
    "stage 2, plain thoughts": SECOND,
    "stage 2, worked thoughts": SHOWING,
    "... and left-out look-ups": ASKED,
    "stage 2, handbook in the prompt": READS,
    "stage 2 without stage 1": ALONE,
}
"""All of the last run."""
CHECKED: Places = ((15, 1), (15, 2), (15, 3))
"""Trainings of stage 2 with plain thoughts, and with worked ones and rows against near-misses."""
HANGING = ("refund-cap", "reschedule-notice", "late-cancel-fee")
"""Policies that need a look-up or not, as a comparison comes out."""
COMPARING = (
    *("late-cancel-fee", "refill-interval", "reschedule-notice", "waive-limit", "refund-cap", "refund-remaining"),
    "booking-weekly-cap",
)
"""Policies that compare days, hours or amounts, of those that are broken most."""
FIRST, BASE = Model(11, "stage1-1", "context"), Model(11, "base", "context")


def main() -> None:
    """Write the page."""
    (RESULTS / "align.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the logs."""
    second, shown, both = kind("stage2", TRAININGS), kind("stage2", SHOWN), kind("stage2", BOTH)
    live, show = (held(models, how) for models, how in ((second, "live"), (shown, "show")))
    last = list(ARMS.values())
    return PAGE.format(
        shields=shields(),
        practice=practice(),
        **counted("plain", shown),
        **counted("show", show),
        **counted("live", live),
        **counted("last", last),
        **counted("last_show", held(last, "show")),
        show_gap=points(over(show, shown)),
        show_each=each(show, shown),
        show_live=points(gap(held(both, "show"), held(both, "live"))),
        last_each=each(held(last, "show"), last),
        agent_gap=points(gap([Model(8, "stage2-1").held("agent")], [Model(8, "stage2-1")])),
        live_gap=points(gap(live, second)),
        live_each=each(live, second),
        thoughts=points(
            gap(kind("stage2", SIXTH), [Model(1, "answers-1"), *kind("answers", SIXTH[1:])]),
        ).removeprefix("+"),
        **took(),
        **working(),
        **checked(),
        **changed(),
        **fair(),
        **turns(shown, show),
        **practised(),
        **knowledge(),
    )


def kind(name: str, places: Places) -> list[Model]:
    """One arm of some runs."""
    return [Model(run, f"{name}-{seed}") for run, seed in places]


def held(models: Sequence[Model], how: str) -> list[Model]:
    """The same under a shield."""
    return [model.held(how) for model in models]


def counted(name: str, models: Sequence[Model]) -> dict[str, str]:
    """Writes, violations and near-misses of some models together."""
    return {f"{name}_{what}": f"{count(models, what):,}" for what in ("writes", "violations", "near_misses")}


def each(ones: Sequence[Model], others: Sequence[Model]) -> str:
    """The differences in pass@1 of pairs of models."""
    return ", ".join(f"{100 * gap([one], [other]).mean:+.1f}" for one, other in zip(ones, others, strict=True))


def took() -> dict[str, str]:
    """What the training of run 12 took."""
    lines = [line for line in log_of(12) if "trained" in line]
    seconds = {line["arm"].split("-")[0]: (f"{line['trained']:.0f}", str(line["steps"])) for line in lines}
    found = {f"{name}_seconds": seconds[name][0] for name in ("stage1", "stage2")}
    found |= {f"{name}_steps": seconds[name][1] for name in ("stage1", "stage2")}
    return found | {"rows": f"{Model(12, 'stage2-3').all()['training']['rows']:,}"}


def turns(plain: Sequence[Model], shown: Sequence[Model]) -> dict[str, str]:
    """Turns and words of a task, without the shield and with it."""
    found: dict[str, str] = {}
    for name, models in (("plain", plain), ("show", shown)):
        for what, form in (("turns", ".1f"), ("words", ",.0f")):
            found[f"{name}_{what}"] = format(sum(model.found()[what] for model in models) / len(models), form)
    return found


def shields() -> str:
    """Models without a shield and under each that they were played under."""
    titles = {"base, handbook in the prompt": BASE, "stage 1, handbook in the prompt": FIRST}
    titles |= {f"stage 2, seed {seed} (run {run})": Model(run, f"stage2-{seed}") for run, seed in TRAININGS}
    titles |= {f"{title} (run {LAST})": model for title, model in ARMS.items()}
    titles |= {f"checked, seed {seed} (run 15)": model for (_, seed), model in pairs(CHECKED, kind("checked", CHECKED))}
    rows: list[list[str]] = []
    for title, model in titles.items():
        for how in ("", "agent", "live", "show"):
            played = model.held(how) if how else model
            if (played.folder / f"{played.name}.json").exists():
                found = played.found()
                stopped = Counter(answer for task in found.get("stopped", ()) for answer in task)
                told = ", ".join(f"{answer} {number}" for answer, number in stopped.most_common())
                cells = [passed(played), *shares(played), f"{found['turns']:.1f}", f"{found['words']:,.0f}", told]
                rows.append(["" if how else title, f"`{how}`" if how else "none", *cells])
    head = ["model", "shield", "pass@1 (95 %)", "writes", "violations a write (%)", "near-misses a write (%)"]
    return table([*head, "turns", "words", "stopped"], rows)


def working() -> dict[str, str]:
    """What thoughts gain by their working, over trainings and tasks."""
    plain, worked = kind("stage2", WORKED), kind("worked", WORKED)
    broken = json.loads((LOGS / "violations.json").read_text())
    compared = {name: sum(found.get(policy, 0) for policy in COMPARING) for name, found in broken.items()}
    rows = [
        [f"run {model.run}, seed {seed}", title, passed(model), f"{100 * model.developed():.1f}", *shares(model)]
        for (_, seed), *pair in zip(WORKED, plain, worked, strict=True)
        for title, model in zip(("stage 2, plain", "**stage 2, worked**"), pair, strict=True)
    ]
    head = ["training", "model", "pass@1 (95 %)", "development", "writes", "violations a write (%)"]
    return {
        "worked": table([*head, "near-misses a write (%)"], rows),
        "worked_gap": points(over(worked, plain)),
        "worked_each": each(worked, plain),
        "worked_broken": points(over(worked, plain, "violations")),
        "worked_near": points(over(worked, plain, "near_misses")),
        "worked_share": part(over(worked, plain, "violations", is_share=True)),
        "worked_near_share": part(over(worked, plain, "near_misses", is_share=True)),
        "worked_both": part(over(worked, plain, "violations", "near_misses", is_share=True)),
        "worked_kept": f"{100 * count(worked, 'writes') / count(plain, 'writes'):.0f}",
        **counted("plain2", plain),
        **counted("worked", worked),
        "before_all": str(sum(broken["before"].values())),
        **{f"{name}_compared": str(found) for name, found in compared.items()},
        **{f"{name}_others": str(sum(broken[name].values()) - found) for name, found in compared.items()},
        "compared": ", ".join(f"`{policy}`" for policy in COMPARING),
        "asked_gap": points(gap([ASKED], [SHOWING])),
        "asked_near": rate_share([ASKED], [SHOWING], "near_misses"),
        "asked_broken": rate_share([ASKED], [SHOWING], "violations"),
        "asked_both": rate_share([ASKED], [SECOND], "violations", "near_misses"),
        "asked_passed": percents([ASKED]),
    }


def pairs(places: Places, models: Sequence[Model]) -> Iterable[tuple[tuple[int, int], Model]]:
    """Models with the run and the seed of each."""
    return zip(places, models, strict=True)


def checked() -> dict[str, str]:
    """What rows against near-misses came to, over trainings and tasks."""
    plain, ours = kind("stage2", CHECKED), kind("checked", CHECKED)
    faults = json.loads((LOGS / "faults.json").read_text())
    near = {name: faults[name]["near_misses"] for name in ("stage2", "checked")}
    hanging = {name: sum(found.get(policy, 0) for policy in HANGING) for name, found in near.items()}
    rows = [
        [f"run {run}, seed {seed}", title, passed(model), f"{100 * model.developed():.1f}", *shares(model)]
        for (run, seed), *both in zip(CHECKED, plain, ours, strict=True)
        for title, model in zip(("stage 2, plain", "**checked**"), both, strict=True)
    ]
    head = ["training", "model", "pass@1 (95 %)", "development", "writes", "violations a write (%)"]
    begun = next(line["begun"] for line in log_of(15) if "begun" in line)
    return {
        "checked": table([*head, "near-misses a write (%)"], rows),
        "checked_steps": str(ours[0].all()["training"]["steps"]),
        "checked_passes": f"{begun['passes']:g}",
        "checked_gap": points(over(ours, plain)),
        "checked_share": part(over(ours, plain, "violations", is_share=True)),
        "checked_near_share": part(over(ours, plain, "near_misses", is_share=True)),
        "checked_both": part(over(ours, plain, "violations", "near_misses", is_share=True)),
        "checked_kept": f"{100 * count(ours, 'writes') / count(plain, 'writes'):.0f}",
        "checked_show_gap": points(over(held(ours, "show"), ours)),
        **counted("checked_plain", plain),
        **counted("checked", ours),
        **counted("checked_show", held(ours, "show")),
        "hanging_before": str(hanging["stage2"]),
        "hanging_now": str(hanging["checked"]),
        "plain_rest": str(sum(near["stage2"].values()) - hanging["stage2"]),
        "checked_rest": str(sum(near["checked"].values()) - hanging["checked"]),
        "plain_developed": ", ".join(f"{100 * model.developed():.1f}" for model in plain),
        "checked_developed": ", ".join(f"{100 * model.developed():.1f}" for model in ours),
    }


def changed() -> dict[str, str]:
    """How often a policy was followed whose changes were never learned; and what thoughts state."""
    faults = json.loads((LOGS / "faults.json").read_text())
    found: dict[str, str] = {}
    for name, short in (("stage2", "plain"), ("checked", "checked")):
        clusters: dict[str, list[float]] = {}
        for model in kind(name, CHECKED):
            for one in model.all()["changed"]["each"]:
                clusters.setdefault(one["policy"], []).append(float(one["followed"]))
        followed = interval(clusters)
        rate, *bounds = (100 * each for each in (followed.mean, followed.low, followed.high))
        found[f"followed_{short}"] = f"{rate:.1f} ({bounds[0]:.1f} to {bounds[1]:.1f})"
        found["changed_policies"] = str(len(clusters))
        found["changed_tasks"] = str(sum(map(len, clusters.values())) // len(CHECKED))
    told = [faults[name]["disobeyed"] for name in ("stage2", "checked")]
    recalled = faults["checked"]["recalled"]
    return found | {
        "disobeyed": str(sum(each["failed"] for each in told)),
        "stated": str(sum(each["stated"] for each in told)),
        **{script: f"{100 * share:.0f}" for script, share in faults["scripts"].items()},
        "asked_thoughts": str(sum(recalled.values())),
        "recalled_own": str(recalled["its own"]),
        "recalled_learned": str(recalled["a learned one"]),
    }


def fair() -> dict[str, str]:
    """Reading the handbook beside recalling it, and stage 2 with and without stage 1, in equally many steps."""
    before = kind("stage2", WORKED[:2])
    words = {name: f"{model.found()['words']:,.0f}" for name, model in (("reads", READS), ("showing", SHOWING))}
    return {
        "long_passed": percents([LONG]),
        "long_beside": percents(before),
        "long_gap": points(gap(before, [LONG, LONG])),
        "reads_passed": percents([READS]),
        "second_passed": percents([SECOND]),
        "reads_gap": points(gap([READS], [SECOND])),
        "reads_worked": points(gap([SHOWING], [READS])),
        "showing_passed": percents([SHOWING]),
        "alone_passed": percents([ALONE]),
        "alone_gap": points(gap([ALONE], [SECOND])),
        **{f"{name}_words": told for name, told in words.items()},
    }


def practice() -> str:
    """Stage 2, practised and control, run by run."""
    rows = [
        [f"run {run}, seed {seed}", title, passed(model), f"{100 * model.developed():.1f}", *shares(model)]
        for run, seed in PRACTISED
        for title, name in (("stage 2", "stage2"), ("**practised**", "episodes"), ("control", "control"))
        for model in kind(name, [(run, seed)])
    ]
    head = ["training", "model", "pass@1 (95 %)", "development", "writes", "violations a write (%)"]
    return table([*head, "near-misses a write (%)"], rows)


def practised() -> dict[str, str]:
    """What practice on whole conversations came to, both trainings together."""
    ones, before = kind("episodes", PRACTISED), kind("stage2", PRACTISED)
    found = {"practised_writes": f"{100 * count(ones, 'writes') / count(before, 'writes'):.0f}"}
    for name in ("stage2", "control"):
        others = kind(name, PRACTISED)
        found[f"practised_{name}"] = points(gap(ones, others))
        found[f"practised_{name}_each"] = each(ones, others)
        found[f"practised_{name}_broken"] = points(rate_gap(ones, others, "violations"))
        found[f"practised_{name}_near"] = points(rate_gap(ones, others, "near_misses"))
    return found


def knowledge() -> dict[str, str]:
    """Accuracy on policies whose questions were never learned, above chance, with intervals over policies."""
    second, worked = kind("stage2", [*PRACTISED, *BOTH, *WORKED]), kind("worked", WORKED)
    plain, ours = kind("stage2", CHECKED), kind("checked", CHECKED)
    found = {
        "known_once": known(second, "at once"),
        "known_thought": known(second, "after a thought"),
        "known_worked": known(worked, "at once"),
        "known_plain15": known(plain, "after a thought"),
        "known_checked": known(ours, "after a thought"),
        "said_plain15": known(plain, "after a thought", by_answer=True),
        "said_checked": known(ours, "after a thought", by_answer=True),
    }
    asked = second[0].all()["held_out"]["at once"]["each"]
    return found | {"questions": str(len(asked)), "policies": str(len({one["policy"] for one in asked}))}


def known(models: Sequence[Model], form: str, *, by_answer: bool = False) -> str:
    """Points over chance: by what a model leans to more than at the median question, or by what it answers."""
    clusters: dict[str, list[float]] = {}
    for model in models:
        asked = model.all()["held_out"][form]["each"]
        middle = 0.0 if by_answer else sorted(one["leaning"] for one in asked)[len(asked) // 2]
        for one in asked:
            right = (one["leaning"] >= middle) == one["answer"]
            clusters.setdefault(one["policy"], []).append(float(right) - 0.5)
    return points(interval(clusters))


if __name__ == "__main__":
    main()
