"""The guide's recipe for a Delta table, night after night (lane `delta`)."""

import re
from pathlib import Path

import pytest

from bylaw.audit.batch.tables import TABLES
from tests.audit.logs import Shop, write_logs
from tests.audit.sharded import rows
from tests.audit.test_update import add, talk

deltalake = pytest.importorskip("deltalake")

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "audit-at-scale.md"


def test_a_delta_table_has_the_rows_of_every_night(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop.root)
    recipe = re.search(r"```python\n(.*?)```", GUIDE.read_text().partition("## A Delta table")[2], re.DOTALL)
    assert recipe is not None
    days = [
        write_logs(shop.root / f"{n}.jsonl", [talk(f"t{n}", "hasty", n), talk("again", "wrong", n)]) for n in (1, 2)
    ]
    for night in (1, 2):
        add(shop, *days[:night], out="out")
        exec(recipe[1], {})
        for table in TABLES:
            found = deltalake.DeltaTable(f"lake/{table}").to_pyarrow_dataset().to_table()
            held = rows(shop.root / "out", table)
            assert sorted(found.select(list(TABLES[table])).to_pylist(), key=str) == sorted(held, key=str), table
