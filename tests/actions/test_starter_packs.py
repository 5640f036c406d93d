"""The packs to start from: ordinary work goes through, and what the document forbids does not."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from bylaw import Shield
from bylaw.pack import Pack, load_pack
from bylaw.policy.folder import find_folder
from tests.actions.desk import page
from tests.packs import made

CALLS = yaml.safe_load(Path(__file__).with_name("starter_calls.yaml").read_text("utf-8"))
SENTENCES = yaml.safe_load(Path(__file__).with_name("sentences.yaml").read_text("utf-8"))
SHOP = page(CALLS["browser"]["page"]).replace("http://shop.test/checkout", "https://shop.example.com/kettles")
REQUEST = "Please help me with this."
SITE = """pages:
  fields: [Search products, First name]
  looks:
    - https://shop[.]example[.]com/[a-z]*
    - https://shop[.]example[.]com/kettles[?]page=[0-9]+
    - https://shop[.]example[.]com/products/[a-z0-9]+
    - https://shop[.]example[.]com/manual[.]html
"""
TABLES = """tables:
  orders: {columns: [customer_id, placed_at, total], keys: [id]}
  customers: {columns: [region], keys: [id]}
  refunds: {columns: [order_id], keys: [id]}
  analysis.top: {columns: [label], keys: [id]}
"""
OWN = {"browser": SITE, "sql-analyst": TABLES}


def pack_of(name: str) -> Pack:
    """A pack to start from, with the pages and fields of one site, or the tables of one database."""
    if name not in OWN:
        return load_pack(find_folder(name))
    document = (find_folder(name) / "policy.md").read_text("utf-8")
    own = {"pack.yaml": f"format: 1\nname: site\nbase: {name}\ndocument: policy.md\n", "tools.yaml": OWN[name]}
    return made({**own, "policy.md": document})


def answer(shield: Shield, name: str, tool: str, arguments: dict[str, Any]) -> str:
    with shield.session(f"{tool} {arguments}") as session:
        session.user(REQUEST)
        if name == "browser":
            assert session.decide("browser_navigate", {"url": "https://shop.example.com/kettles"}).allowed
            session.result(SHOP)
        return session.decide(tool, arguments).answer


def calls(name: str, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a pack, each by its tool; a text is the argument of the pack's main tool."""
    return [as_call(name, each) for each in CALLS[name].get(kind, ())]


def as_call(name: str, written: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    main, argument = {"coding-agent": ("bash", "command"), "sql-analyst": ("execute_sql", "sql")}.get(name, ("", ""))
    return (main, {argument: written}) if isinstance(written, str) else next(iter(written.items()))


@pytest.mark.parametrize("name", ["coding-agent", "sql-analyst", "browser"])
def test_ordinary_work_is_not_asked_about(name: str) -> None:
    with Shield(pack_of(name)) as shield:
        found = {f"{tool} {arguments}": answer(shield, name, tool, arguments) for tool, arguments in calls(name, "ok")}
    assert len(found) >= 20
    assert {call: given for call, given in found.items() if given != "allow"} == {}


@pytest.mark.parametrize("name", ["coding-agent", "sql-analyst", "browser"])
@pytest.mark.parametrize("wanted", ["ask", "deny", "look_up"])
def test_what_the_document_forbids_is_not_done(name: str, wanted: str) -> None:
    with Shield(pack_of(name)) as shield:
        found = {
            f"{tool} {arguments}": answer(shield, name, tool, arguments) for tool, arguments in calls(name, wanted)
        }
    assert {call: given for call, given in found.items() if given != wanted} == {}


@pytest.mark.parametrize("name", ["coding-agent", "sql-analyst", "browser"])
def test_every_sentence_says_what_the_pack_does(name: str) -> None:
    pack = pack_of(name)
    assert pack.document is not None
    said = [" ".join(each.text.split()) for each in pack.document.sentences]
    assert [each["sentence"] for each in SENTENCES[name]] == said
    wrong: list[str] = []
    with Shield(pack) as shield:
        for each in SENTENCES[name]:
            assert len(each) > 1
            for wanted in ("allow", "ask", "deny", "look_up"):
                for written in each.get(wanted, ()):
                    given = answer(shield, name, *as_call(name, written))
                    if given != wanted:
                        wrong.append(f"{each['sentence']} {written}: {given}, not {wanted}")
    assert "\n".join(wrong) == ""


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "told"),
    [
        ("coding-agent", "bash", {"command": "rm -rf build"}, '"rm -rf build"'),
        ("sql-analyst", "execute_sql", {"sql": "DELETE FROM analysis.top WHERE id = 3"}, "analysis.top"),
        ("browser", "browser_click", {"element": "Go back", "target": "e18"}, "Sort by: Price"),
    ],
)
def test_a_yes_to_the_card_lets_it_happen_once(name: str, tool: str, arguments: dict[str, Any], told: str) -> None:
    with Shield(pack_of(name)) as shield, shield.session("x") as session:
        session.user(REQUEST)
        if name == "browser":
            assert session.decide("browser_navigate", {"url": "https://shop.example.com/kettles"}).allowed
            session.result(SHOP)
        card = session.decide(tool, arguments).card
        assert card is not None
        assert told in card.text
        assert "Go back" not in card.text
        session.confirm(card.id, yes=True)
        assert session.decide(tool, arguments).allowed
        session.result(SHOP if name == "browser" else "done")
        assert not session.decide(tool, arguments).allowed


