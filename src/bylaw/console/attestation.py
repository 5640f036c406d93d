"""A person's word on what code left open: kept with name, day and reason, beside the waivers. It changes no verdict."""

from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.console.record_file import Written, add_record
from bylaw.errors import UsageError
from bylaw.policy.yaml import read_yaml_file

HEAD = "# What people attested of calls that could not be judged. It changes no verdict.\nattestations:\n"


class Attestation(Struct, frozen=True):
    """What somebody says of one finding."""

    finding: str
    answer: str
    by: str
    on: str
    reason: str
    question: str = ""


def read_attestations(path: Path) -> dict[str, Attestation]:
    """By finding, the last word; nothing where there is no file."""
    if not path.is_file():
        return {}
    return {each.finding: each for each in _listed(path)}


def _listed(path: Path) -> list[Attestation]:
    listed = cast("list[Any]", read_yaml_file(path, file=str(path)).data.get("attestations") or [])
    try:
        return msgspec.convert(listed, list[Attestation], strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"not a list of attestations: {error}", place=str(path)) from None


def attest(path: Path, given: Attestation) -> Written:
    """Add one to a file."""
    return add_record(path, msgspec.to_builtins(given), head=HEAD, count=lambda made: len(_listed(made)))
