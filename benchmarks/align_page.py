"""The page on alignment that a practitioner acts on, from the logs of the last runs.

uv run python benchmarks/align_page.py     # writes docs/results/align.md
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from align_logs import RESULTS, Model, count, gap, log_of, passed, points, rate_gap, shares, table

from bylaw.align.bootstrap import interval

PAGE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
Places = Sequence[tuple[int, int]]
"""Runs, each with a seed."""
SHOWN: Places = ((11, 3), (12, 3))
"""Trainings of stage 2 that were played under `show`; one seed, trained twice."""
PRACTISED: Places = ((9, 1), (10, 2))
"""Runs of practice on whole conversations: the first and the second recipe."""
TRAININGS: Places = ((8, 1), *PRACTISED, *SHOWN)
SIXTH: Places = ((6, 1), (6, 2), (6, 3))
FIRST, BASE = Model(11, "stage1-1", "context"), Model(11, "base", "context")


def main() -> None:
    """Write the page."""
    (RESULTS / "align.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The page, from the logs."""
    second, shown = kind("stage2", TRAININGS), kind("stage2", SHOWN)
    live, show = (held(models, how) for models, how in ((second, "live"), (shown, "show")))
    both, both_held = [FIRST, *shown], [FIRST.held("show"), *show]
    return PAGE.format(
        shields=shields(),
        practice=practice(),
        **counted("plain", shown),
        **counted("show", show),
        **counted("both", both),
        **counted("both_show", both_held),
        **counted("second", second),
        **counted("live", live),
        **counted("short", held(shown, "live")),
        show_gap=points(gap(show, shown)),
        show_each=each(show, shown),
        show_live=points(gap(show, held(shown, "live"))),
        first_gap=points(gap([FIRST.held("show")], [FIRST])),
        agent_gap=points(gap([Model(8, "stage2-1").held("agent")], [Model(8, "stage2-1")])),
        live_gap=points(gap(live, second)),
        live_each=each(live, second),
        stage2_each=", ".join(f"{100 * model.found()['passed']['mean']:.1f}" for model in second),
        thoughts=points(
            gap(kind("stage2", SIXTH), [Model(1, "answers-1"), *kind("answers", SIXTH[1:])]),
        ).removeprefix("+"),
        **took(),
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
    found: dict[str, str] = {}
    places = [*PRACTISED, *SHOWN]
    for form, short in (("at once", "once"), ("after a thought", "thought")):
        clusters: dict[str, list[float]] = {}
        for model in kind("stage2", places):
            asked = model.all()["held_out"][form]["each"]
            middle = sorted(one["leaning"] for one in asked)[len(asked) // 2]
            for one in asked:
                right = (one["leaning"] >= middle) == one["answer"]
                clusters.setdefault(one["policy"], []).append(float(right) - 0.5)
        found[f"known_{short}"] = points(interval(clusters))
        found["policies"] = str(len(clusters))
        found["questions"] = str(sum(map(len, clusters.values())) // len(places))
    return found


if __name__ == "__main__":
    main()
