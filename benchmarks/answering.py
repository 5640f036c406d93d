"""Predicates that code cannot settle, answered by a model under each kind of memory, beside the paper's baselines.

    uv run python benchmarks/answering.py [FOLDER] [--airline-answers DIR] [--page docs/results/answering.md]
    uv run python benchmarks/answering.py [FOLDER] --ask FILE     what still has to be asked, to be answered by anybody

FOLDER holds the airline's runs (`tau1/runs`, `tau2/runs`); without it there is the clinic alone. Answers are read from
`benchmarks/answers/recorded` (clinic) and, since they quote recorded conversations, a folder of your own (airline).
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from answers.asking import page as asking_page
from answers.asking import take
from answers.sites import HERE, SEED, Site, airline_sites, clinic_sites, pack_of
from msgspec import Struct

from bylaw.answering import Answerer, Plans
from bylaw.answering.history import History, call_text
from bylaw.answering.memory import Remembered
from bylaw.engine.pack import Pack, load_pack
from bylaw.engine.session import Session
from bylaw.llm import Answer, Request
from bylaw.llm.chat import ChatError, schema_of
from bylaw.llm.prompt import render
from bylaw.llm.recorded import Recordings
from bylaw.shield.deciding import Decider, outcome

Shape = TypeVar("Shape")
MEMORIES = ("none", "short", "long")
GUARDS = ("nobody", "direct prompt", "every rule in turn", "plans, no memory", "plans, long memory")
SHOWN = 300
"""Characters of a tool's answer that the baselines are shown; what was said and called they are shown whole."""


WHO = "the first answer counted, and none was changed"


class Direct(Struct, frozen=True):
    """What the direct prompt answers."""

    safe: bool
    violated: tuple[str, ...] = ()
    because: str = ""


class Broken(Struct, frozen=True):
    """What is answered for one rule."""

    violated: bool
    because: str = ""


class Asked:
    """Recorded answers in the place of a model; what is missing is noted."""

    def __init__(self, recordings: Sequence[Recordings]) -> None:
        self._recordings = recordings
        self.missing: dict[str, Request] = {}

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers, where all were recorded."""
        found = [next(filter(None, (each.find(request) for each in self._recordings)), None) for request in requests]
        for request, answer in zip(requests, found, strict=True):
            if answer is None:
                self.missing[request.key] = request
        if None in found:
            raise ChatError("not recorded")
        return [answer for answer in found if answer is not None]


class Settled(NamedTuple):
    """One predicate at one call."""

    site: Site
    predicate: str
    value: bool | None
    queries: int
    because: str


class Filling(Plans):
    """A memory that only takes in."""

    def like(self, about: str) -> list[tuple[float, Remembered]]:
        """Nothing yet."""
        return []


def opened(sites: Sequence[Site], packs: dict[str, Pack], chat: Asked, memory: str) -> Answerer:
    """Who answers under one kind of memory; the long one has been filled by an earlier pass over the same calls."""
    if memory != "long":
        return Answerer(chat, remembers=memory == "short")
    with tempfile.TemporaryDirectory(prefix="bylaw-answers-") as folder:
        first = Answerer(chat, plans=Filling(Path(folder)))
        for site in sites:
            answer = first(packs[site.domain], lambda site=site: site.trajectory.events)
            for predicate in site.truth:
                answer(predicate, site.act(packs[site.domain]))
        return Answerer(chat, plans=Plans(Path(folder)))


def settle(sites: Sequence[Site], packs: dict[str, Pack], chat: Asked, memory: str) -> list[Settled]:
    """Every predicate of every call, in order, under one kind of memory."""
    answerer = opened(sites, packs, chat, memory)
    found: list[Settled] = []
    for site in sites:
        pack = packs[site.domain]
        answer, act = answerer(pack, lambda site=site: site.trajectory.events), site.act(pack)
        for predicate in site.truth:
            said = answer(predicate, act)
            found.append(Settled(site, predicate, said.value, said.queries, said.because))
    return found


class Ruled(NamedTuple):
    """What a guard makes of a call."""

    site: Site
    stops: bool
    named: frozenset[str]
    queries: int


def by_shield(sites: Sequence[Site], packs: dict[str, Pack], chat: Asked, memory: str) -> list[Ruled]:
    """The shield's own decision by the rules, with the pipeline passed in."""
    answerer = opened(sites, packs, chat, memory)
    found: list[Ruled] = []
    for site in sites:
        pack, events = packs[site.domain], site.trajectory.events
        session = Session(pack, answer=answerer(pack, lambda events=events: events), sparing=True)
        session.observe_all(events[: site.step])
        judgement = session.judge(site.call)
        decider = Decider(pack, pack.postures)
        weighed = session.weigh(site.call) if decider.must_weigh(judgement) else None
        grounds = [each for each in decider.grounds(judgement, session.ledger, weighed=weighed) if each.kind == "rule"]
        said = frozenset(each.policy for each in grounds if each.answer == "deny")
        queries = sum(each.queries for each in session.answered)
        found.append(Ruled(site, outcome(grounds)[0] != "allow", said, queries))
    return found


def by_direct(sites: Iterable[Site], packs: dict[str, Pack], chat: Asked) -> list[Ruled]:
    """The whole policy and the whole conversation in one question."""
    found: list[Ruled] = []
    for site in sites:
        policy = "\n".join(f"- {name}: {text}" for name, text in sentences(packs[site.domain]).items())
        reply = _asked(chat, "direct", {"policy": policy, **_seen(site, packs)}, Direct)
        found.append(Ruled(site, reply is None or not reply.safe, frozenset(reply.violated if reply else ()), 1))
    return found


def by_traversal(sites: Iterable[Site], packs: dict[str, Pack], chat: Asked) -> list[Ruled]:
    """Each rule in a question of its own; stopped once one is said to be broken."""
    found: list[Ruled] = []
    for site in sites:
        rules = sentences(packs[site.domain])
        said = {
            name: _asked(chat, "rule", {"rule": text, **_seen(site, packs)}, Broken) for name, text in rules.items()
        }
        named = frozenset(name for name, reply in said.items() if reply is None or reply.violated)
        found.append(Ruled(site, bool(named), named, len(rules)))
    return found


def sentences(pack: Pack) -> dict[str, str]:
    """The policy of this measurement: what its rules enforce, in the document's words, or the pack's own."""
    found: dict[str, str] = {}
    for rule in pack.book.rules:
        if rule.weight:
            policy = pack.policies[rule.policy]
            found[rule.name] = " ".join(each.text for each in policy.citations if each.text) or policy.definition
    return found


def _seen(site: Site, packs: dict[str, Pack]) -> dict[str, str]:
    pieces = History(site.trajectory.events, site.act(packs[site.domain])).pieces
    shown = (
        f"[{each.step}] {each.by}: {each.text[:SHOWN]} [...]"
        if each.by == "tool" and len(each.text) > SHOWN
        else f"[{each.step}] {each.by}: {each.text}"
        for each in pieces
    )
    return {"history": "\n".join(shown), "act": call_text(site.call.tool, site.call.arguments)}


def _asked(chat: Asked, prompt: str, given: dict[str, str], shape: type[Shape]) -> Shape | None:
    request = render(HERE / "prompts", prompt, given, schema=schema_of(shape), max_tokens=400)
    try:
        return chat.ask([request])[0].read(shape)
    except ChatError:
        return None


def everything(sites: Sequence[Site], packs: dict[str, Pack], chat: Asked) -> "Results":
    """All that is measured, on the same calls and the same answers."""
    settled = {memory: settle(sites, packs, chat, memory) for memory in MEMORIES}
    ruled = {
        GUARDS[0]: [Ruled(site, False, frozenset(), 0) for site in sites],
        GUARDS[1]: by_direct(sites, packs, chat),
        GUARDS[2]: by_traversal(sites, packs, chat),
        GUARDS[3]: by_shield(sites, packs, chat, "none"),
        GUARDS[4]: by_shield(sites, packs, chat, "long"),
    }
    return Results(settled, ruled)


class Results(NamedTuple):
    """What was found, by memory and by guard."""

    settled: dict[str, list[Settled]]
    ruled: dict[str, list[Ruled]]


PAGE = """# Predicates that code cannot settle: a model, its plans and its memory

<!-- Written by benchmarks/answering.py --page; do not edit by hand. -->

{count} predicates at {calls} calls, drawn by seed {seed}: {clinic} at {clinic_calls} calls of the simulated clinic,
with its truth, and {airline} at as many labelled writes of recorded airline runs
(`benchmarks/labels/airline-consent.csv`, the half kept apart, half of them without consent). They are put as questions,
so that no code settles them, and go through ShieldAgent's pipeline as `bylaw.answering` does it: a plan for each rule,
Search and Formal-Verify by code, Binary-Check and Detect by a model, every quote checked word for word.

**Who answered.** The answers are recorded: a large general model, given the requests on pages of 1 to 40, asked once
for each and with no tool to help it, in November 2026; {date}.
Requests on one page were seen by the same reader. It is not one of the paper's models, and with {count} predicates one
more or less moves a share by {point:.1f} points. The prompts are `src/bylaw/answering/prompts` and, for the baselines,
`benchmarks/answers/prompts`; an answer is kept by the hash of its whole request and the number of the attempt.

**What was counted before.** A first round of the airline's requests cut messages at 1,200 characters (the baselines' at
300). It was discarded, and those requests were asked again with messages of up to 12,000. A first count of the guards
below left the packs' guards in: the plans had 23 of 27 right and stopped 4 of 12 wrongly, since a guard of another
policy denied three airline calls before a model was asked. The guards were then left out, and it was counted again.

## What was settled

| memory | from | right | wrong | unknown | queries | a predicate |
|---|---|---|---|---|---|---|
{settled}

`short`: within one conversation nothing is asked twice, such as the plan for a rule with two predicates. `long`:
besides, a plan that worked for the same rule and tool is taken over; here from one earlier pass over the same calls.
The checks are the same in all three, so memory changes what is asked and no answer. What plans for something alike,
shown as examples, do to plans for a new rule was not measured.

| predicate | true of | right | wrong | unknown |
|---|---|---|---|---|
{kinds}

{wrongs}

On the same calls `consented`, which needs no model, says: {code}.

## As a guard

The same calls decided by the rules alone, without the packs' guards: in order or not. A call is in order where the
user had consented and, in the clinic, one change is made at a time and a telehealth caller has said that the patient
will be in the state; in the airline, where the turn makes one call and says nothing beside it. The direct prompt and
the question for each rule are the paper's baselines: they are shown the whole conversation, with tools' answers cut
after {shown} characters; a check of a plan is shown what its search found.

| guard | right | stopped wrongly | let through wrongly | rules named | queries a call |
|---|---|---|---|---|---|
{guards}

`stopped wrongly` is of the calls in order, `let through wrongly` of the others; `rules named` is how many of the rules
that a call breaks the guard names. Whoever says `ask` stops the call.

Compliance among successful tasks, the paper's measure for a guard at work (table 3): of the calls in runs that reached
their goal and that the guard lets through, the share that is in order. What an agent would have done after being
stopped is not known from a recording.

| guard | {domains} | calls in order that it stops |
|---|{bars}---|
{compliance}

## Beside the paper

ShieldAgent, tables 1 and 3 (GPT-4o, web agents, 3,110 trajectories; agent-based / environment-based perturbation):

| guard | accuracy | false positives | rules named | queries | compliance among successful tasks, six environments |
|---|---|---|---|---|---|
| direct prompt | 73.3 / 75.8 | 7.6 / 6.6 | 31.5 / 31.5 | 1 | 26.5 to 70.2 |
| rule traverse | 82.0 / 81.6 | 18.1 / 15.0 | 69.0 / 75.0 | 27.1 / 31.5 | 32.0 to 75.1 |
| ShieldAgent | 90.4 / 91.7 | 5.6 / 4.0 | 87.5 / 92.7 | 9.5 / 11.2 | 50.7 to 80.5 |

Theirs are other tasks, another model and a hundred times as many, so no share can be held against one of ours, and
with {calls} calls ours say little of each other. What can be read off: a strong model with the whole conversation
before it does well without any plan. The plans let nothing through that was not in order, and pay for it with calls
that they stop: a plan asks more of a consent (a refund told, a sum named) than the readers who made the labels did.
With a memory they cost about one query a call, as the direct prompt does, and each answer comes with words that stand
in the conversation. The pipeline asks less than a question for each rule because code settles what code can, and
nothing is asked once the decision is clear.

Made by `python benchmarks/answering.py FOLDER --airline-answers DIR`. The clinic's answers lie in
`benchmarks/answers/recorded`; the airline's quote recorded conversations and are not in the repository. A test runs the
clinic's part again.
"""


