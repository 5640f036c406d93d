"""What the alignment experiment set out to show: arms beside each other, and whether each claim came out."""

from align_logs import COMPLIANCE, LAST, SEEDS, developed, grouped, percent, played, summary, table

from bylaw.align.bootstrap import Interval, difference
from bylaw.align.evaluation import clusters

COMPARED = (
    ("stage 3 without - base in the prompt (a)", ("stage3", "none"), ("base", "context")),
    ("stage 3 without - stage 1 in the prompt (b)", ("stage3", "none"), ("stage1", "context")),
    ("stage 3 without - answers only (c)", ("stage3", "none"), ("answers", "none")),
    ("stage 3 without - stage 2 without (d)", ("stage3", "none"), ("stage2", "none")),
    ("stage 2 without - stage 1 in the prompt (b)", ("stage2", "none"), ("stage1", "context")),
    ("stage 2 without - answers only (c)", ("stage2", "none"), ("answers", "none")),
    ("stage 1 in the prompt - stage 1 without", ("stage1", "context"), ("stage1", "none")),
    ("stage 3 with verified compliance - stage 3", (COMPLIANCE, "none"), ("stage3", "none")),
    ("stage 3 with verified compliance - stage 2", (COMPLIANCE, "none"), ("stage2", "none")),
)


def gaps(one: tuple[str, str], other: tuple[str, str]) -> list[tuple[str, Interval]]:
    """The difference in pass@1 of two arms, training by training, and for all where both were played.

    Where the other was not played for the same run and seed, its first training stands in, and this is said.
    """
    mine, theirs = played(*one), played(*other)
    found: list[tuple[str, Interval]] = []
    both = [place for place in mine if place in theirs]
    for place in mine:
        alike = [other for other in theirs if other[1] == place[1]]
        against = place if place in theirs else next(iter([*alike, *theirs]))
        which = f"run {place[0]}, seed {place[1]}"
        if against != place and other[0] != "base":
            which += f", against run {against[0]}, seed {against[1]}"
        found.append((which, difference(clusters(mine[place]), clusters(theirs[against]))))
    # Stage 3 is another recipe in each run, so its runs are no sample of one arm.
    if len(both) > 1 and not one[0].startswith("stage3"):
        pooled = [clusters(*(scores[place] for place in both)) for scores in (mine, theirs)]
        found.append((f"these {len(both)} together", difference(*pooled)))
    return found


def points(found: Interval) -> str:
    return f"{100 * found.mean:+.1f}, {100 * found.low:+.1f} to {100 * found.high:+.1f}"


def differences() -> str:
    rows: list[list[str]] = []
    for title, one, other in COMPARED:
        found = [(title, *each) for each in gaps(one, other)]
        if (one[0], other[0]) == ("stage3", "stage2"):
            found += [(f"{title}, development tasks", *each) for each in third()]
        rows += [
            [said, which, f"{100 * gap.mean:+.1f}", f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"]
            for said, which, gap in found
        ]
    return table(["difference in pass@1, points", "training", "mean", "95 %, paired by task, twins together"], rows)


def third() -> list[tuple[str, Interval]]:
    """Of run 3, stage 3 after its last step less stage 2, on the development tasks: by seed and together."""
    pairs = [(developed("stage3", seed)[LAST], developed("stage2", seed)[0]) for seed in SEEDS]
    found = [(f"run 3, seed {seed}", difference(*map(grouped, pair))) for seed, pair in zip(SEEDS, pairs, strict=True)]
    pooled: list[dict[str, list[float]]] = [{}, {}]
    for pair in pairs:
        for into, passes in zip(pooled, pair, strict=True):
            for name, values in grouped(passes).items():
                into.setdefault(name, []).extend(values)
    return [*found, ("these three together", difference(*pooled))]


FORMS = ("plain", "plain, recalled", "desk", "desk, recalled")
AIMS: tuple[tuple[str, tuple[str, str], float], ...] = (
    ("ahead of (a), the base model with the policy in its prompt", ("base", "context"), 0.0),
    ("within 5 points of (b), stage 1 with the policy in its prompt", ("stage1", "context"), -5.0),
    ("ahead of (c), answers only", ("answers", "none"), 0.0),
    ("ahead of (d), stage 2", ("stage2", "none"), 0.0),
)


def claims() -> str:
    """What we set out to show, and whether it came out; nothing where it was not measured."""
    rows = [[f"stage 3 {title}", *_held("stage3", other, least)] for title, other, least in AIMS]
    rows += [[f"(beside it: stage 2 {title})", *_held("stage2", other, least)] for title, other, least in AIMS[:3]]
    rows.append(["at least 40 % fewer words than (b)", *_fewer()])
    rows.append(["knowledge test 20 points over chance, and ahead of stage 1", *_knows()])
    rows.append(["fewer near-misses a write with the verified-compliance term", *near()])
    rows.append(["three training seeds", *_seeds()])
    return table(["claim", "came out", "points in pass@1, or what was measured"], rows)


def _held(kind: str, other: tuple[str, str], least: float) -> list[str]:
    found = [one for one in gaps((kind, "none"), other) if "together" not in one[0]]
    if (kind, other[0]) == ("stage3", "stage2"):
        found += [(f"{which} (development)", one) for which, one in third()[:-1]]
    held = [100 * one.low > least for _, one in found]
    missed = [100 * one.high < least for _, one in found]
    word = "**yes**" if all(held) else "**no**" if any(missed) and not any(held) else "**not shown**"
    return [word, "; ".join(f"{which}: {points(one)}" for which, one in found)]


def _fewer() -> list[str]:
    mine, theirs = (summary(kind, (2, 3))[policy] for kind, policy in (("stage3", "none"), ("stage1", "context")))
    less, bare = (100 * (1 - mine[name] / theirs[name]) for name in ("words", "words_without_tools"))
    said = f"run 2, seed 3: {less:.1f} % fewer, {bare:.1f} % without the lines that tell the tools"
    return ["**yes**" if less >= 40 else "**no**", said]


def _knows() -> list[str]:
    mine, theirs = (summary(kind, (2, 3))["knowledge"] for kind in ("stage3", "stage1"))
    best = [max(one[form]["balanced"] for form in FORMS) for one in (mine, theirs)]
    said = (
        f"run 2, seed 3, the best of four forms at the median: stage 3 {percent(best[0])}, stage 1 {percent(best[1])}"
    )
    return ["**yes**" if best[0] >= 0.7 and best[0] > best[1] else "**no**", said]


def near() -> list[str]:
    arms = (("with it", COMPLIANCE), ("without", "stage3"), ("before stage 3", "stage2"))
    found = [(name, summary(kind, (2, 3))["none"]) for name, kind in arms]
    said = "; ".join(f"{name} {percent(one['near_miss_rate'])} % of {one['writes']} writes" for name, one in found)
    broken = "; ".join(f"{name} {percent(one['violation_rate'])} %" for name, one in found)
    lower = found[0][1]["near_miss_rate"] < found[1][1]["near_miss_rate"]
    return ["**yes**" if lower else "**no**", f"run 2, seed 3: {said}. Writes that break a policy: {broken}"]


def _seeds() -> list[str]:
    arms = (("answers only", "answers", "none"), ("stage 1 in the prompt", "stage1", "context"))
    arms += (("stage 2", "stage2", "none"), ("stage 3", "stage3", "none"))
    counts = [f"{title}: {len({seed for _, seed in played(kind, policy)})}" for title, kind, policy in arms]
    counts.append("stage 3 by one recipe, on the development tasks alone (run 3): 3")
    return ["**no**", "; ".join(counts)]
