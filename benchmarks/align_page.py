"""The page on alignment that a practitioner acts on, from the logs of the last run and of those like it.

uv run python benchmarks/align_page.py     # writes docs/results/align.md
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from align_logs import RESULTS, Model, count, gap, log_of, passed, percents, points, rate_gap, shares, table

from bylaw.align.bootstrap import interval

PAGE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
LAST = 11
BASE, FIRST = Model(LAST, "base", "context"), Model(LAST, "stage1-1", "context")
READS, LONG = Model(LAST, "reads-3", "context"), Model(LAST, "long-3", "context")
ALONE = Model(LAST, "alone-3")
PRACTISED = ((9, 1), (10, 2), (LAST, 3))
"""Runs of practice on whole conversations, with their seeds; the first by another recipe."""
SECOND_RECIPE = PRACTISED[1:]
TRAININGS = ((8, 1), *PRACTISED)
"""Every training of stage 2 that was played under a shield."""
SHOWN: dict[str, Model] = {}
"""Models that were played under `show`, by what they are."""


def kind(name: str, places: Sequence[tuple[int, int]] = ((LAST, 3),)) -> list[Model]:
    """One arm of some runs."""
    return [Model(run, f"{name}-{seed}") for run, seed in places]


STAGE2, EPISODES, CONTROL = (kind(name)[0] for name in ("stage2", "episodes", "control"))
SHOWN |= {"stage 2": STAGE2, "practised": EPISODES, "control": CONTROL, "stage 2 without stage 1": ALONE}
SHOWN |= {"thoughts and handbook": READS, "stage 1, handbook": FIRST, "stage 1 for as many steps, handbook": LONG}


def main() -> None:
    """Write the page."""
    (RESULTS / "align.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the logs."""
    shown = [model for model in SHOWN.values() if is_there(model.held("show"))]
    held = [model.held("show") for model in shown]
    second, live = kind("stage2", TRAININGS), [model.held("live") for model in kind("stage2", TRAININGS)]
    return PAGE.format(
        shields=shields(),
        models=len(shown),
        plain_writes=f"{count(shown, 'writes'):,}",
        plain_violations=count(shown, "violations"),
        plain_near=count(shown, "near_misses"),
        held_writes=f"{count(held, 'writes'):,}",
        held_violations=count(held, "violations"),
        held_near=count(held, "near_misses"),
        show_gap=points(gap([STAGE2.held("show")], [STAGE2])),
        show_all=points(gap(held, shown)),
        show_live=points(gap([STAGE2.held("show")], [STAGE2.held("live")])),
        live_gap=points(gap(live, second)),
        live_each=each(live, second),
        live_writes=f"{count(live, 'writes'):,}",
        live_violations=count(live, "violations"),
        live_near=count(live, "near_misses"),
        second_writes=f"{count(second, 'writes'):,}",
        second_violations=count(second, "violations"),
        fair=fair(),
        **{f"fair_{name}": points(gap([STAGE2], [model])) for name, model in others().items()},
        practice=practice(),
        **practised(),
        **knowledge(),
        seconds=round(max(line["at"] for line in log_of(LAST))),
    )


def is_there(model: Model) -> bool:
    """Whether it was played."""
    return (model.folder / f"{model.name}.json").exists()


def each(ones: Sequence[Model], others: Sequence[Model]) -> str:
    """The differences in pass@1 of pairs of models."""
    return ", ".join(f"{100 * gap([one], [other]).mean:+.1f}" for one, other in zip(ones, others, strict=True))


def shields() -> str:
    """Models without a shield and under each that they were played under."""
    rows: list[list[str]] = []
    for title, model in {"base, handbook": BASE, **SHOWN}.items():
        for how in ("", "agent", "live", "show"):
            played = model.held(how) if how else model
            if is_there(played):
                found = played.found()
                stopped = Counter(answer for task in found.get("stopped", ()) for answer in task)
                told = ", ".join(f"{answer} {number}" for answer, number in stopped.most_common())
                cells = [passed(played), *shares(played), f"{found['turns']:.1f}", f"{found['words']:,.0f}", told]
                rows.append(["" if how else title, f"`{how}`" if how else "none", *cells])
    head = ["model", "shield", "pass@1", "writes", "violations a write (%)", "near-misses a write (%)"]
    return table([*head, "turns", "words", "stopped"], rows)


