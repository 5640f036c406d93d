"""What a call costs in a long conversation, beside what it costs in short ones: live and audited, one core.

    uv run python lab/benchmarks/long_conversation.py [--calls 5000] [--short 50]

Simulated conversations of the clinic follow one another in a single session, and then, the very same ones, in many that
are short. `others`: each is about other patients; `same`: one of them comes again and again, so that all is about the
same few things. Live, every call is decided and all that is said and answered is taken in; audited, every write is
judged and settled in hindsight. Microseconds of CPU per call, and how many times that of the short ones it is in the
long one. Each is counted in a process of its own, so that neither finds words that the other has read.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Sequence
from itertools import cycle
from time import thread_time

from shield_latency import moved, say

from bylaw.engine.finished import verdicts
from bylaw.pack import Pack, load_pack
from bylaw.shield import Shield
from bylaw.trace import Call, Event, Result, Trajectory
from bylaw_lab.clinic.simulator.generate import simulate

Way = Callable[[Pack, Sequence[Event]], None]
TIMES = 2.0
"""At most so many times what a call costs in a short conversation."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--short", type=int, default=50)
    given = parser.parse_args()
    pack = load_pack("clinic")
    talks = [talk.events for seed in (1, 2, 3) for talk, _ in simulate(seed, 700)]
    same = next(talk for talk in talks if writes(pack, talk) > 1)
    is_met = True
    print(f"{'':16} {given.short:>8,} {given.calls:>8,} calls   times")
    for name, source in (("others", talks), ("same", [same])):
        for way in (live, audited):
            short, long = (apart(way, pack, source, given.calls, count) for count in (given.short, given.calls))
            print(f"{name:7} {way.__name__:8} {short:8.0f} {long:8.0f}         {long / short:5.2f}", flush=True)
            is_met = is_met and long <= TIMES * short
    return 0 if is_met else 1


def apart(way: Way, pack: Pack, talks: Sequence[Sequence[Event]], calls: int, count: int) -> float:
    """Microseconds per call, in a process of its own, of conversations with `count` calls each."""
    fork = multiprocessing.get_context("fork")
    found = fork.SimpleQueue()
    work = fork.Process(target=lambda: found.put(cost(way, pack, conversations(talks, calls, count))))
    work.start()
    work.join()
    if work.exitcode:
        raise SystemExit(f"the process ended with {work.exitcode}")
    return found.get()


def cost(way: Way, pack: Pack, pieces: Sequence[Sequence[Event]]) -> float:
    """Microseconds per call over some conversations."""
    start = thread_time()
    for events in pieces:
        way(pack, events)
    return (thread_time() - start) / sum(count_calls(events) for events in pieces) * 1e6


def live(pack: Pack, events: Sequence[Event]) -> None:
    """Say all that happens to a session of a shield, and ask it for a decision on every call."""
    for _ in say(Shield(pack).session(), events):
        pass


def audited(pack: Pack, events: Sequence[Event]) -> None:
    """Hold the finished conversation to the pack."""
    verdicts(pack, Trajectory("long", events))


def conversations(talks: Sequence[Sequence[Event]], calls: int, count: int) -> list[list[Event]]:
    """So many calls in conversations of `count` calls each, made of simulated ones that follow each other."""
    found: list[list[Event]] = []
    turn = left = 0
    for talk in cycle(talks):
        if calls <= 0:
            return found
        if left <= 0:
            found.append([])
            turn, left = 0, count
        found[-1] += moved(talk, len(found[-1]), turn)
        turn += 1 + max(event.turn for event in talk if not isinstance(event, Result))
        calls, left = calls - count_calls(talk), left - count_calls(talk)
    raise SystemExit("no simulated conversations")


def count_calls(events: Sequence[Event]) -> int:
    return sum(isinstance(event, Call) for event in events)


def writes(pack: Pack, talk: Sequence[Event]) -> int:
    tools = pack.schema.tools
    return sum(isinstance(event, Call) and tools[event.tool].effect == "write" for event in talk)


if __name__ == "__main__":
    raise SystemExit(main())
