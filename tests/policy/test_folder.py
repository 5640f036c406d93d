"""A pack's folder: its digest, a base laid under it, variants that only choose."""

from pathlib import Path

import msgspec
import pytest

from bylaw.audit.request import Shelf
from bylaw.errors import PackError, UsageError
from bylaw.pack import load_pack
from bylaw.policy.folder import find_folder, read_folder, ready_packs
from bylaw.trace import Trajectory
from tests.policy.shop import FILES, write_pack

SPAN = '    spans: [{quote: "Only paid orders are shipped."}]\n'


@pytest.fixture(autouse=True)
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beside a pack here is ours, too."""
    monkeypatch.setenv("BYLAW_OUTSIDE", str(tmp_path))


def digest(root: Path) -> str:
    return load_pack(root).digest


@pytest.mark.parametrize("name", [*FILES, "rules.yaml"])
def test_the_digest_changes_with_every_file(name: str, tmp_path: Path) -> None:
    changes = {"rules.yaml": "predicates: {}\nrules: []\n"}
    before = digest(write_pack(tmp_path / "a", changes))
    text = {**FILES, **changes}[name]
    after = digest(write_pack(tmp_path / "b", {**changes, name: text + "\n"}))
    assert before != after


def test_the_digest_changes_when_a_file_comes_goes_or_is_renamed(tmp_path: Path) -> None:
    more = {"cases/more.yaml": "[]\n"}
    found = {
        digest(write_pack(tmp_path / "a")),
        digest(write_pack(tmp_path / "b", more)),
        digest(write_pack(tmp_path / "c", {"cases/other.yaml": "[]\n"})),
        digest(write_pack(tmp_path / "d", {"cases/shop.yaml": None})),
    }
    assert len(found) == 4


def test_the_digest_does_not_change_with_anything_else(tmp_path: Path) -> None:
    before = digest(write_pack(tmp_path / "a"))
    root = write_pack(
        tmp_path / "elsewhere" / "b", {"README.md": "Hello.", "notes/x.yaml": "a: [", "guards/x.txt": "?"}
    )
    (root / "policy.md").touch()
    assert digest(root) == before
    assert read_folder(root).digest == before


def based(root: Path, own: dict[str, str], shared: dict[str, str] | None = None) -> Path:
    base = {**FILES, **(shared or {})}
    for name in ("pack.yaml", "policy.md"):
        base.pop(name)
    for name, text in base.items():
        (root / "shared" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "shared" / name).write_text(text)
    manifest = FILES["pack.yaml"] + "base: ../shared\n"
    for name, text in {"pack.yaml": manifest, "policy.md": FILES["policy.md"], **own}.items():
        (root / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "own" / name).write_text(text)
    return root / "own"


def test_a_pack_stands_on_its_base(tmp_path: Path) -> None:
    pack = load_pack(based(tmp_path, {}))
    assert list(pack.guards) == ["only-paid", "no-gifts"]
    assert list(pack.cases) == ["../shared/cases/shop.yaml"]


def test_the_same_id_overrides_the_base_in_its_place(tmp_path: Path) -> None:
    own = """\
policies:
  - id: no-gifts
    kind: knowledge
    definition: Gifts may be refunded here.
  - id: more
    kind: knowledge
    definition: Something new.