def others() -> dict[str, Model]:
    """What stage 2 is compared with."""
    found = {"reads": READS, "alone": ALONE, "long": LONG, "first": FIRST}
    return {name: model for name, model in found.items() if is_there(model)}


def fair() -> str:
    """Thoughts or not, handbook or not, by equally many steps."""
    titles = {"first": "stage 1", "long": "stage 1, more steps", "reads": "thoughts and handbook"}
    titles |= {"alone": "stage 2 without stage 1"}
    steps = {line["arm"]: line["steps"] for line in log_of(LAST) if "steps" in line and "trained" in line}
    rows: list[list[str]] = []
    for title, model in {"**stage 2**": STAGE2, **{titles[name]: model for name, model in others().items()}}.items():
        took = steps[model.name] + (steps[FIRST.name] if model in (STAGE2, READS) else 0)
        handbook = "in the prompt" if model.policy == "context" else "no"
        thinks = "no" if model in (FIRST, LONG) else "yes"
        less = points(gap([STAGE2], [model])) if model != STAGE2 else ""
        cells = [str(took), passed(model), less, f"{model.found()['words']:,.0f}", *shares(model)[1:]]
        rows.append([title, handbook, thinks, *cells])
    head = ["model", "handbook", "thoughts", "steps in all", "pass@1", "stage 2 less it", "words a task"]
    return table([*head, "violations a write (%)", "near-misses a write (%)"], rows)


def practice() -> str:
    """Stage 2, practised and control, run by run."""
    rows = [
        [f"{run}, {'first' if run == 9 else 'second'}, {seed}", title, passed(model), *shares(model)]
        for run, seed in PRACTISED
        for title, name in (("stage 2", "stage2"), ("**practised**", "episodes"), ("control", "control"))
        for model in kind(name, [(run, seed)])
    ]
    head = ["run, recipe, seed", "model", "pass@1", "writes", "violations a write (%)", "near-misses a write (%)"]
    return table(head, rows)


def practised() -> dict[str, str]:
    """What practice on whole conversations came to, over the trainings of the second recipe and over all three."""
    found: dict[str, str] = {}
    for word, places in (("both", SECOND_RECIPE), ("three", PRACTISED)):
        ones = kind("episodes", places)
        for name in ("stage2", "control"):
            twins = kind(name, places)
            found[f"{word}_{name}"] = points(gap(ones, twins))
            found[f"{word}_{name}_each"] = each(ones, twins)
            found[f"{word}_{name}_broken"] = points(rate_gap(ones, twins, "violations"))
            found[f"{word}_{name}_near"] = points(rate_gap(ones, twins, "near_misses"))
        before = kind("stage2", places)
        found[f"{word}_writes"] = f"{100 * count(ones, 'writes') / count(before, 'writes'):.0f}"
        for name, models in (("before", before), ("after", ones), ("gold", kind("control", places))):
            writes = count(models, "writes")
            found[f"{word}_{name}_near"] = f"{100 * count(models, 'near_misses') / writes:.1f}"
            found[f"{word}_{name}_broken"] = f"{100 * count(models, 'violations') / writes:.1f}"
    return found


def knowledge() -> dict[str, str]:
    """Accuracy on policies whose questions were never learned, above chance, with intervals over policies."""
    found: dict[str, str] = {}
    for name in ("stage2", "episodes", "control"):
        for form, short in (("at once", "once"), ("after a thought", "thought")):
            clusters: dict[str, list[float]] = {}
            for model in kind(name, PRACTISED):
                asked = model.all()["held_out"][form]["each"]
                middle = sorted(one["leaning"] for one in asked)[len(asked) // 2]
                for one in asked:
                    right = (one["leaning"] >= middle) == one["answer"]
                    clusters.setdefault(one["policy"], []).append(float(right) - 0.5)
            found[f"{name}_{short}"] = points(interval(clusters))
            found["questions"], found["policies"] = str(len(asked)), str(len(clusters))
    return found


if __name__ == "__main__":
    main()
