"""A person's word on what code left open: kept with name, day and reason, beside the waivers. It changes no verdict."""

from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from bylaw.console.record_file import Written, add_record, read_records

HEAD = "# What people attested of calls that could not be judged. It changes no verdict.\nattestations:\n"


class Attestation(Struct, frozen=True):
    """What somebody says of one finding."""

    finding: str
    answer: str
    by: str
    on: str
    reason: str
    question: str = ""


_listed = partial(read_records, name="attestations", type=Attestation)


def read_attestations(path: Path) -> dict[str, Attestation]:
    """By finding, the last word; nothing where there is no file."""
    return {each.finding: each for each in _listed(path)}


def attest(path: Path, given: Attestation) -> Written:
    return add_record(path, msgspec.to_builtins(given), head=HEAD, count=lambda made: len(_listed(made)))