def test_a_declined_command_is_not_asked_about_as_a_part_of_another() -> None:
    with Shield("coding-agent") as shield, shield.session("x") as session:
        session.user(REQUEST)
        assert session.decide("bash", {"command": "cd src && rm -rf ../build"}).answer == "ask"
        card = session.decide("bash", {"command": "rm -rf build"}).card
        assert card is not None
        session.confirm(card.id, yes=False)
        assert session.decide("bash", {"command": "cd src && rm -rf ../build"}).answer == "deny"


ACCOUNT = """- Page URL: https://shop.example.com/account
```yaml
- main [ref=e1]:
  - textbox "Email" [ref=e2]: EMAIL
  - combobox "Country" [ref=e3]:
    - option "Spain"
    - option "Portugal" [selected]
  - checkbox "Newsletter" [checked] [ref=e4]
  - checkbox "Adverts" [ref=e5]
  - button "Save changes" [ref=e6]
```"""


def test_a_card_of_a_button_shows_what_is_filled_in_and_a_no_is_to_that() -> None:
    with Shield(pack_of("browser")) as shield, shield.session("x") as session:
        session.user("Change my email to ann@home.test.")
        for email, answer in (("evil@evil.test", False), ("ann@home.test", True)):
            assert session.decide("browser_navigate", {"url": "https://shop.example.com/account"}).allowed
            session.result(ACCOUNT.replace("EMAIL", email))
            card = session.decide("browser_click", {"target": "e6"}).card
            assert card is not None
            for each in (email, "Country: Portugal", "Newsletter: ticked"):
                assert each in card.text
            assert "Spain" not in card.text
            assert "Adverts" not in card.text
            session.confirm(card.id, yes=answer)
            assert session.decide("browser_click", {"target": "e6"}).allowed is answer


def test_a_pack_may_be_based_on_one_by_name_and_give_what_differs(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_bytes((find_folder("sql-analyst") / "policy.md").read_bytes())
    (tmp_path / "pack.yaml").write_text("format: 1\nname: mine\nbase: sql-analyst\ndocument: policy.md\n")
    (tmp_path / "tools.yaml").write_text(
        "actions:\n  read_rows:\n    reads: {argument: sql, as: sql, dialect: postgres, statements: [select]}\n"
    )
    with Shield(load_pack(tmp_path)) as shield:
        assert answer(shield, "mine", "execute_sql", {"sql": "SELECT 1"}) == "allow"
        assert answer(shield, "mine", "execute_sql", {"sql": "SHOW server_version"}) == "ask"
        assert answer(shield, "mine", "execute_sql", {"sql": "DELETE FROM t"}) == "deny"
