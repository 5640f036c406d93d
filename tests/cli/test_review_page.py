"""The page of a review shows what a foreign pack says, and runs none of it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.command import Ran, bylaw

EVIL = "x' onmouseover=alert(1) <script>alert(2)</script><img src=x onerror=alert(3)>\u202e"
FILES = {
    "pack.yaml": f'format: 1\nname: "{EVIL}"\ndocument: policy.md\n',
    "policy.md": f"Ship only what is paid {EVIL}\n",
    "tools.yaml": f'tools:\n  ship: {{effect: write, parameters: {{order: string}}, description: "{EVIL}"}}\n',
    "entities.yaml": "entities:\n  Order: {key: order, fields: {paid: boolean}}\n",
    "policies.yaml": f"""\
policies:
  - {{id: paid, tools: [ship], definition: "{EVIL}", spans: [{{quote: "Ship only what is paid"}}]}}
  - id: kind
    kind: conversation
    spans: [{{quote: "Ship only what is paid"}}]
    unenforced: {{accepted_by: "{EVIL}", reason: "{EVIL}"}}
""",
    "guards/g.py": f"""
def paid(call, facts):
    if facts.Order(call.order).paid:
        return permit()
    return deny("{EVIL}")
""",
    "cases/c.yaml": f"""\
- {{note: "{EVIL}", policy: paid, call: {{ship: {{order: "{EVIL}"}}}}, facts: {{Order: {{paid: true}}}}, want: permit}}
""",
    "compiled.yaml": f"""\
policies:
  paid:
    repairs: "{EVIL}"
    generated_inputs: "{EVIL}"
    questions: [{{about: "{EVIL}", text: "{EVIL}", input: {{"{EVIL}": "{EVIL}"}}}}]
    in_logs:
      "{EVIL}": {{calls: 1, first: [{{conversation: "{EVIL}", step: "{EVIL}", why: "{EVIL}"}}]}}
""",
}
ELEMENTS = {
    *("html", "meta", "title", "style", "h1", "h2", "h3", "p", "code", "table", "tr", "th", "td", "a", "article"),
    *("main", "span", "div", "blockquote", "pre", "ul", "li", "details", "summary", "dl", "dt", "dd"),
}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "tabindex", "open"}


class Elements(HTMLParser):
    """The elements and attributes that a browser makes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def review(folder: Path, *given: str) -> Ran:
    return bylaw(folder.parent, "review", folder.name, *given)


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_page_is_made_of_its_own_elements_alone(tmp_path: Path) -> None:
    done = review(write(tmp_path / "pack", FILES), "--page", str(tmp_path / "page.html"))
    assert "Wrote" in done.stdout, done.stderr
    page = (tmp_path / "page.html").read_text()
    found = Elements()
    found.feed(page)
    assert found.tags <= ELEMENTS
    assert found.attributes <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "tabindex",
        "open",
    }
    assert page.count("&lt;script&gt;") > 10
    assert "\u202e" not in page
    security = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert security is not None
    assert "default-src 'none'" in security[1]
    assert "script-src" not in security[1]


@pytest.mark.parametrize(
    "noted",
    [
        "policies: [1]",
        "policies: {paid: 7}",
        "policies: {paid: {in_logs: {x: {calls: many}}}}",
        "policies: {paid: {questions: 3}}",
    ],
)
def test_notes_of_another_shape_are_told_without_a_traceback(tmp_path: Path, noted: str) -> None:
    folder = write(tmp_path / "pack", {**FILES, "compiled.yaml": noted})
    for given in ((), ("--page", str(tmp_path / "page.html"))):
        done = review(folder, *given)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert "compiled.yaml: not valid compiler notes" in done.stderr


def test_a_pack_without_any_notes_has_a_page(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if name != "compiled.yaml"}
    review(write(tmp_path / "pack", {**files, "compiled.yaml": ""}), "--page", str(tmp_path / "page.html"))
    assert "written by hand" in (tmp_path / "page.html").read_text()
