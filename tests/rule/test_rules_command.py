"""`bylaw rules list` and `draw` on the packs that come with Bylaw."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bylaw.cli.rules import draw
from bylaw.pack import load_pack
from tests.command import bylaw

PACKS = ("clinic", "tau-airline/tau1", "tau-airline/tau2")


def printed(*arguments: str) -> str:
    return bylaw(Path.cwd(), "rules", *arguments).stdout


@pytest.mark.parametrize("pack", PACKS)
def test_every_rule_is_listed_and_every_rule_and_action_drawn(pack: str) -> None:
    loaded = load_pack(pack)
    listed = printed("list", pack)
    names = [rule.name for rule in loaded.book.rules]
    assert all(name in listed for name in names)
    for name in [*names, *loaded.book.actions]:
        assert ElementTree.fromstring(draw(loaded, name)).tag.endswith("svg")
    for name in (names[0], next(iter(loaded.book.actions))):
        assert printed("draw", pack, name) == draw(loaded, name)


def test_a_picture_that_cannot_be_written_is_a_matter_of_usage(tmp_path: Path) -> None:
    ran = bylaw(tmp_path, "rules", "draw", "clinic", "change", "--out", "nowhere/x.svg")
    assert (ran.returncode, ran.stderr) == (2, "bylaw: nowhere/x.svg: no such file or directory\n")
