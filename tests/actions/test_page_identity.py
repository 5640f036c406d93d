"""Which calls on a page only look, and what a yes to any other call covers."""

import pytest

from bylaw import Shield
from bylaw.record import Log
from bylaw.shield import LiveSession
from bylaw.shield.decision import Decision
from tests.packs import made

HOME = "https://shop.example.com/cart"
PACK = {
    "pack.yaml": "format: 1\nname: web\ndocument: policy.md\n",
    "policy.md": "The user agrees to every press.\n",
    "policies.yaml": "policies: [{id: agreed, kind: rule, spans: [The user agrees to every press.]}]\n",
    "rules.yaml": """predicates: {acts: {tool: [press, leave, answer, upload]}, agreed: {consented: card}}
rules: [{id: agreed, formula: ALWAYS (acts IMPLIES agreed)}]
""",
    "tools.yaml": """tools:
  browser_navigate, browser_snapshot: {effect: read}
  browser_click, browser_press_key, browser_type, browser_fill_form: {effect: write}
  browser_drag, browser_handle_dialog, browser_file_upload: {effect: write}
actions:
  open: {of: browser_navigate, reads: {argument: url, as: url}, effect: read}
  press:
    of: [browser_click, browser_press_key]
    on: {role: button}
    effect: write
    take: {total: {value: "$page.text('^Total: (.*)$')", optional: true}}
    changes: []
  fill_in:
    of: [browser_type, browser_fill_form, browser_click, browser_press_key]
    on: {role: [textbox, searchbox, combobox, spinbutton]}
    effect: read
  look: {of: [browser_click, browser_press_key, browser_drag, browser_type], effect: read}
  leave: {of: browser_click, on: {role: link}, effect: write, fallback: true, changes: []}
  answer: {of: browser_handle_dialog, effect: write, take: {accept: {value: $argument.accept, type: boolean}}}
  upload: {of: browser_file_upload, effect: write, take: {paths: {value: $argument.paths, type: list}}, changes: []}
otherwise: {browser_drag: ask}
pages:
  fields: [Note, 'Line [0-9]']
  looks:
    - https://docs[.]example/[a-z]*
    - https://shop[.]example[.]com/[a-z/.]*
    - https://shop[.]example[.]com/cart\\?page=[0-9]+
    - https://shop[.]example[.]com/other#top
""",
}


def show(session: LiveSession, body: str, url: str = HOME) -> None:
    assert session.decide("browser_snapshot", {}).allowed
    session.result(f"### Page\n- Page URL: {url}\n### Snapshot\n```yaml\n{body.strip()}\n```")


def decided(body: str, tool: str = "browser_click", url: str = HOME, **arguments: object) -> Decision:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, body, url)
        return session.decide(tool, arguments or {"target": "e1"})


def link(url: str) -> str:
    return f'- link "Show more" [ref=e1]:\n  - /url: {url}'


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("/a", "https://shop.example.com/a"),
        ("/a/b.html", "https://shop.example.com/a/b.html"),
        ("/./a", "https://shop.example.com/a"),
        ("a", "https://shop.example.com/a"),
        ("../a", "https://shop.example.com/a"),
        ("?page=2", "https://shop.example.com/cart?page=2"),
        ("/other#top", "https://shop.example.com/other#top"),
        ("https://docs.example/guide", "https://docs.example/guide"),
        ("//docs.example/guide", "https://docs.example/guide"),
    ],
)
def test_a_link_to_a_listed_page_is_opened_by_its_address(written: str, address: str) -> None:
    decision = decided(link(written))
    assert decision.answer == "look_up"
    (look_up,) = decision.look_ups
    assert (look_up.tool, look_up.arguments, look_up.instead) == ("browser_navigate", {"url": address}, True)
    assert f"Call browser_navigate(url={address}) instead." in decision.feedback
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        assert session.decide(look_up.tool, look_up.arguments).allowed