"""
    root = based(
        tmp_path, {"policies.yaml": own}, {"guards/shop.py": FILES["guards/shop.py"].partition("\n\n\n")[0] + "\n"}
    )
    pack = load_pack(root)
    assert list(pack.policies) == ["only-paid", "no-gifts", "say-it", "more"]
    assert pack.policies["no-gifts"].definition == "Gifts may be refunded here."
    assert list(pack.guards) == ["only-paid"]


def test_a_tool_of_the_pack_replaces_that_of_the_base(tmp_path: Path) -> None:
    own = "tools:\n  ship: {effect: write, parameters: {order_id: string, speed: string}}\n"
    tools = load_pack(based(tmp_path, {"tools.yaml": own})).schema.tools
    assert list(tools) == ["get_order", "find_orders", "ship", "refund"]
    assert set(tools["ship"].parameters) == {"order_id", "speed"}


def test_of_a_record_only_what_is_other_is_said_again(tmp_path: Path) -> None:
    below = load_pack(based(tmp_path / "a", {}))
    own = {
        "policies.yaml": "policies:\n  - {id: only-paid, severity: null, spans: [Only paid orders]}\n",
        "tools.yaml": "tools:\n  refund: {description: Give money back.}\n",
        "entities.yaml": "entities:\n  Order: {read: {tool: find_orders, arguments: {}}}\n",
    }
    pack = load_pack(based(tmp_path / "b", own))
    (was, now) = (each.policies["only-paid"] for each in (below, pack))
    assert (now.definition, now.tools, now.kind) == (was.definition, was.tools, was.kind)
    assert (was.severity, now.severity) == ("high", "medium")
    assert [citation.text for citation in now.citations] == ["Only paid orders are shipped."]
    assert list(pack.policies) == list(below.policies)
    (was_tool, now_tool) = (each.schema.tools["refund"] for each in (below, pack))
    assert now_tool.description == "Give money back."
    assert msgspec.structs.replace(now_tool, description=was_tool.description) == was_tool
    (was_thing, now_thing) = (each.schema.entities["Order"] for each in (below, pack))
    assert now_thing.fields == was_thing.fields
    assert was_thing.read
    assert now_thing.read
    assert (was_thing.read.tool, now_thing.read.tool) == ("get_order", "find_orders")


def test_predicates_and_observations_are_replaced_whole(tmp_path: Path) -> None:
    shared = {"rules.yaml": "predicates:\n  sent: {tool: ship, description: it was sent}\nrules: []\n"}
    own = {"rules.yaml": "predicates:\n  sent: {effect: write}\n"}
    pack = load_pack(based(tmp_path, own, shared))
    assert "sent" in pack.book.predicates


def test_a_base_alone_may_lack_what_each_pack_says_itself(tmp_path: Path) -> None:
    shared = {"policies.yaml": FILES["policies.yaml"].replace(SPAN, "")}
    whole = based(
        tmp_path / "a", {"policies.yaml": "policies:\n  - {id: only-paid, spans: [Only paid orders]}\n"}, shared
    )
    assert load_pack(whole).policies["only-paid"].severity == "high"
    with pytest.raises(PackError) as caught:
        load_pack(based(tmp_path / "b", {}, shared))
    assert [str(fault) for fault in caught.value.faults] == [
        "../shared/policies.yaml:2: policy `only-paid` cites no sentence; quote the sentence in the docstring of its"
        " guard, one line per sentence, or here: `spans: [...]`"
    ]


def test_faults_are_told_in_the_file_that_says_it(tmp_path: Path) -> None:
    shared = {"policies.yaml": FILES["policies.yaml"].replace("severity: high", "severity: fatal")}
    own = "policies:\n  - id: only-paid\n    kind: talk\n  - {id: only-paid, kind: guard}\n"
    with pytest.raises(PackError) as caught:
        load_pack(based(tmp_path, {"policies.yaml": own}, shared))
    told = {fault.place: fault.message for fault in caught.value.faults}
    assert told["../shared/policies.yaml:7"].startswith("severity of `only-paid`")
    assert told["policies.yaml:3"].startswith("kind `talk`")
    assert told["policies.yaml:4"] == "policy `only-paid` is listed twice"


def test_faults_of_base_and_pack_each_name_their_file(tmp_path: Path) -> None:
    own = "policies:\n  - id: more\n    kind: nonsense\n    definition: x\n"
    shared = {"policies.yaml": FILES["policies.yaml"].replace("severity: high", "severity: fatal")}
    with pytest.raises(PackError) as caught:
        load_pack(based(tmp_path, {"policies.yaml": own}, shared))
    assert [fault.place for fault in caught.value.faults] == ["../shared/policies.yaml:7", "policies.yaml:3"]


def test_the_digest_covers_the_base(tmp_path: Path) -> None:
    before = digest(based(tmp_path / "a", {}))
    after = digest(based(tmp_path / "b", {}, {"tools.yaml": FILES["tools.yaml"] + "\n"}))
    assert before != after


def choosing(root: Path) -> Path:
    write_pack(root / "old")
    write_pack(root / "new", {"pack.yaml": FILES["pack.yaml"].replace('"1"', '"2"')})
    manifest = "format: 1\nname: shops\nvariants:\n  - {name: old, when: {format: tau1}}\n  - {name: new}\n"
    (root / "pack.yaml").write_text(manifest)
    return root


def test_a_trajectory_is_held_to_the_first_variant_it_meets(tmp_path: Path) -> None:
    shelf = Shelf(str(choosing(tmp_path)))
    assert shelf.name == "shops"
    assert shelf.pack_for(Trajectory("a", [], format="tau1")).version == "1"
    assert shelf.pack_for(Trajectory("b", [], format="openai")).version == "2"


def test_a_pack_that_only_chooses_is_not_loaded_as_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has variants, so choose one; name one of them"):
        load_pack(choosing(tmp_path))


def test_ready_packs_are_found_by_name() -> None:
    assert ready_packs() == ["agentdojo", "browser", "clinic", "coding-agent", "sql-analyst", "tau-airline"]
    assert find_folder("clinic").name == "clinic"
    assert find_folder("tau-airline/tau2").parts[-2:] == ("tau_airline", "tau2")


@pytest.mark.parametrize("name", ["", "..", "../clinic", "nothing", "/", "clinic/guards", "a\0b"])
def test_what_is_no_pack_is_said_to_be_none(name: str) -> None:
    with pytest.raises(UsageError, match=r"no folder|no pack"):
        find_folder(name)


def test_the_pack_that_was_meant_is_named(tmp_path: Path) -> None:
    write_pack(tmp_path / "lockwick")
    with pytest.raises(UsageError, match="did you mean `lockwick`\\?"):
        find_folder(str(tmp_path / "lockwik"))
    with pytest.raises(UsageError, match="did you mean `clinic`\\?"):
        find_folder("clinc")
