"""Measures the CPU time of one live decision, by the number of earlier events, in this process with the clinic pack.

    uv run python lab/benchmarks/shield_latency.py [--decisions 600] [--events 10 100 1000 10000] [--rounds 1]
                                               [--consent-off]

The calls are the writes of simulated conversations, decided where they were made. The session has already observed
`--events` events of other conversations, with decisions on their writes. Only the decision is timed, with the thread's
CPU clock: `Session.judge`, and `decide` of a shield with its grounds and feedback. With several rounds of the same
calls, each decision counts with its fastest time. This excludes other load, and also the first reading of each text,
because readings are cached between rounds. With `--consent-off`, the same decisions alternate between the pack and a
pack in which every user has agreed. The result is the ratio of their medians.
"""

import argparse
import re
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import thread_time_ns
from typing import TypeGuard

from msgspec.structs import replace

from bylaw.engine.session import Session
from bylaw.pack import Pack, load_pack
from bylaw.packs import clinic
from bylaw.shield import Shield
from bylaw.shield.session import LiveSession
from bylaw.trace import Call, Event, Message, Result
from bylaw_lab.clinic.simulator.generate import simulate

P50, P50_LATE, P99, OPENING = 350, 450, 1_600, 50
"""The targets in microseconds: the median decision after few and after many events, the 99th percentile, and opening a
session.
"""
MANY = 10_000
CONSENTED = re.compile(r"  agreed:\n    consented: told\n    description: (.*)\n(?:    .*\n)+")
CONSENT = 1.15
"""The maximum time of a decision with consent, as a multiple of a decision without it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=600, help="how many are timed in each row")
    parser.add_argument("--events", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=1, help="each decision counts by its quickest of so many")
    parser.add_argument("--consent-off", action="store_true", help="compare with a pack that does not ask for consent")
    given = parser.parse_args()
    pack = load_pack("clinic")
    talks = [talk.events for seed in range(1, 5) for talk, _ in simulate(seed, 500)]
    judge(pack, talks, 0, 300)
    if given.consent_off:
        met = [compare(pack, talks, earlier, given.decisions, given.rounds) for earlier in given.events]
        return 0 if all(met) else 1
    print(f"{'earlier events':>14} | {'judge p50':>9} {'p99':>8} | {'decide p50':>10} {'p99':>8}   microseconds of CPU")
    is_met = True
    for earlier in given.events:
        judged = quickest([judge(pack, talks, earlier, given.decisions) for _ in range(given.rounds)])
        decided = quickest([decide(pack, talks, earlier, given.decisions) for _ in range(given.rounds)])
        found = [at for times in (judged, decided) for at in (statistics.median(times), percentile(times, 99))]
        print(f"{earlier:14,} | {found[0]:9.0f} {found[1]:8.0f} | {found[2]:10.0f} {found[3]:8.0f}", flush=True)
        is_met = is_met and found[2] <= (P50_LATE if earlier >= MANY else P50) and found[3] <= P99
    opening = statistics.median(open_session(pack) for _ in range(2_000))
    goals = f"{P50} a decision ({P50_LATE} after {MANY:,} events), {P99} for nearly all, {OPENING} to open a Session"
    print(f"opening a Session: {opening:.0f}; the goals are {goals}")
    return 0 if is_met and opening < OPENING else 1


def compare(pack: Pack, talks: Sequence[Sequence[Event]], earlier: int, count: int, rounds: int) -> bool:
    """Print the times of decisions with and without consent. Return whether their ratio is within the target."""
    off = without_consent()
    pairs = [(decide(pack, talks, earlier, count), decide(off, talks, earlier, count)) for _ in range(rounds)]
    asked, unasked = (statistics.median(quickest(times)) for times in zip(*pairs, strict=True))
    print(
        f"{earlier:14,} | decide p50 {asked:.0f}, with consent off {unasked:.0f}: {asked / unasked:.2f} times",
        flush=True,
    )
    return asked <= CONSENT * unasked


def without_consent() -> Pack:
    """Return the clinic's pack, in which every user has agreed to every change."""
    with tempfile.TemporaryDirectory(prefix="bylaw-latency-") as place:
        folder = Path(place) / "clinic"
        shutil.copytree(Path(clinic.__file__).parent, folder)
        rules = folder / "rules.yaml"
        rules.write_text(CONSENTED.sub("  agreed: {effect: write, description: \\1}\n", rules.read_text()))
        return load_pack(folder)


