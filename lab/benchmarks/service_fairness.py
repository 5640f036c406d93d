"""How long one tenant waits for decisions while another sends what costs most.

    python lab/benchmarks/service_fairness.py [--rounds 6] [--seconds 2] [--connections 4]

A service of its own on the loopback, with a log in SQLite. A quiet tenant sends 50 small decisions a second, each in a
conversation of its own. Another tenant attacks with histories that go round in circles, long sentences, a body of
almost 1 MiB, and a flood of small decisions. Each attack stops and starts again every few seconds, so that the quiet
tenant alone and the quiet tenant under attack are measured under the same load of the machine. Prints both.
"""

import argparse
import http.client
import json
import multiprocessing
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

RATE = 50.0
SETTLING = 0.5
"""Seconds before each measurement: what was sent before it is answered by then."""
FILES = {
    "pack.yaml": "{format: 1, name: till, document: policy.md}",
    "policy.md": "Ask before you pay.\n",
    "policies.yaml": "policies: [{id: ask, kind: rule, spans: [Ask before you pay.]}]\n",
    "rules.yaml": "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
    "rules: [{id: ask, formula: ALWAYS (change IMPLIES agreed)}]\n",
    "tools.yaml": "tools: {pay: {effect: write, parameters: {to: string}, changes: [], put_as: 'pay {to}'}, "
    "get: {effect: read, parameters: {id: string}}}\n",
}
PAY = {"tool": "pay", "arguments": {"to": "AB1"}}


def _talk(*words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": word} for word in words]


def _histories() -> Iterator[tuple[str, dict[str, Any]]]:
    """A history of equal words, and the same with another first word, again and again."""
    for number in count():
        words = ["a"] * 980
        for told in (words, ["b", *words[:-1]]):
            yield "/v1/events", {"conversation": f"h{number}", "events": [{"messages": _talk(*told)}]}


def _sentences() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in count():
        text = "Shall I pay AB1? " * 11_000
        events = [{"agent": text}, {"user": "Yes."}]
        yield "/v1/decide", {"conversation": f"s{number}", "events": events, **PAY}


def _bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in count():
        results = [{"messages": _talk(f"{number} {part}" + " no" * 60_000)} for part in range(5)]
        yield "/v1/decide", {"conversation": f"b{number}", "events": results, **PAY}


def _flood() -> Iterator[tuple[str, dict[str, Any]]]:
    for number in count():
        yield "/v1/decide", {"conversation": f"f{number}", "events": [{"user": "Hello."}], **PAY}


ATTACKS: dict[str, Callable[[], Iterator[tuple[str, dict[str, Any]]]]] = {
    "histories": _histories,
    "sentences": _sentences,
    "bodies": _bodies,
    "flood": _flood,
}


class Client:
    """One connection of a tenant."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}

    def post(self, path: str, body: bytes) -> int:
        self._connection.request("POST", path, body, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status


def quiet(port: int, key: str, seconds: float, name: str) -> list[float]:
    """The seconds that each small decision took; its time counts from when it was due."""
    client, took, begin = Client(port, key), list[float](), time.perf_counter()
    for number in range(int(seconds * RATE)):
        due = begin + number / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        asked = {"conversation": f"{name}{number}", "events": [{"user": "Hello."}], **PAY}
        assert client.post("/v1/decide", json.dumps(asked).encode()) == 200
        took.append(time.perf_counter() - due)
    return sorted(took)


def attacking(port: int, key: str, attack: str, name: int, going: Any, ended: Any, sent: Any) -> None:
    """Attack while it is `going`, from a process of its own; in the end the statuses of the answers are `sent`."""
    client, statuses = Client(port, key), Counter[int]()
    requests = [
        (path, json.dumps(asked | {"conversation": f"{asked['conversation']}-{name}"}).encode())
        for path, asked in islice(ATTACKS[attack](), 50)
    ]
    sent.put(statuses)
    for path, body in cycle(requests):
        while not going.wait(0.1) and not ended.is_set():
            pass
        if ended.is_set():
            break
        statuses[client.post(path, body)] += 1
    sent.put(statuses)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=6)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--connections", type=int, default=4)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), given.rounds, given.seconds, given.connections)


def _measure(folder: Path, rounds: int, seconds: float, connections: int) -> None:
    (folder / "pack").mkdir()
    for name, text in FILES.items():
        (folder / "pack" / name).write_text(text, encoding="utf-8")
    bylaw, keys = [sys.executable, "-c", "from bylaw.cli import main; main()", "serve"], list[str]()
    with (folder / "keys").open("w") as file:
        for tenant in ("loud", "calm"):
            told = subprocess.run([*bylaw, "--new-key", tenant], capture_output=True, text=True, check=True).stdout
            keys += re.findall(r"bylaw_[\w-]+", told)[:1]
            file.write(told.split("line for --keys:")[1].strip() + "\n")
    options = ["--pack", folder / "pack", "--store", folder / "log.db", "--port", "0", "--keys", folder / "keys"]
    running = subprocess.Popen(
        [*bylaw, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    port = int(next(found[1] for line in running.stdout if (found := re.search(r"127\.0\.0\.1:(\d+)", line))))
    try:
        quiet(port, keys[1], 2.0, "warm")
        for attack in ATTACKS:
            going, ended, sent = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
            others = [
                multiprocessing.Process(target=attacking, args=(port, keys[0], attack, at, going, ended, sent))
                for at in range(connections)
            ]
            for each in others:
                each.start()
            # Their requests are ready.
            ready = [sent.get() for _ in others]
            took: dict[bool, list[float]] = {False: [], True: []}
            for number in range(2 * rounds):
                is_attacked = number % 2 == 1
                if is_attacked:
                    going.set()
                time.sleep(SETTLING)
                took[is_attacked] += quiet(port, keys[1], seconds, f"{attack}{number}-")
                going.clear()
            ended.set()
            statuses = sum((sent.get() for _ in ready), Counter[int]())
            for each in others:
                each.join()
            alone, attacked = (_told(took[each]) for each in (False, True))
            print(f"{attack:10} alone {alone}; attacked {attacked}; attacker: {dict(statuses)}", flush=True)
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(20)


def _told(took: list[float]) -> str:
    took = sorted(took)
    p50, p99 = (1000 * took[int(len(took) * share)] for share in (0.5, 0.99))
    return f"p50 {p50:6.1f} ms, p99 {p99:6.1f} ms"


if __name__ == "__main__":
    main()