def page(results: Results, packs: dict[str, Pack], model: str) -> str:
    """The results page."""
    first = results.settled[MEMORIES[0]]
    sites = list({id(each.site): each.site for each in first}.values())
    domains = list(dict.fromkeys(site.domain for site in sites))
    of = {domain: [each for each in first if each.site.domain == domain] for domain in ("clinic", "airline")}
    wrong = [each for found in results.settled.values() for each in found if _is_wrong(each)]
    return PAGE.format(
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
        code=code_says(sites),
        guards="\n".join(guard_row(name, found, packs) for name, found in results.ruled.items()),
        domains=" | ".join(domains),
        bars="---|" * len(domains),
        compliance="\n".join(compliance_row(name, found, domains) for name, found in results.ruled.items()),
    )


def settled_rows(results: Results, domains: Sequence[str]) -> Iterable[str]:
    """Right, wrong, unknown and queries, by memory and domain."""
    for memory, found in results.settled.items():
        for domain in (*domains, *(["both"] if len(domains) > 1 else [])):
            some = [each for each in found if domain in ("both", each.site.domain)]
            queries = sum(each.queries for each in some)
            yield f"| {memory} | {domain} | {_counts(some)} | {queries} | {queries / len(some):.1f} |"


def kind_rows(found: Sequence[Settled]) -> Iterable[str]:
    """By predicate, under long memory."""
    for domain, name in dict.fromkeys((each.site.domain, each.predicate) for each in found):
        some = [each for each in found if (each.site.domain, each.predicate) == (domain, name)]
        true = sum(each.site.truth[name] for each in some)
        yield f"| `{name}` ({domain}) | {true} of {len(some)} | {_counts(some)} |"


def told_wrongs(wrong: Sequence[Settled], results: Results) -> str:
    """Where the model and the truth part: counted, with the direction."""
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


def code_says(sites: Sequence[Site]) -> str:
    """What the packs' own `consented` says where consent is at stake."""
    counts: Counter[str] = Counter()
    names = {"clinic": "clinic", "airline": "tau-airline/tau1"}
    packs = {domain: load_pack(name) for domain, name in names.items()}
    for site in sites:
        session = Session(packs[site.domain])
        session.observe_all(site.trajectory.events[: site.step])
        judgement = session.judge(site.call)
        broken = any(each.rule.name == "confirm-before-change" for each in judgement.rules)
        is_open = any(each.rule.name == "confirm-before-change" for each in judgement.open_rules)
        truth = site.truth["said_yes"] if site.domain == "clinic" else site.truth["agreed"]
        counts["unknown" if is_open else "right" if broken != truth else "wrong"] += 1
    return ", ".join(f"{counts[word]} {word}" for word in ("right", "wrong", "unknown"))


def guard_row(name: str, found: Sequence[Ruled], packs: dict[str, Pack]) -> str:
    """Right, wrongly stopped, wrongly let through, rules named, queries."""
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
    """Of what is let through in successful runs, the share in order; and what is stopped although it is."""
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


