"""What a call costs in a long conversation, beside what it costs in a short one: live and audited, one core.

    uv run python benchmarks/long_conversation.py [--calls 5000] [--short 50]

Simulated conversations of the clinic follow one another in a single session. `others`: each is about other patients;
`same`: one of them comes again and again, so that all is about the same few things. Live, every call is decided and all
that is said and answered is taken in; audited, every write is judged and settled in hindsight. Microseconds of CPU per
call over the whole conversation, and how many times that of the short one it is.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import cycle
from time import thread_time

from shield_latency import moved, say

from bylaw.engine.finished import verdicts
from bylaw.pack import Pack, load_pack
from bylaw.packs.clinic.simulator.generate import simulate
from bylaw.shield import Shield
from bylaw.trace import Call, Event, Result, Trajectory

TIMES = 2.0
"""At most so many times what a call costs in the short conversation."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--short", type=int, default=50)
    given = parser.parse_args()
    pack = load_pack("clinic")
    talks = [talk.events for seed in (1, 2, 3) for talk, _ in simulate(seed, 700)]
    same = next(talk for talk in talks if writes(pack, talk) > 1)
    warm = joined(talks, given.short)
    live(pack, warm)
    audited(pack, warm)
    is_met = True
    print(f"{'':16} {given.short:>8,} {given.calls:>8,} calls   times")
    for name, source in (("others", talks), ("same", [same])):
        for way in (live, audited):
            short, long = (cost(way, pack, joined(source, count)) for count in (given.short, given.calls))
            print(f"{name:7} {way.__name__:8} {short:8.0f} {long:8.0f}         {long / short:5.2f}", flush=True)
            is_met = is_met and long <= TIMES * short
    return 0 if is_met else 1


def cost(way: Callable[[Pack, Sequence[Event]], None], pack: Pack, events: Sequence[Event]) -> float:
    """Microseconds per call; a short conversation counts by its quickest of several."""
    calls = sum(isinstance(event, Call) for event in events)
    times: list[float] = []
    for _ in range(5 if calls < 1_000 else 1):
        start = thread_time()
        way(pack, events)
        times.append(thread_time() - start)
    return min(times) / calls * 1e6


def live(pack: Pack, events: Sequence[Event]) -> None:
    """Say all that happens to a session of a shield, and ask it for a decision on every call."""
    for _ in say(Shield(pack).session(), events):
        pass


def audited(pack: Pack, events: Sequence[Event]) -> None:
    """Hold the finished conversation to the pack."""
    verdicts(pack, Trajectory("long", events))


def joined(talks: Sequence[Sequence[Event]], calls: int) -> list[Event]:
    """Conversations one after the other, until they make so many calls."""
    found: list[Event] = []
    turn = made = 0
    for talk in cycle(talks):
        found += moved(talk, len(found), turn)
        turn += 1 + max(event.turn for event in talk if not isinstance(event, Result))
        made += sum(isinstance(event, Call) for event in talk)
        if made >= calls:
            return found
    raise SystemExit("no simulated conversations")


def writes(pack: Pack, talk: Sequence[Event]) -> int:
    tools = pack.schema.tools
    return sum(isinstance(event, Call) and tools[event.tool].effect == "write" for event in talk)


if __name__ == "__main__":
    raise SystemExit(main())