@pytest.mark.parametrize(
    "url",
    [
        "/checkout/7", "/a?action=remove", "/cart?page=2&action=remove", "/cart?page=2;x", "/a#/delete",
        "/a%2fb", "/a;remove", "http://shop.example.com/a", "https://shop.example.com:8443/a",
        "//docs.example/a1", '"#"', '"#top"', "/cart#top", "/cart", "javascript:void(0)", "JavaScript:buy()",
        '"java\\tscript:buy()"', "mailto:a@b.test", "data:text/html,x", "blob:https://shop.example.com/1",
        "ftp://shop.example.com/x", "https://evil.test/", "//evil.test/", 
        "http:evil.test", "/\\\\evil.test/", "\\\\evil.test",
        "https://shop.example.com@evil.test/", "https://shop.example.com.evil.test/", "https://docs.example@evil.test/",
        "https://evil.test/?https://shop.example.com/", "https://evil.test/#https://docs.example/",
        "https://docs.example%2f.evil.test/", "https://[evil", '" https://evil.test/"',
    ],
)  # fmt: skip
def test_a_click_on_any_other_link_needs_a_yes(url: str) -> None:
    decision = decided(link(url))
    assert decision.answer == "ask"
    assert not decision.look_ups


@pytest.mark.parametrize(
    "url", ["/..;", "///evil.test/", "https:///evil.test/", "https:/evil.test/", "https:evil.test"]
)
def test_a_link_that_browsers_read_in_another_way_gains_nothing(url: str) -> None:
    decision = decided(link(url))
    assert not decision.allowed
    assert all(each.arguments["url"].startswith("https://shop.example.com/") for each in decision.look_ups)


def test_an_action_of_its_own_for_a_link_comes_before_its_address() -> None:
    tools = PACK["tools.yaml"].replace("on: {role: button}", "on: {role: [button, link], name: Show more}")
    with Shield(made({**PACK, "tools.yaml": tools})) as shield, shield.session("x") as session:
        show(session, link("/a"))
        assert [each.name for each in session.decide("browser_click", {"target": "e1"}).actions] == ["press"]


LINK, FRAMED = link("/a"), "- iframe [ref=e9]:\n  - "
FIELD, WHOLE = '- textbox "Note" [ref=e1]', '- generic [active] [ref=e1]:\n  - button "Pay" [ref=e2]'
FOCUSED = FIELD.replace("[ref", "[active] [ref")


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        *((body, {"target": "e1"}) for body in (FIELD, LINK, WHOLE)),
        *(
            (f'- {role} "Note" [ref=e1]', {"target": "e1"})
            for role in ("link", "checkbox", "tab", "generic", "row", "combobox", "spinbutton", "option", "slider")
        ),
        (f'{LINK}\n  - button "Pay" [ref=e2]', {"target": "e1"}),
        (FRAMED + LINK[2:].replace("\n", "\n  "), {"target": "e1"}),
        *((LINK, {"target": "e1", **more}) for more in ({"button": "middle"}, {"modifiers": ["Alt"]})),
        *((body, {"key": key}) for body in (FOCUSED, WHOLE) for key in ("a", "#", "Escape", "Enter", " ", "Tab")),
        *((WHOLE, {"key": key}) for key in ("PageDown", "ArrowDown", "Home", "Control+End", "F5")),
        ('- link "More" [active] [ref=e1]:\n  - /url: /x', {"key": "ArrowDown"}),
        ('- slider "Volume" [active] [ref=e1]', {"key": "ArrowRight"}),
    ],
)
def test_a_click_or_a_key_is_never_a_look(body: str, arguments: dict[str, object]) -> None:
    """Not even if the pack declares that it reads: no snapshot shows what a click or a key does."""
    tool = "browser_press_key" if "key" in arguments else "browser_click"
    assert not decided(body, tool, **arguments).allowed


TYPED: dict[str, object] = {"target": "e1", "text": "Ann"}


