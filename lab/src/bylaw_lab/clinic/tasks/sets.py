"""The task sets: the policies in tasks, the combined policies, and the size of each part."""

import gzip
import hashlib
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations, product
from pathlib import Path

import msgspec

from bylaw_lab.clinic.simulator.truth import POLICIES, policies_of
from bylaw_lab.clinic.simulator.wants import Clinic
from bylaw_lab.clinic.tasks.parts import PARTS, TRAINING_SEEDS, Part, belongs, clinic
from bylaw_lab.clinic.tasks.scenario import Scenario
from bylaw_lab.clinic.tasks.twins import Right, Twins, find, rights, write_up

__all__ = ["GROUPS", "NOVEL", "PARTS", "SIZES", "Part", "group_of", "scenarios"]

GROUPS: dict[str, tuple[str, ...]] = {
    "booking": ("book_visit", "book_specialist"),
    "appointments": ("reschedule_appointment", "cancel_appointment"),
    "invoices": ("issue_refund", "waive_invoice"),
    "prescriptions": ("refill_prescription",),
    "privacy": ("release_records", "update_contact", "update_proxy"),
    "consent": ("record_consent",),
    "membership": ("change_membership",),
}
"""Tools that share policies. Only `slot-open` applies to tools in two groups."""

NOVEL = (
    {"booking", "prescriptions"},
    {"booking", "privacy"},
    {"appointments", "invoices"},
    {"appointments", "membership"},
    {"invoices", "privacy"},
    {"prescriptions", "consent"},
)
"""Groups that are combined only in tasks of the test part."""

SIZES: dict[Part, tuple[int, int, int]] = {
    "training": (800, 400, 0),
    "development": (60, 20, 20),
    "test": (110, 40, 100),
    "rl": (60, 30, 0),
}
"""The numbers of twin pairs with one errand, with two errands, and with two errands in newly combined groups."""
SEEDS: dict[Part, tuple[int, ...]] = {
    "training": TRAINING_SEEDS,
    "development": (21,),
    "test": (31, 32),
    "rl": (41,),
}
"""The seeds of the databases for the callers in each part."""
DOUBLE = ("late-cancel-fee", "visit-copay", "specialist-copay")
"""Policies with many outcomes. They get twice as many tasks."""


def group_of(policy: str) -> str:
    return next(name for name, tools in GROUPS.items() if POLICIES[policy].tools[0] in tools)


TEST = Path(__file__).parent / "test.jsonl.gz"
"""The test part before any model was tested on it. Its hash is in `test.sha256`."""


@cache
def scenarios(part: Part, times: int = 1) -> tuple[Scenario, ...]:
    """Return all tasks in a part. They are always the same, with twins next to each other. `times` multiplies the
    training tasks.
    """
    if part in ("training", "rl"):
        return tuple(scenario for scenario in make(part, times) if not shows_novel(scenario))
    if part != "test":
        return make(part)
    text = gzip.decompress(TEST.read_bytes())
    if hashlib.sha256(text).hexdigest() != TEST.with_name("test.sha256").read_text(encoding="ascii").strip():
        raise AssertionError(f"{TEST.name} is not the test set whose hash was committed")
    return tuple(msgspec.json.decode(line, type=Scenario) for line in text.splitlines())


def shows_novel(scenario: Scenario) -> bool:
    """Whether a task has two policies that only the test part may combine."""
    together = sorted({policy for policies in bearing(scenario) for policy in policies})
    return any(frozenset(pair) in held_apart() for pair in combinations(together, 2))


@cache
def held_apart() -> frozenset[frozenset[str]]:
    """Return pairs of policies, one from each errand of a test task with a new combination."""
    novel = [scenario for scenario in scenarios("test") if scenario.novel]
    return frozenset(frozenset(pair) for scenario in novel for pair in product(*bearing(scenario)))


def bearing(scenario: Scenario) -> list[set[str]]:
    """Return the policies for each errand."""
    return [{policy.id for policy in policies_of(errand.want.tool)} for errand in scenario.errands]


def make(part: Part, times: int = 1) -> tuple[Scenario, ...]:
    return tuple(scenario for pair in pairs(part, times) for scenario in pair)


def write(tasks: Iterable[Scenario]) -> bytes:
    return b"".join(msgspec.json.encode(task) + b"\n" for task in tasks)


def pairs(part: Part, times: int = 1) -> Iterator[tuple[Scenario, Scenario]]:
    """Yield the part's pairs of twins."""
    single, double, novel = (times * size for size in SIZES[part])
    kinds = ["single"] * single + ["double"] * double + ["novel"] * novel
    random.Random(f"{part}/order").shuffle(kinds)
    focus = foci(part)
    for number, kind in enumerate(kinds):
        seeds = SEEDS[part]
        place = clinic(part, seeds[number % len(seeds)])
        ids = (f"{part}-{number:04}-a", f"{part}-{number:04}-b")
        for attempt in range(100):
            rng = random.Random(f"{part}/{number}/{attempt}")
            if (pair := draw(place, rng, part, kind, ids, next(focus))) is not None:
                yield pair
                break
        else:
            raise AssertionError(f"no {kind} pair found")


def foci(part: Part) -> Iterator[str]:
    """Yield policies in turn, so that each decides a fair share of the tasks."""
    rng = random.Random(f"{part}/focus")
    while True:
        round = [*POLICIES, *DOUBLE]
        rng.shuffle(round)
        yield from round


def draw(
    place: Clinic, rng: random.Random, part: Part, kind: str, ids: tuple[str, str], focus: str
) -> tuple[Scenario, Scenario] | None:
    """Draw one pair of twins. Return None if the draw fails."""
    twins = find(place, rng, focus, belongs(part))
    if twins is None:
        return None
    wants, policies = [twins.want], [focus]
    if kind != "single":
        other = partner(place, rng, part, twins, novel=kind == "novel")
        if other is None:
            return None
        position = rng.randrange(2)
        wants.insert(position, other.want)
        policies.insert(position, other.focus)
    before, after = rights(place, wants, None), rights(place, wants, twins.flip)
    if before is None or after is None or not differ_once(wants.index(twins.want), before, after):
        return None
    if rng.random() < 0.5:
        ids = (ids[1], ids[0])
    made = write_up(place, rng, part, ids, wants, (before, after), twins.flip, policies, kind == "novel")
    return (made[0], made[1]) if made[0].id < made[1].id else (made[1], made[0])


def partner(place: Clinic, rng: random.Random, part: Part, twins: Twins, *, novel: bool) -> Twins | None:
    """Return a second change for the same patient, from a group that may be combined with the group of the first
    change.
    """
    own = group_of(twins.focus)
    allowed = [name for name in GROUPS if ({own, name} in NOVEL) == novel]
    if not allowed:
        return None
    group = rng.choice(allowed)
    policies = [id for id in POLICIES if group_of(id) == group]
    patient = twins.want.arguments["patient_id"]
    return find(place, rng, rng.choice(policies), belongs(part), patient=patient, tries=300)


def differ_once(place: int, before: list[Right], after: list[Right]) -> bool:
    """Whether the changed fact affects the right answer for this change only."""
    pairs = enumerate(zip(before, after, strict=True))
    return all((one.call != other.call) == (number == place) for number, (one, other) in pairs)
