"""Rule R in Bylaw's engine: read the trace, pass every event to a session, and judge the cancellation."""

from pathlib import Path

from timing import measure

from bylaw.engine.session import Session
from bylaw.pack import load_pack
from bylaw.trace import Call
from bylaw.trace.document import Record
from bylaw.trace.readers.openai import conversation
from bylaw.trace.source import Source

PACK = load_pack(Path(__file__).parent / "pack")
SOURCE = Source(Path("traces.jsonl"))


def decide(line):
    session = Session(PACK)
    events = conversation(SOURCE, Record(line, 0)).events
    observed = 0
    for step, event in enumerate(events):
        if isinstance(event, Call) and event.tool == "cancel_reservation":
            session.observe_all(events[observed:step])
            observed = step
            judgement = session.judge(event)
            if any(c.outcome != "permit" for evidence in judgement.evidence for c in evidence.completions):
                return False
    return True


if __name__ == "__main__":
    measure(decide)