@pytest.mark.parametrize(
    ("body", "arguments", "url", "answer"),
    [
        (FIELD, TYPED, HOME, "allow"),
        (FIELD, {**TYPED, "element": "Amount", "submit": False, "slowly": False}, HOME, "allow"),
        ('- searchbox "Line 7" [ref=e1]', TYPED, HOME, "allow"),
        (FIELD, TYPED, "https://shop.example.com/cart/7", "ask"),
        (FIELD, TYPED, "https://evil.test/?https://shop.example.com/", "ask"),
        (FIELD, TYPED, "https://evil.test/#https://shop.example.com/", "ask"),
        (FIELD, TYPED, "https://shop.example.com@evil.test/", "ask"),
        (FIELD, TYPED, "about:blank", "ask"),
        (FIELD, TYPED, "", "ask"),
        (FRAMED + FIELD[2:], TYPED, HOME, "ask"),
        ('- textbox "Password" [ref=e1]', TYPED, HOME, "ask"),
        ('- textbox "Note 2" [ref=e1]', TYPED, HOME, "ask"),
        ('- textbox "Line 71" [ref=e1]', TYPED, HOME, "ask"),
        ("- textbox [ref=e1]: Note", TYPED, HOME, "ask"),
        ('- button "Note" [ref=e1]', TYPED, HOME, "ask"),
        *(
            (FIELD, {**TYPED, **more}, HOME, "ask")
            for more in (
                {"slowly": True},
                {"delay": 5},
                {"key": "a"},
                {"endTarget": "e1"},
                {"clear": "x"},
                {"button": "left"},
            )
        ),
        (FIELD, {**TYPED, "submit": True}, HOME, "deny"),
        (FIELD, {**TYPED, "text": "Ann\n"}, HOME, "deny"),
    ],
)
def test_only_typing_into_a_listed_field_of_a_listed_page_is_a_look(
    body: str, arguments: dict[str, object], url: str, answer: str
) -> None:
    assert decided(body, "browser_type", url, **arguments).answer == answer


@pytest.mark.parametrize(
    ("item", "allowed"),
    [
        ({"type": "textbox"}, True),
        ({}, True),
        ({"type": "checkbox"}, False),
        ({"type": "slider"}, False),
        ({"value": ["Ann"]}, False),
        ({"submit": True}, False),
        ({"key": "Enter"}, False),
    ],
)
def test_a_form_is_filled_in_as_a_look_only_with_plain_texts(item: dict[str, object], allowed: bool) -> None:
    fields = [{"name": "the name", "target": "e1", "value": "Ann", **item}]
    assert decided(FIELD, "browser_fill_form", fields=fields).allowed is allowed


@pytest.mark.parametrize(
    "url", ["https://shop.example.com/cart/7", "https://shop.example.com/cart?page=2&do=x", "https://evil.test/"]
)
def test_a_browser_opens_only_declared_addresses_as_a_look(url: str) -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        assert session.decide("browser_navigate", {"url": url}).answer != "allow"
        assert session.decide("browser_navigate", {"url": "https://shop.example.com/./cart?page=2"}).allowed


def test_a_drag_is_no_look() -> None:
    assert decided(FIELD, "browser_drag", startRef="e1", endRef="e1").answer == "ask"


LONG = "Pay 900 EUR " * 100


@pytest.mark.parametrize(
    ("button", "shown"),
    [
        ("- button [ref=e1]: Pay 900 EUR", "Pay 900 EUR"),
        ('- button [ref=e1]:\n  - img "Pay"\n  - text: 900 EUR', "Pay 900 EUR"),
        (f"- button [ref=e1]: {LONG}".strip(), LONG.strip()),
        (f"- button [ref=e1]: {LONG}{LONG}".strip(), "too many for a card"),
        ("- button [ref=e1]", "the button has no name on the page"),
    ],
)
def test_a_card_shows_the_whole_name_or_there_is_none(button: str, shown: str) -> None:
    tools = PACK["tools.yaml"].replace("take: {total:", "take: {button: $element.name, total:")
    with Shield(made({**PACK, "tools.yaml": tools})) as shield, shield.session("x") as session:
        show(session, button)
        decision = session.decide("browser_click", {"target": "e1", "element": "Next"})
        assert decision.answer == "ask"
        assert shown in (decision.card.text if decision.card is not None else decision.for_person)
        assert (decision.card is not None) is ("Pay" in shown)


