"""Sends malformed requests and events to a service: no 5xx, no crash, no `allow` for a write.

    python lab/benchmarks/service_fuzz.py own [--count 25000] [--seed 1] [--store sqlite|postgres]
    python lab/benchmarks/service_fuzz.py schemathesis [--count 10000] [--seed 1]

`own` mutates valid requests: values of other types, missing and added fields, broken JSON, broken text, deep nesting,
and data that is not HTTP. `schemathesis` (install this package separately) generates requests from the OpenAPI
document, half of them invalid. No request shows that an order was returned, so no refund may be allowed. The exit
status is 1 if a refund is allowed, a response is a 5xx, the service has stopped, or the log does not verify.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))
from service_stores import KINDS, new_log
from service_traffic import Connection, Service, http

from bylaw.record import open_store
from bylaw.record.verify import verify
from tests.engine.test_conversation import FILES
from tests.service.malformed import allowed_writes, malformed

CLIENTS = 8
NOT_HTTP = (
    b"\x00\x01\x02\r\n\r\n",
    b"GET\r\n\r\n",
    b"POST /v1/decide HTTP/9.9\r\n\r\n",
    b"{}\r\n\r\n",
    b"POST /v1/decide HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: abc\r\n\r\n{}",
    b"POST /v1/decide HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
)


class Findings:
    """The responses."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.faults: list[str] = []

    def take(self, path: str, sent: bytes, status: int, body: bytes) -> None:
        self.statuses[status] += 1
        if status >= 500:
            self.faults.append(f"{status} for {path} {sent[:300]!r}: {body[:300]!r}")
        elif path != "/metrics" and (writes := allowed_writes(status, body)):
            self.faults.append(f"allowed by {path} {sent[:300]!r}: {writes[0]}")


async def own(service: Service, count: int, seed: int, findings: Findings) -> None:
    """Send mutated valid requests over a few connections."""
    share = count // CLIENTS

    async def client(number: int) -> None:
        rng = random.Random(seed * CLIENTS + number)
        connection = Connection(service.port)
        for at in range(share):
            if rng.random() < 0.01:
                await _not_http(service.port, rng.choice(NOT_HTTP))
                findings.statuses[0] += 1
                continue
            path, body = malformed(rng, f"c{number}-{at // 200}")
            method = "POST" if rng.random() < 0.95 else rng.choice(["GET", "PUT"])
            try:
                status, told = await connection.ask(http(method, path, body))
            except (OSError, EOFError):
                # The service may close a connection if it cannot read a request, but it must keep running.
                connection = Connection(service.port)
                findings.statuses[0] += 1
                continue
            findings.take(path, body, status, told)

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))


async def _not_http(port: int, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    writer.write_eof()
    await reader.read(4096)
    writer.close()


def schemathesis(service: Service, count: int, seed: int, findings: Findings) -> None:
    """Send valid and invalid requests generated from the document."""
    import requests
    import schemathesis as tool
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from schemathesis import GenerationMode

    session = requests.Session()
    schema = tool.openapi.from_url(f"http://127.0.0.1:{service.port}/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    posts = [each for each in operations if each.method.lower() == "post"]
    each_count = count // (2 * len(posts))

    def sent(case: Any) -> None:
        answer = case.call(session=session)
        findings.take(case.path, str(case.body).encode("utf-8", "replace"), answer.status_code, answer.content)

    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            examples = each_count if operation in posts else 50
            options = settings(
                max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            try:
                seeded(seed)(options(given(case=operation.as_strategy(generation_mode=mode))(sent)))()
            except Exception as error:
                if type(error).__name__ not in ("Unsatisfiable", "InvalidArgument"):
                    raise
                print(f"  {operation.method} {operation.path} has nothing that could be {mode.value}")


def measure(how: str, count: int, seed: int, folder: Path, store: str) -> int:
    pack = folder / "pack"
    for name, text in FILES.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(text)
    service, findings, started = Service(store, str(pack), stderr=subprocess.DEVNULL), Findings(), time.perf_counter()
    try:
        asyncio.run(service.ready())
        if how == "own":
            asyncio.run(own(service, count, seed, findings))
        else:
            schemathesis(service, count, seed, findings)
        asyncio.run(service.ready())
        if service.process.poll() is not None:
            findings.faults.append("the service is gone")
    finally:
        service.stop()
    log = open_store(store)
    found = verify(log, "default")
    log.close()
    findings.faults += found.faults
    total = sum(findings.statuses.values())
    statuses = ", ".join(f"{status or 'hung up'}: {number:,}" for status, number in sorted(findings.statuses.items()))
    kept = "PostgreSQL" if "://" in store else "SQLite"
    print(f"{how}, seed {seed}, {kept}: {total:,} requests in {time.perf_counter() - started:.0f} s ({statuses}); "
          f"{len(findings.faults)} faults; the log's {found.entries:,} entries verify: {not found.faults}")  # fmt: skip
    for fault in findings.faults[:10]:
        print(f"  {fault[:500]}")
    return 1 if findings.faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("how", choices=("own", "schemathesis"))
    parser.add_argument("--count", type=int, default=25_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=KINDS, default="sqlite")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="bylaw-fuzz-") as folder, new_log(given.store) as store:
        return measure(given.how, given.count, given.seed, Path(folder), store)


if __name__ == "__main__":
    sys.exit(main())
