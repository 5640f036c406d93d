"""Every trick of an attacker who knows the defence, tried on recorded attacks and counted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from bylaw.bench.adaptive import TRICKS, Attack, Variant, attack_of, variants
from bylaw.bench.agentdojo import BY_SUITE, Read, read_runs, settled
from bylaw.bench.defence import Defence, packed
from bylaw.bench.tally import Rate, rate
from bylaw.facts.provenance import Provenance
from bylaw.pack import Pack, load_pack

SETTINGS = ("words, follows", "question, follows")
"""The settings that follow a text which the user handed over to: those that let more through."""


class Through(Struct, frozen=True):
    """One class of variants that got through, with one of them."""

    suite: str
    user_task: str
    count: int
    run: str
    tool: str
    because: str


class Tried(Struct, frozen=True):
    """One trick under one setting."""

    setting: str
    trick: str
    about: str
    stopped: Rate
    suites: dict[str, Rate]
    through: list[Through]


def try_tricks(files: Iterable[Path], seed: int, *, read_with: Read | None = None) -> list[Tried]:
    """Every trick under every setting; those with a question only where `read_with` answers it."""
    runs = [run for run in read_runs(files) if settled(run) == "succeeded"]
    packs = {suite: load_pack(BY_SUITE.format(suite)) for suite in {run.details["suite"] for run in runs}}
    found = ((run.details["suite"], attack_of(run, packs[run.details["suite"]].schema.tools)) for run in runs)
    attacks: dict[str, list[Attack]] = {suite: [] for suite in packs}
    for suite, attack in found:
        if attack is not None:
            attacks[suite].append(attack)
    names = [name for name in SETTINGS if read_with is not None or not name.startswith("question")]
    return [_tried(name, trick, packs, attacks, seed, read_with) for name in names for trick in TRICKS]


def _tried(
    setting: str,
    trick: str,
    packs: Mapping[str, Pack],
    attacks: Mapping[str, Sequence[Attack]],
    seed: int,
    read_with: Read | None,
) -> Tried:
    rates: dict[str, Rate] = {}
    through: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], tuple[str, str]] = {}
    for suite, pack in packs.items():
        defence = _defence(setting, pack, read_with)
        stopped = cases = 0
        for attack, variant in variants(attacks[suite], trick, seed):
            cases += 1
            held = [each for each in defence(variant.run) if each.step in variant.goal]
            if any(each.answer != "allow" for each in held):
                stopped += 1
                continue
            key = (suite, attack.run.details["user_task"], held[0].tool if held else "")
            through[key] += 1
            examples.setdefault(key, (attack.run.id, _why(attack, variant)))
        rates[suite] = rate(stopped, cases)
    whole = rate(sum(each.hits for each in rates.values()), sum(each.cases for each in rates.values()))
    classes = [
        Through(suite, task, count, examples[suite, task, tool][0], tool, examples[suite, task, tool][1])
        for (suite, task, tool), count in through.most_common()
    ]
    return Tried(setting, trick, (TRICKS[trick].__doc__ or "").rstrip("."), whole, rates, classes)


def _defence(setting: str, pack: Pack, read_with: Read | None) -> Defence:
    if setting.startswith("words") or read_with is None:
        return packed(pack, None, "follow")
    return packed(pack, lambda text: read_with(text, pack.schema.tools), "follow")


def _why(attack: Attack, variant: Variant) -> str:
    """Where the values of a variant that got through stand."""
    provenance = Provenance(variant.run.events, tools=attack.tools)
    reasons: list[str] = []
    for name, value in attack.values:
        traced = provenance.trace(value, before=min(variant.goal))
        if traced.source == "record":
            reasons.append(f"`{name}` stands in a field that `{traced.tool}` vouches for")
        elif traced.source == "content" and traced.pointed:
            alone = "alone" if traced.is_whole else "in a text"
            reasons.append(f"`{name}` stands {alone} in a result of `{traced.tool}`, a place that the user named")
        elif traced.source in ("user", "host"):
            reasons.append(f"`{name}` is the user's own word")
        else:
            reasons.append(f"`{name}` is composed by the agent")
    return "; ".join(dict.fromkeys(reasons))
