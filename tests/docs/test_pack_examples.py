"""The examples of the pack page that belong to no whole pack mean what the page says."""

from collections.abc import Iterator
from pathlib import Path

from bylaw.facts.database import open_snapshot
from bylaw.pack import load_pack
from bylaw.policy.catalogue import with_catalogue
from bylaw.policy.yaml import read_yaml_file

from .walkthrough import ROOT, Block, blocks

NAMES = ("pack.md", "tools-and-things.md", "cases-and-worlds.md")
PAGES = [ROOT / "docs" / "reference" / name for name in NAMES]


def every_block() -> Iterator[Block]:
    return (block for page in PAGES for block in blocks(page))


def files(root: Path, folder: str) -> Path:
    """The page's files of one folder, written out."""
    for block in every_block():
        name = block.marks.get("file", "")
        if name.startswith(f"{folder}/"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
    return root / folder


def block_with(text: str) -> Block:
    return next(block for block in every_block() if text in block.lines and "file" not in block.marks)


def test_a_catalogue_needs_only_what_it_does_not_know(tmp_path: Path) -> None:
    desk = files(tmp_path, "desk")
    said = read_yaml_file(desk / "tools.yaml", file="tools.yaml")
    found, faults = with_catalogue(said, (desk / "tools.json").read_bytes(), file="tools.json")
    assert faults == []
    tools = found.data["tools"]
    assert {name: tool["effect"] for name, tool in tools.items()} == {"close_ticket": "write", "get_ticket": "read"}
    assert list(tools["close_ticket"]["parameters"]["properties"]) == ["ticket_id", "note"]


def test_a_raw_database_is_read_by_the_mapping_of_the_page(tmp_path: Path) -> None:
    shop, raw = files(tmp_path, "shop"), files(tmp_path, "raw")
    entities = shop / "entities.yaml"
    mapping = [line for line in block_with("world:").lines if "Refund" not in line]
    more = "  Variant: {key: sku, fields: {price: money, product: string}}\n"
    more += "  Member: {key: member_id, fields: {name: string, loans: list}}\ncontext:"
    text = entities.read_text(encoding="utf-8").replace("context:", more)
    entities.write_text(text + "\n".join(mapping) + "\n", encoding="utf-8")
    world = open_snapshot(raw / "world.json", load_pack(shop).schema)
    order = world.record("Order", ("A1",))
    assert order == order | {"customer_id": "C1", "status": "delivered", "delivered_on": "2025-05-05"}  # type: ignore[operator]
    assert world.record("Customer", ("C1",)) == {"customer_id": "C1", "gold": True}
    assert world.record("Variant", ("L1",)) == {"sku": "L1", "price": "19.90", "product": "Lamp"}
    loan = {"borrower": "M1", "book": "B7", "returned": False}
    assert world.record("Member", ("M1",)) == {"member_id": "M1", "name": "Ann", "loans": [loan]}
    assert world.record("Member", ("M2",)) == {"member_id": "M2", "name": "Ben", "loans": []}