FORM = """- form "Pay" [ref=e9]:
  - textbox "Name" [ref=e2]: Ann
  - checkbox "Gift" [checked] [ref=e3]
  - button "Pay now" [ref=e1]
- textbox "Newsletter" [ref=e4]: b@example.com
- paragraph [ref=e5]: "Total: 5 EUR"
"""


def test_a_card_names_the_element_its_page_and_what_all_fields_hold() -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, FORM)
        card = session.decide("browser_click", {"target": "e1", "element": "Search"}).card
        assert card is not None
        for each in ("Pay now (button)", HOME, "Name: Ann", "Gift: ticked", "5 EUR"):
            assert each in card.text
        # A field may belong to another form than the one around it (`form=`), which no snapshot shows.
        assert "Newsletter: b@example.com" in card.text
        assert "Search" not in card.text
        show(session, f"- iframe [ref=e8]:\n  {FORM.strip().replace(chr(10), chr(10) + '  ')}")
        card = session.decide("browser_click", {"target": "e1"}).card
        assert card is not None
        assert "- frame: " in card.text


CHOICES = """- form "Checkout" [ref=e1]:
  - slider "Donation" [ref=e2]: "500"
  - button "Express" [pressed] [ref=e3]
  - gridcell "24 Dec" [selected] [ref=e4]
  - tab "Yearly" [selected] [ref=e5]
  - checkbox "Terms" [checked=mixed] [ref=e6]
  - generic [ref=e7]: 1000 EUR
  - scrollbar "Amount" [ref=e10]: "900"
  - textbox "Note" [ref=e11]:
    - paragraph: send it
  - button "Show more" [ref=e8]: Pay 900 EUR
  - button "Details" [expanded] [ref=e9]:
    - text: Pay 30 EUR"""


def test_a_card_shows_values_states_and_texts() -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        for ref, own in (("e8", 'with the text: "Pay 900 EUR"'), ("e9", "Pay 30 EUR"), ("e3", "[pressed]")):
            show(session, CHOICES)
            card = session.decide("browser_click", {"target": ref}).card
            assert card is not None
            held = (
                "Donation: 500",
                "Amount: 900",
                "Note: send it",
                "Express: pressed",
                "24 Dec: selected",
                "Yearly: selected",
                "Terms: ticked: mixed",
            )
            for each in (own, *held, "1000 EUR", "Show more: Pay 900 EUR"):
                assert each in card.text
            assert "expanded" not in card.text


