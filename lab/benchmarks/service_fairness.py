"""Measures what one hostile tenant costs another: the latency of a tenant's small requests, alone and beside the other.

    python lab/benchmarks/service_fairness.py [--requests long|many] [--rounds 10] [--seconds 2.5] [--rate 40]

A service runs on loopback with the clinic pack and a new log in SQLite. Ann sends small requests in an open loop: a
request is sent when it is due, and its time counts from then. In every second window, Eve keeps twelve requests open:
`long` sends whole histories of about 1,000 messages, `many` sends small requests. The windows alternate within one run,
because other programs on the machine change both alike, and Ann's next window alone begins after Eve's last response.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from service_load import percentile
from service_traffic import Connection, Service

from bylaw.service.keys import key_line, new_key

OPEN = 12
CALL = {"tool": "get_patient", "arguments": {"patient_id": "P1"}}


def http(key: str, body: Any) -> bytes:
    text = json.dumps(body).encode()
    head = f"POST /v1/decide HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text


def small(key: str, name: str) -> bytes:
    return http(key, {"conversation": name, "events": [{"user": "Please book me in."}], **CALL})


def history(turns: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for turn in range(turns):
        function = {"name": "get_patient", "arguments": json.dumps({"patient_id": f"P{turn}"})}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        found += [
            {"role": "user", "content": f"Please look at patient {turn}. " + "There is more to say. " * 20},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": json.dumps({"patient_id": f"P{turn}"})},
        ]
    return found


async def ann(port: int, key: str, names: Any, rate: float, seconds: float) -> list[float]:
    """Return the seconds until each response."""
    took, begin, count = list[float](), time.perf_counter(), int(rate * seconds)

    async def host(first: int) -> None:
        connection = Connection(port)
        for number in range(first, count, 4):
            due = begin + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            status, body = await connection.ask(small(key, f"ann-{next(names)}"))
            assert status == 200, body
            took.append(time.perf_counter() - due)
        connection.close()

    await asyncio.gather(*map(host, range(4)))
    return took


async def eve(port: int, key: str, requests: str, ended: asyncio.Event, names: Any) -> None:
    connection, long = Connection(port), http(key, {"messages": history(320), **CALL})
    while not ended.is_set():
        status, body = await connection.ask(long if requests == "long" else small(key, f"eve-{next(names)}"))
        assert status == 200, body
    connection.close()


async def measure(service: Service, keys: dict[str, str], given: argparse.Namespace) -> None:
    await service.ready()
    names = iter(range(10**9))
    (alone, beside), ratios = (list[float](), list[float]()), list[float]()
    await ann(service.port, keys["ann"], names, given.rate, 2.0)
    for _ in range(given.rounds):
        first = await ann(service.port, keys["ann"], names, given.rate, given.seconds)
        ended = asyncio.Event()
        hostile = [
            asyncio.create_task(eve(service.port, keys["eve"], given.requests, ended, names)) for _ in range(OPEN)
        ]
        await asyncio.sleep(0.5)
        second = await ann(service.port, keys["ann"], names, given.rate, given.seconds)
        ended.set()
        await asyncio.gather(*hostile)
        ratios.append(percentile(second, 0.99) / percentile(first, 0.99))
        alone += first
        beside += second
    for name, took in (("alone", alone), ("beside Eve", beside)):
        print(f"{name}: p50 {percentile(took, 0.5):.1f} ms, p99 {percentile(took, 0.99):.1f} ms, {len(took)} requests")
    print(f"p99 beside Eve is {percentile(beside, 0.99) / percentile(alone, 0.99):.2f} times p99 alone")
    print(f"in {given.rounds} rounds: {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", choices=["long", "many"], default="long")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--rate", type=float, default=40)
    given = parser.parse_args()
    keys = {name: new_key() for name in ("ann", "eve")}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys"
        file.write_text("".join(f"{key_line(name, key)}\n" for name, key in keys.items()))
        service = Service(str(Path(folder) / "log.db"), options=("--keys", str(file)))
        try:
            asyncio.run(measure(service, keys, given))
        finally:
            service.stop()


if __name__ == "__main__":
    main()
