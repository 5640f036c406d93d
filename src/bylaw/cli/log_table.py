"""Writes the output of `bylaw log export --format parquet`: one row per conversation, for `bylaw audit`."""

from pathlib import Path
from typing import Any

import msgspec

from bylaw.audit.batch.tables import arrow
from bylaw.shield.history import History
from bylaw.trace.recorded_value import utc
from bylaw.trace.transcript import chat_record

HELD = 500
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode


class LogTable:
    def __init__(self, path: Path) -> None:
        pa = arrow()
        decision = [("id", pa.string()), ("tool", pa.string()), ("answer", pa.string()), ("allowed", pa.bool_())]
        decision += [("policies", pa.list_(pa.string())), ("seconds", pa.float64())]
        moment = pa.timestamp("us", tz="UTC")
        self._schema = pa.schema(
            [
                ("id", pa.string()),
                ("agent", pa.string()),
                ("pack", pa.string()),
                ("pack_version", pa.string()),
                ("started", moment),
                ("ended", moment),
                ("context", pa.string()),
                ("messages", pa.string()),
                ("decisions", pa.list_(pa.struct(decision))),
            ]
        )
        self._writer = arrow("parquet").ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, name: str, history: History) -> None:
        told = chat_record(history.trajectory(name))
        times = [event.time for event in history.events if event.time is not None]
        self._rows.append(
            {
                "id": name,
                "agent": told.get("agent"),
                "pack": history.opening.pack,
                "pack_version": history.opening.version,
                "started": utc(min(times)) if times else None,
                "ended": utc(max(times)) if times else None,
                "context": _encode(told["context"]).decode() if "context" in told else None,
                "messages": _encode(told["messages"]).decode(),
                "decisions": [
                    {
                        "id": each.id,
                        "tool": each.tool,
                        "answer": each.answer,
                        "allowed": each.allowed,
                        "policies": [ground.policy for ground in each.grounds if ground.answer != "allow"],
                        "seconds": each.seconds,
                    }
                    for each in history.decisions
                ],
            }
        )
        if len(self._rows) >= HELD:
            self._flush()

    def close(self) -> None:
        """Write the buffered rows and finish the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(arrow().Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []
