"""Implements `bylaw-lab desks`, which runs scripted agents on real systems with and without the shield."""

import json
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from bylaw_lab.desks.desk import CATEGORIES, Desk, measure

DESKS = ("database", "repository", "shop")
HEADS = (
    "desk", "agent", "shield", "tasks", "completed", "under policy", "violations", "acts blocked", "questions",
    "ms per action", "ms per snapshot", "ms per re-check",
)  # fmt: skip


@click.command("desks")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one line per desk, agent and posture.")
@click.option("--desk", "names", multiple=True, type=click.Choice(DESKS), help="Only these desks.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the tables to their section of this page.")
def desks_command(*, as_json: bool, names: tuple[str, ...], page: Path | None) -> None:
    """Scripted agents at a database, a repository and a shop: tasks done and policies violated."""
    found: list[dict[str, Any]] = []
    for name in names or DESKS:
        with open_desk(name) as desk:
            for line in _measured(desk):
                found.append(line)
                if as_json:
                    click.echo(json.dumps(line))
    if not as_json:
        click.echo(tables(found))
    if page is not None:
        head, _, _ = page.read_text("utf-8").partition("<!-- tables -->")
        page.write_text(f"{head}<!-- tables -->\n\n{tables(found)}\n", "utf-8")


def _measured(desk: Desk) -> Iterator[dict[str, Any]]:
    for agent, is_shielded, count in measure(desk):
        yield {"desk": desk.name, "agent": agent, "shield": is_shielded, **count.told()}


@contextmanager
def open_desk(name: str) -> Generator[Desk]:
    with tempfile.TemporaryDirectory(prefix="bylaw-desk-") as folder:
        place = Path(folder)
        if name == "database":
            from bylaw_lab.desks.database import open_database

            with open_database(place) as desk:
                yield desk
        elif name == "repository":
            from bylaw_lab.desks.repository import Repository

            yield Repository(place)
        else:
            from bylaw_lab.desks.shop import open_shop

            with open_shop(place) as desk:
                yield desk


def tables(lines: list[dict[str, Any]]) -> str:
    rows = [
        (
            line["desk"], line["agent"], "yes" if line["shield"] else "no", line["tasks"], line["completed"],
            line["completed_under_policy"], sum(line["violations"].values()), len(line["legitimate_acts_blocked"]),
            line["questions"], line["median_ms_per_action"], line["median_ms_per_snapshot"],
            line["median_ms_per_recheck"],
        )
        for line in lines
    ]  # fmt: skip
    by_category = [
        (category, line["desk"], line["agent"], line["violations"][category], line["guarded"][category])
        for category in CATEGORIES
        for line in _paired(lines)
    ]
    second = _table(("category", "desk", "agent", "violations without the shield", "with it"), by_category)
    return f"{_table(HEADS, rows)}\n\n{second}"


def _paired(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs without the shield, each with the violations under the shield. Careful agents are left out."""
    guarded = {(each["desk"], each["agent"]): each["violations"] for each in lines if each["shield"]}
    return [
        {**each, "guarded": guarded[each["desk"], each["agent"]]}
        for each in lines
        if not each["shield"] and each["agent"] != "careful"
    ]


def _table(heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    told = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join('' if each is None else str(each) for each in row)} |" for row in told)