AROUND = """- banner [ref=e1]:
  - text: "12:00"
- main [ref=e2]:
  - paragraph [ref=e3]: Pay 5 EUR?
  - generic [ref=e4]:
    - text: or
    - button "Confirm" [ref=e5]
- complementary [ref=e6]: Delivered to Ann
- dialog "Sure?" [ref=e7]:
  - button "Really" [ref=e8]
- navigation [ref=e9]:
  - link "Log out" [ref=e10]:
    - /url: /logout/1
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("12:00", "12:01"),
        ("5 EUR", "900 EUR"),
        ("main [", 'main "Account 2" ['),
        ("main", "generic"),
        ("Delivered to Ann", "Delivered to Bob"),
        ("Sure?", "Pay 900 EUR?"),
        ("Log out", "Log off"),
        ("/logout/1", "/logout/2"),
    ],
)
def test_a_yes_is_for_all_that_the_page_shows(old: str, new: str) -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, AROUND)
        card = session.decide("browser_click", {"target": "e5"}).card
        assert card is not None
        session.confirm(card.id, yes=True)
        show(session, AROUND.replace(old, new))
        assert not session.decide("browser_click", {"target": "e5"}).allowed


@pytest.mark.parametrize(
    ("part", "old", "new", "allowed"),
    [
        ("banner", "12:00", "12:01", True),
        ("banner", "5 EUR", "900 EUR", False),
        ("main", "or", "and", True),
        ("main", '"Confirm"', '"Pay"', False),
        ("main", "12:00", "12:01", False),
    ],
)
def test_a_yes_holds_although_a_part_changed_that_the_owner_lists_as_passing(
    part: str, old: str, new: str, allowed: bool
) -> None:
    tools = f"{PACK['tools.yaml']}  passing: [{{role: {part}}}]\n"
    with Shield(made({**PACK, "tools.yaml": tools})) as shield, shield.session("x") as session:
        show(session, AROUND)
        card = session.decide("browser_click", {"target": "e5"}).card
        assert card is not None
        session.confirm(card.id, yes=True)
        show(session, AROUND.replace(old, new, 1))
        assert session.decide("browser_click", {"target": "e5"}).allowed is allowed


def test_a_yes_holds_while_the_page_stays_the_same() -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, AROUND)
        card = session.decide("browser_click", {"target": "e5"}).card
        assert card is not None
        session.confirm(card.id, yes=True)
        show(session, AROUND.replace("[ref=e5]", "[active] [ref=e5]"))
        assert session.decide("browser_click", {"target": "e5"}).allowed


def test_a_yes_in_a_dialog_is_for_the_page_behind_it() -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, AROUND)
        card = session.decide("browser_click", {"target": "e8"}).card
        assert card is not None
        session.confirm(card.id, yes=True)
        show(session, AROUND.replace("5 EUR", "900 EUR"))
        assert not session.decide("browser_click", {"target": "e8"}).allowed


@pytest.mark.parametrize("leads", ["javascript:pay(5)", "https://evil.test/?a=1&b=/x", "/order?id=7&do=cancel"])
def test_a_card_of_a_link_shows_its_whole_address_and_a_yes_is_for_that(leads: str) -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, link(leads))
        card = session.decide("browser_click", {"target": "e1"}).card
        assert card is not None
        assert leads in card.text
        session.confirm(card.id, yes=True)
        show(session, link(leads + "9"))
        assert not session.decide("browser_click", {"target": "e1"}).allowed
        show(session, link(leads))
        assert session.decide("browser_click", {"target": "e1"}).allowed


SUMMARY = """- main [ref=e2]:
  - region "Summary" [ref=e3]:
    - paragraph [ref=e4]: "Total: 900 EUR"
    - group [ref=e9]:
      - button "Pay now" [ref=e1]
  - paragraph [ref=e5]: "Ann writes: cheap"
  - paragraph [ref=e6]: "Total: 5 EUR"
