"""Commands made from signatures: what a type says, what stands beside it, and records of options."""

from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner
from msgspec import Struct

from bylaw.cli.command import Count, command


class Place(Struct, frozen=True, kw_only=True):
    """Where."""

    where: Annotated[str, "--at PLACE", "Where it is."]
    depth: Annotated[int, {"default": lambda: 7, "show_default": "deep"}]


def run(*given: str) -> Any:
    """What a command is called with; the whole output where it is not called."""
    heard: list[Any] = []

    @command("try")
    def tried(
        files: Annotated[tuple[Path, ...], "FILES...", "What to read."],
        *,
        way: Annotated[Literal["in", "out"], "Which way."] = "in",
        times: Annotated[Count | None, "--times --often N", "How often."] = None,
        names: Annotated[tuple[str, ...], "--name NAME", "Whose."] = (),
        loud: bool = False,
        place: Place,
    ) -> int:
        """Try it."""
        heard.append((files, way, times, names, loud, place))
        return 0

    result = CliRunner().invoke(tried, given)
    return heard[0] if heard else result.output


def test_types_say_what_is_taken() -> None:
    assert run("a", "b", "--at", "here") == (
        (Path("a"), Path("b")),
        "in",
        None,
        (),
        False,
        Place(where="here", depth=7),
    )
    said = ("--way", "out", "--often", "3", "--name", "x", "--name", "y", "--loud", "--at", "there", "--depth", "1")
    assert run("a", *said) == ((Path("a"),), "out", 3, ("x", "y"), True, Place(where="there", depth=1))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("a",), "Missing option '--at'"),
        (("--at", "here"), "Missing argument 'FILES...'"),
        (("a", "--at", "here", "--way", "up"), "'up' is not one of 'in', 'out'"),
        (("a", "--at", "here", "--times", "0"), "0 is not in the range x>=1"),
    ],
)
def test_what_does_not_fit_is_told(given: tuple[str, ...], told: str) -> None:
    assert told in run(*given)


def test_the_help_has_names_values_and_words() -> None:
    told = run("--help")
    for line in ("FILES...", "--way [in|out]", "--times, --often N", "--at PLACE", "Where it is.", "Try it."):
        assert line in told


def test_a_command_may_belong_to_a_group() -> None:
    group = click.Group("all")

    @command("one", group)
    def one() -> None:
        """The one."""

    assert group.commands == {"one": one}