def main() -> int:
    """Print the page or write it; or write down what still has to be asked."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, nargs="?")
    arguments.add_argument("--airline-answers", type=Path, default=Path("airline-answers"))
    arguments.add_argument("--page", type=Path)
    arguments.add_argument("--ask", metavar="FILE", type=Path, help="Write what is missing to FILE-1.md, FILE-2.md ...")
    arguments.add_argument("--take", metavar="FILE", type=Path, nargs="*", default=(), help="Answers to record.")
    arguments.add_argument("--model", default="unnamed", help="Who answered, for the recordings.")
    given = arguments.parse_args()
    folders = {"clinic": HERE / "recorded", "airline": given.airline_answers}
    sites = [*clinic_sites(), *(airline_sites(given.folder) if given.folder else ())]
    packs = {domain: pack_of(domain) for domain in {site.domain: None for site in sites}}
    if given.ask or given.take:
        return ask_and_take(sites, packs, folders, given)
    chat = Asked([Recordings(folder) for folder in folders.values()])
    results = everything(sites, packs, chat)
    if chat.missing:
        print(f"{len(chat.missing)} requests have no recorded answer: see --ask", file=sys.stderr)
        return 1
    text = page(results, packs, WHO)
    if given.page is None:
        sys.stdout.write(text)
    else:
        given.page.write_text(text, encoding="utf-8")
    return 0


def ask_and_take(sites: list[Site], packs: dict[str, Pack], folders: dict[str, Path], given: argparse.Namespace) -> int:
    """Record answers, and write down what is still missing."""
    missing = missing_requests(sites, packs, folders)
    for file in given.take:
        for domain, requests in missing.items():
            lines, wrong = take(file, list(requests.values()), given.model)
            folders[domain].mkdir(parents=True, exist_ok=True)
            with (folders[domain] / f"{domain}.jsonl").open("ab") as out:
                out.write(lines)
            faults = [each for each in wrong if "nobody" not in each]
            print(f"{file.name} -> {domain}: {lines.count(b'custom_id')} recorded", *faults)
    if given.ask:
        missing = missing_requests(sites, packs, folders)
        every = [request for requests in missing.values() for request in requests.values()]
        print({domain: Counter(each.name for each in requests.values()) for domain, requests in missing.items()})
        groups: list[list[Request]] = [[]]
        for request in sorted(every, key=lambda each: each.name):
            size = sum(len(each.messages[1].content) for each in groups[-1])
            if groups[-1] and (len(groups[-1]) >= PER_PAGE or size > PAGE_SIZE or groups[-1][0].name != request.name):
                groups.append([])
            groups[-1].append(request)
        for number, group in enumerate(filter(None, groups), 1):
            answers = given.ask.with_name(f"{given.ask.name}-{number}.answers.jsonl").resolve()
            waiting = given.ask.with_name(f"{given.ask.name}-{number}.part")
            waiting.write_text(asking_page(group, answers), encoding="utf-8")
            waiting.rename(given.ask.with_name(f"{given.ask.name}-{number}.md"))
            print(group[0].name, len(group), sum(len(each.messages[1].content) for each in group))
    return 0


PER_PAGE, PAGE_SIZE = 40, 60_000


def missing_requests(
    sites: Sequence[Site], packs: dict[str, Pack], folders: dict[str, Path]
) -> dict[str, dict[str, Request]]:
    """What has no recorded answer, by domain: the clinic's comes first and does not hang on the airline's."""
    found: dict[str, dict[str, Request]] = {}
    for domains in (("clinic",), ("clinic", "airline")):
        mine = [site for site in sites if site.domain in domains]
        chat = Asked([Recordings(folder) for folder in folders.values()])
        everything(mine, packs, chat)
        before = {key for requests in found.values() for key in requests}
        found[domains[-1]] = {key: request for key, request in chat.missing.items() if key not in before}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
