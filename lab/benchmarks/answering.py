"""Measures a model's answers to predicates that code cannot decide, with each kind of memory, next to baselines.

    uv run python lab/benchmarks/answering.py [FOLDER] [--airline-answers DIR] [--page lab/results/pages/answering.md]
    uv run python lab/benchmarks/answering.py [FOLDER] --ask FILE     the questions that still need an answer

FOLDER contains the airline's runs (`tau1/runs`, `tau2/runs`). Without it, only the clinic is measured. The clinic's
answers are in `lab/benchmarks/answers/recorded`. The airline's answers quote recorded conversations, so keep them in a
folder of your own.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from answers import page
from answers.asking import page as asking_page
from answers.asking import take
from answers.measured import SHOWN, Results, Ruled, Settled
from answers.sites import HERE, Site, airline_sites, clinic_sites, pack_of
from msgspec import Struct

from bylaw.answering import Answerer, Plans
from bylaw.answering.history import History, Remembered, call_text
from bylaw.engine.session import Session
from bylaw.llm import Answer, Request
from bylaw.llm.chat import ChatError, render, schema_of
from bylaw.llm.recorded import Recordings
from bylaw.pack import Pack
from bylaw.shield.decision import outcome
from bylaw.shield.grounds import find_grounds, weigh

Shape = TypeVar("Shape")
MEMORIES = ("none", "short", "long")
GUARDS = ("nobody", "direct prompt", "every rule in turn", "plans, no memory", "plans, long memory")


WHO = "the first answer counted, and none was changed"


class Direct(Struct, frozen=True):
    """The answer to the direct prompt."""

    safe: bool
    violated: tuple[str, ...] = ()
    because: str = ""


class Broken(Struct, frozen=True):
    """The answer about one rule."""

    violated: bool
    because: str = ""


class Asked:
    """Uses recorded answers in place of a model, and records which answers are missing."""

    def __init__(self, recordings: Sequence[Recordings]) -> None:
        self._recordings = recordings
        self.missing: dict[str, Request] = {}

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers if all of them were recorded."""
        found = [next(filter(None, (each.find(request) for each in self._recordings)), None) for request in requests]
        for request, answer in zip(requests, found, strict=True):
            if answer is None:
                self.missing[request.key] = request
        if None in found:
            raise ChatError("not recorded")
        return [answer for answer in found if answer is not None]


class Filling(Plans):
    """A memory that can only be written to."""

    def like(self, about: str) -> list[tuple[float, Remembered]]:
        """Return nothing."""
        return []


def opened(sites: Sequence[Site], packs: dict[str, Pack], chat: Asked, memory: str) -> Answerer:
    """Return an answerer with one kind of memory. The long memory was filled in an earlier pass over the same calls."""
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
    """Answer every predicate of every call, in order, using one kind of memory."""
    answerer = opened(sites, packs, chat, memory)
    found: list[Settled] = []
    for site in sites:
        pack = packs[site.domain]
        answer, act = answerer(pack, lambda site=site: site.trajectory.events), site.act(pack)
        for predicate in site.truth:
            said = answer(predicate, act)
            found.append(Settled(site, predicate, said.value, said.queries, said.because))
    return found


def by_shield(sites: Sequence[Site], packs: dict[str, Pack], chat: Asked, memory: str) -> list[Ruled]:
    """Return the decision of the shield by the rules, using the given pipeline."""
    answerer = opened(sites, packs, chat, memory)
    found: list[Ruled] = []
    for site in sites:
        pack, events = packs[site.domain], site.trajectory.events
        session = Session(pack, answer=answerer(pack, lambda events=events: events), is_live=True)
        session.observe_all(events[: site.step])
        judgement = session.judge(site.call)
        every = find_grounds(session, pack.postures, judgement, weighed=weigh(session, judgement))
        grounds = [each for each in every if each.kind == "rule"]
        said = frozenset(each.policy for each in grounds if each.answer == "deny")
        queries = sum(each.queries for each in session.answered)
        found.append(Ruled(site, outcome(grounds)[0] != "allow", said, queries))
    return found


def by_direct(sites: Iterable[Site], packs: dict[str, Pack], chat: Asked) -> list[Ruled]:
    """Ask a single question with the whole policy and the whole conversation."""
    found: list[Ruled] = []
    for site in sites:
        policy = "\n".join(f"- {name}: {text}" for name, text in sentences(packs[site.domain]).items())
        reply = _asked(chat, "direct", {"policy": policy, **_seen(site, packs)}, Direct)
        found.append(Ruled(site, reply is None or not reply.safe, frozenset(reply.violated if reply else ()), 1))
    return found


def by_traversal(sites: Iterable[Site], packs: dict[str, Pack], chat: Asked) -> list[Ruled]:
    """Ask one question per rule, and stop at the first broken one."""
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
    """Return the policy for this measurement: the sentences that its rules enforce, or the sentences of the pack."""
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
    """Measure everything on the same calls, with the same answers."""
    settled = {memory: settle(sites, packs, chat, memory) for memory in MEMORIES}
    ruled = {
        GUARDS[0]: [Ruled(site, False, frozenset(), 0) for site in sites],
        GUARDS[1]: by_direct(sites, packs, chat),
        GUARDS[2]: by_traversal(sites, packs, chat),
        GUARDS[3]: by_shield(sites, packs, chat, "none"),
        GUARDS[4]: by_shield(sites, packs, chat, "long"),
    }
    return Results(settled, ruled)


def main() -> int:
    """Print or write the page, or write the questions that have no answer."""
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
    text = page.page(results, packs, WHO)
    if given.page is None:
        sys.stdout.write(text)
    else:
        given.page.write_text(text, encoding="utf-8")
    return 0


def ask_and_take(sites: list[Site], packs: dict[str, Pack], folders: dict[str, Path], given: argparse.Namespace) -> int:
    """Record answers, and write the questions that have none."""
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
    """Return the predicates without a recorded answer. Those of the clinic come first, so that they do not depend on
    the airline's.
    """
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
