"""A conversation that was judged and settled is gone when nobody holds it: nothing waits for the collector."""

import gc
from collections.abc import Sequence

from bylaw.engine.session import Session
from bylaw.pack import load_pack
from bylaw.trace import Call, Event
from bylaw_lab.clinic.simulator.generate import simulate


def test_a_settled_conversation_leaves_nothing_to_collect() -> None:
    pack = load_pack("clinic")
    talks = [talk.events for talk, _ in simulate(3, 12)]
    # What is kept for all conversations is made by the first ones.
    for events in talks:
        _judge(Session(pack), events)
    gc.collect()
    gc.disable()
    try:
        for events in talks:
            _judge(Session(pack), events)
        assert gc.collect() == 0
    finally:
        gc.enable()


def _judge(session: Session, events: Sequence[Event]) -> None:
    for event in events:
        if isinstance(event, Call):
            session.judge(event)
        session.observe(event)
    session.settle()
    session.findings(ended=True)