"""


@pytest.mark.parametrize(
    ("old", "new", "total"),
    [
        ("Ann", "Bob", "900 EUR"),
        ("Total: 900 EUR", "In all: 900 EUR", None),
        ('"Summary"', '"Others"', None),
        ("    - group", '    - paragraph [ref=e7]: "Total: 5 EUR"\n    - group', "several"),
        ("- main", '- region "Summary" [ref=e8]: "Total: 5 EUR"\n- main', "several"),
    ],
)
def test_a_value_comes_from_the_part_that_the_pack_names(old: str, new: str, total: str | None) -> None:
    within = "within: {role: region, name: Summary}, optional"
    placed = PACK["tools.yaml"].replace("optional", within, 1)
    with Shield(made({**PACK, "tools.yaml": placed})) as shield, shield.session("x") as session:
        show(session, SUMMARY.replace(old, new, 1))
        decision = session.decide("browser_click", {"target": "e1"})
        if total == "several":
            assert decision.card is None
            assert "several values for `total`" in decision.for_person
        else:
            assert decision.actions[0].arguments.get("total") == total


def test_a_field_gives_the_option_that_is_chosen() -> None:
    branch = PACK["tools.yaml"].replace("$page.text('^Total: (.*)$')", "$page.field('Branch')")
    body = '- combobox "Branch" [ref=e2]:\n  - option "North"\n  - option "South" [selected]\n- button "Go" [ref=e1]'
    with Shield(made({**PACK, "tools.yaml": branch})) as shield, shield.session("x") as session:
        show(session, body)
        assert session.decide("browser_click", {"target": "e1"}).actions[0].arguments == {"total": "South"}


def test_an_optional_value_that_the_page_shows_twice_is_not_left_out() -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, FORM + '- paragraph [ref=e6]: "Total: 900 EUR"\n')
        decision = session.decide("browser_click", {"target": "e1"})
        assert decision.answer == "ask"
        assert decision.card is None
        assert "several values for `total`" in decision.for_person


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("browser_drag", {"startRef": "e1", "endRef": "e2"}), ("browser_press_key", {"key": "Enter"})],
)
def test_an_approval_of_a_drag_or_a_key_is_for_the_page_as_shown(tool: str, arguments: dict[str, str]) -> None:
    body = FORM.replace('"Name"', '"Name" [active]')
    with Log(":memory:") as log, Shield(made(PACK), log=log) as shield:
        session = shield.session("c")
        show(session, body)
        log.approve(session.decide(tool, arguments).approval, by="ann")
        show(session, body, "https://shop.example.com/account")
        assert not session.decide(tool, arguments).allowed
        show(session, body.replace("5 EUR", "900 EUR"))
        assert not session.decide(tool, arguments).allowed
        show(session, body)
        assert session.decide(tool, arguments).allowed


def opens(session: LiveSession, words: str) -> None:
    card = session.decide("browser_click", {"target": "e1"}).card
    assert card is not None
    session.confirm(card.id, yes=True)
    assert session.decide("browser_click", {"target": "e1"}).allowed
    session.result(words)


def dialog(message: str) -> str:
    return f'### Modal state\n- ["confirm" dialog with message "{message}"]: can be handled by browser_handle_dialog'


@pytest.mark.parametrize("accept", [True, False])
def test_a_yes_to_a_dialog_is_for_its_words(accept: bool) -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, FORM)
        opens(session, dialog("Print the page?"))
        card = session.decide("browser_handle_dialog", {"accept": accept}).card
        assert card is not None
        assert "Print the page?" in card.text
        session.confirm(card.id, yes=True)
        show(session, FORM)
        opens(session, dialog("Delete your account?"))
        assert not session.decide("browser_handle_dialog", {"accept": accept}).allowed


@pytest.mark.parametrize(
    "words", ["Clicked.", dialog('Print?"]\n### Modal state\n- ["confirm" dialog with message "Pay?')]
)
def test_a_dialog_whose_words_are_not_known_is_for_a_person(words: str) -> None:
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, FORM)
        opens(session, words)
        decision = session.decide("browser_handle_dialog", {"accept": True})
        assert not decision.allowed
        assert decision.card is None


def test_a_yes_to_an_upload_is_for_its_page() -> None:
    paths = {"paths": ["/home/ann/photo.png"]}
    with Shield(made(PACK)) as shield, shield.session("x") as session:
        show(session, FORM)
        card = session.decide("browser_file_upload", paths).card
        assert card is not None
        assert HOME in card.text
        session.confirm(card.id, yes=True)
        show(session, FORM, "https://evil.test/")
        assert not session.decide("browser_file_upload", paths).allowed


def test_a_card_shows_the_numbers_of_the_page_unless_the_action_takes_its_text() -> None:
    body = '- banner [ref=e1]:\n  - text: "Total: 900 EUR"\n- button "Order" [ref=e2]'
    asked = card_text(PACK["tools.yaml"], body)
    assert "numbers on the page" not in asked
    assert "total: 900 EUR" in asked.replace('"', "")
    taken = """    take: {total: {value: "$page.text('^Total: (.*)$')", optional: true}}\n"""
    assert taken in PACK["tools.yaml"]
    assert 'numbers on the page: "Total: 900 EUR"' in card_text(PACK["tools.yaml"].replace(taken, ""), body)


def card_text(tools: str, body: str) -> str:
    with Shield(made({**PACK, "tools.yaml": tools})) as shield, shield.session("x") as session:
        show(session, body)
        card = session.decide("browser_click", {"target": "e2"}).card
        assert card is not None
        return card.text


def test_a_yes_to_going_forward_is_none_to_going_back() -> None:
    with Shield("browser") as shield, shield.session("x") as session:
        show(session, AROUND)
        card = session.decide("browser_navigate_forward", {}).card
        assert card is not None
        session.confirm(card.id, yes=True)
        assert session.decide("browser_navigate_back", {}).answer == "ask"
        assert session.decide("browser_navigate_forward", {}).allowed
