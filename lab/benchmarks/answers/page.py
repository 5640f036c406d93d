"""The results page of `lab/benchmarks/answering.py`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from answers.measured import SHOWN, Results, Ruled, Settled
from answers.sites import SEED
from bylaw.pack import Pack

PAGE = Path(__file__).with_suffix(".md")


def page(results: Results, packs: dict[str, Pack], model: str) -> str:
    first = results.settled["none"]
    sites = list({id(each.site): each.site for each in first}.values())
    domains = list(dict.fromkeys(site.domain for site in sites))
    of = {domain: [each for each in first if each.site.domain == domain] for domain in ("clinic", "airline")}
    wrong = [each for found in results.settled.values() for each in found if _is_wrong(each)]
    return PAGE.read_text(encoding="utf-8").format(
        count=len(first),
        calls=len(sites),
        seed=SEED,
        clinic=len(of["clinic"]),
        clinic_calls=len({id(each.site) for each in of["clinic"]}),
        airline=len(of["airline"]),
        date=model,
        shown=SHOWN,
        point=100 / len(first),
        settled="\n".join(settled_rows(results, domains)),
        kinds="\n".join(kind_rows(results.settled["long"])),
        wrongs=told_wrongs(wrong, results),
        guards="\n".join(guard_row(name, found, packs) for name, found in results.ruled.items()),
        domains=" | ".join(domains),
        bars="---|" * len(domains),
        compliance="\n".join(compliance_row(name, found, domains) for name, found in results.ruled.items()),
    )


def settled_rows(results: Results, domains: Sequence[str]) -> Iterable[str]:
    """Return right, wrong and unknown answers, and queries, by memory and domain."""
    for memory, found in results.settled.items():
        for domain in (*domains, *(["both"] if len(domains) > 1 else [])):
            some = [each for each in found if domain in ("both", each.site.domain)]
            queries = sum(each.queries for each in some)
            yield f"| {memory} | {domain} | {_counts(some)} | {queries} | {queries / len(some):.1f} |"


def kind_rows(found: Sequence[Settled]) -> Iterable[str]:
    """Return the answers by predicate, using the long memory."""
    for domain, name in dict.fromkeys((each.site.domain, each.predicate) for each in found):
        some = [each for each in found if (each.site.domain, each.predicate) == (domain, name)]
        true = sum(each.site.truth[name] for each in some)
        yield f"| `{name}` ({domain}) | {true} of {len(some)} | {_counts(some)} |"


def told_wrongs(wrong: Sequence[Settled], results: Results) -> str:
    """Count where the model and the truth differ, by direction."""
    by_memory = {
        memory: Counter(
            (each.predicate, "said so, and is not" if each.value else "is so, and denied")
            for each in found
            if _is_wrong(each)
        )
        for memory, found in results.settled.items()
    }
    if not wrong:
        return "No answer was wrong."
    lines = ["Wrong answers:", ""]
    for memory, counts in by_memory.items():
        told = ", ".join(f"`{name}` {way}: {count}" for (name, way), count in sorted(counts.items())) or "none"
        lines.append(f"- {memory}: {told}")
    return "\n".join(lines)


def guard_row(name: str, found: Sequence[Ruled], packs: dict[str, Pack]) -> str:
    """Return the numbers of calls judged right, wrongly blocked and wrongly allowed, of rules named, and of queries."""
    right = sum(each.stops != each.site.complies for each in found)
    good = [each for each in found if each.site.complies]
    bad = [each for each in found if not each.site.complies]
    broken = [(each, rule) for each in bad for rule in each.site.broken]
    named = sum(rule in each.named for each, rule in broken)
    queries = sum(each.queries for each in found) / len(found)
    cells = [
        _share(right, len(found)),
        _share(sum(each.stops for each in good), len(good)),
        _share(sum(not each.stops for each in bad), len(bad)),
        _share(named, len(broken)),
        f"{queries:.1f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def compliance_row(name: str, found: Sequence[Ruled], domains: Sequence[str]) -> str:
    """Return how many allowed calls in successful runs comply with the rules, and how many blocked calls do."""
    cells: list[str] = []
    for domain in domains:
        passed = [each for each in found if each.site.domain == domain and each.site.success and not each.stops]
        cells.append(_share(sum(each.site.complies for each in passed), len(passed)))
    good = [each for each in found if each.site.success and each.site.complies]
    return f"| {name} | {' | '.join(cells)} | {_share(sum(each.stops for each in good), len(good))} |"


def _is_wrong(each: Settled) -> bool:
    return each.value is not None and each.value != each.site.truth[each.predicate]


def _counts(some: Sequence[Settled]) -> str:
    wrong, unknown = sum(map(_is_wrong, some)), sum(each.value is None for each in some)
    return f"{len(some) - wrong - unknown} | {wrong} | {unknown}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%} ({part}/{whole})" if whole else "-"
