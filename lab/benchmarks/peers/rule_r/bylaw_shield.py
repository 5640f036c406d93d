"""Rule R in a live shield: parse all messages so far, and then decide the cancellation."""

from pathlib import Path

from timing import measure, trace_of

from bylaw.shield import Shield

SHIELD = Shield(Path(__file__).parent / "pack")


def decide(line):
    messages = trace_of(line)["messages"]
    call = messages[-1]["tool_calls"][0]["function"]
    return SHIELD.decide(messages, call["name"], call["arguments"]).allowed


if __name__ == "__main__":
    measure(decide)