def judge(pack: Pack, talks: Sequence[Sequence[Event]], earlier: int, count: int) -> list[float]:
    """Return the microseconds that `Session.judge` takes on write calls after this number of events."""
    found: list[float] = []
    session, step, turn = Session(pack), 0, 0
    for talk in talks:
        is_measured = step >= earlier
        if step > 2 * earlier:
            session, step, turn = Session(pack), 0, 0
        for event in moved(talk, step, turn):
            if is_write(event, pack):
                start = thread_time_ns()
                session.judge(event)
                if is_measured:
                    found.append((thread_time_ns() - start) / 1_000)
            session.observe(event)
        step, turn = step + len(talk), turn + 1 + max(event.turn for event in talk if not isinstance(event, Result))
        if len(found) >= count:
            return found
    raise SystemExit("too few simulated conversations")


def decide(pack: Pack, talks: Sequence[Sequence[Event]], earlier: int, count: int) -> list[float]:
    """Return the microseconds that a shield's `decide` takes on write calls after this number of events. Refused calls
    change nothing.
    """
    shield = Shield(pack)
    found: list[float] = []
    session, step = shield.session("latency"), 0
    for talk in talks:
        is_measured = step >= earlier
        if step > 2 * earlier:
            session, step = shield.session("latency"), 0
        for call, taken in say(session, talk, step):
            if is_measured and is_write(call, pack):
                found.append(taken)
        step += len(talk)
        if len(found) >= count:
            return found
    raise SystemExit("too few simulated conversations")


def say(session: LiveSession, talk: Sequence[Event], step: int = 0) -> Iterator[tuple[Call, float]]:
    """Report a conversation to a session and decide every call. Yield each call with its microseconds. `step` is the
    number of earlier events.
    """
    refused: set[int] = set()
    for place, event in enumerate(talk):
        match event:
            case Message(by="user"):
                session.user(event.text)
            case Message():
                session.agent(event.text)
            case Call():
                start = thread_time_ns()
                decision = session.decide(event.tool, event.arguments, id=f"{step + place}")
                taken = (thread_time_ns() - start) / 1_000
                if not decision.allowed:
                    refused.add(place)
                yield event, taken
            case Result() if event.call is not None and event.call not in refused:
                content = event.content if isinstance(event.content, str) else event.value()
                session.result(content, id=f"{step + event.call}", error=event.error)
            case Result():
                pass


def quickest(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Return the shortest time of each decision over all rounds."""
    return [min(times) for times in zip(*rounds, strict=True)]


def moved(talk: Sequence[Event], step: int, turn: int) -> Iterator[Event]:
    """Yield the events of a conversation with their steps and turns moved, as after other events."""
    for event in talk:
        if isinstance(event, Result):
            yield replace(event, call=None if event.call is None else event.call + step)
        else:
            yield replace(event, turn=event.turn + turn)


def is_write(event: Event, pack: Pack) -> TypeGuard[Call]:
    tool = pack.schema.tools.get(event.tool) if isinstance(event, Call) else None
    return tool is not None and tool.effect == "write"


def open_session(pack: Pack) -> float:
    """Return the microseconds that opening a session takes."""
    start = thread_time_ns()
    Session(pack)
    return (thread_time_ns() - start) / 1_000


def percentile(times: Sequence[float], percent: int) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]


if __name__ == "__main__":
    raise SystemExit(main())
