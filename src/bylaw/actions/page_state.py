"""Tracks the page that was last shown to the agent. The page is unknown once a call may have changed it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from bylaw.actions.action import FIELDS, PageTerms, TargetTerms
from bylaw.actions.taking import Ambiguous, ElementTerms, NotAtOnce, NotTaken, Take, names_element
from bylaw.policy.pattern import LONGEST, Pattern
from bylaw.reading import Unreadable
from bylaw.reading.page import Element, Page, read_page
from bylaw.reading.url import Url, read_url
from bylaw.trace.event import Call, Result

_KEYED = frozenset(("button", "link", "menuitem", "menuitemcheckbox", "menuitemradio", "tab"))
"""Roles of elements that the Enter key activates. In any other element, Enter submits the form."""
_PRESSED = _KEYED | {"checkbox", "radio", "switch"}
_STATES = {"checked": "ticked"}
_OF_LOOKS = frozenset(("active", "cursor", "disabled", "expanded", "level", "box"))
"""Element states that neither contain a value nor show a choice."""
CONTROLS = _PRESSED | FIELDS | {"option", "slider", "listbox", "treeitem"}
FRAME = ElementTerms(("iframe",))
"""The role of a frame, which shows another document within the page."""
FORMS = frozenset(("form", "search", "dialog", "alertdialog"))
_TABLES = frozenset(("table", "grid", "treegrid"))
_ELSEWHERE = ("selector", "css", "xpath", "locator", "index", "x", "y", "coordinate", "coordinates", "position")
"""Names of arguments that other servers use for elements outside the snapshot."""
_QUIET_KEY = re.compile(
    r"[^\r\n]|Space|Tab|Escape|Backspace|Delete|Insert|CapsLock|Home|End|(?:Arrow|Page)(?:Up|Down|Left|Right)"
    r"|F[0-9]{1,2}|(?:Shift|Control|Alt|Meta)(?:Left|Right)?|ControlOrMeta|AltGraph|Key[A-Z]|(?:Digit|Numpad)[0-9]"
)
"""Matches keys that never submit a form. Any other key name may mean Enter."""
_OF_FOCUS = frozenset(("key", "keys", "text", "submit", "slowly", "delay"))
"""The arguments of a call that acts on the focused element."""
_MARKS = ("```yaml", "Page Snapshot", "### Snapshot", "Page URL:")
"""How a snapshot in a result begins. An argument may contain the same text, and the result may repeat the argument."""


class PageState:
    """The page in the browser, if known. `unknown` says why the page is not known."""

    def __init__(self, terms: PageTerms) -> None:
        self.terms = terms
        self.shown_to = ""
        self._unknown = "no page has been shown yet"
        self._result: Result | None = None
        """The result with the last snapshot, or None if the page is unknown."""
        self._words = ""
        """The text of the last result from a call that may have changed the page."""
        self._last = -1
        """The step of the last call that may have changed the page."""
        self._shown = -1
        """The step of the call that showed the page."""
        self._under_way: dict[int, int] = {}
        """The steps and turns of calls that may change the page and have no result yet."""
        self._beside: set[int] = set()
        """The steps of snapshots that were requested while such a call had no result.

        They may show the page before or after its change.
        """

    def call(self, step: int, call: Call) -> None:
        if call.refused or not self.terms.changes_with(call.tool):
            return
        if call.tool == self.terms.snapshot:
            if self._under_way:
                self._beside.add(step)
            return
        self._result, self._last, self._words = None, step, ""
        self._under_way[step] = call.turn
        self._unknown = f"`{call.tool}` may have changed the page, and no page has been shown since"

    def result(self, result: Result, call: Call) -> None:
        step = -1 if result.call is None else result.call
        is_snapshot = call.tool == self.terms.snapshot
        if not is_snapshot and step < self._shown and not call.refused:
            self._result = None
            self._unknown = f"`{call.tool}` may have changed the page, because it ended after the page was shown"
        elif result.refused and self._result is None:
            self._unknown = f"`{call.tool}` did not run, and the page may have changed before that call"
        # In its next turn, an agent no longer waits for calls from its previous turn.
        self._under_way = {each: turn for each, turn in self._under_way.items() if turn >= call.turn and each != step}
        if step == self._last and result.captured:
            self._words = result.text
        if call.refused or not self.terms.shows(call.tool) or step < self._last or step in self._beside:
            return
        if (is_snapshot and any(call.arguments.values())) or not result.captured or has_mark(call.arguments):
            return
        if is_snapshot or "```yaml" in result.text:
            self._result, self.shown_to, self._shown = result, call.agent, step

    @property
    def page(self) -> Page | None:
        """The page, if known. The snapshot is parsed on first use."""
        return page if isinstance(page := self._read(), Page) else None

    def _read(self) -> Page | str:
        if self._result is None:
            return self._unknown
        page = page_in(text_of(self._result.value()))
        if isinstance(page, Unreadable):
            return f"the last snapshot of the page cannot be read: {page}"
        return page if page.is_complete else "the last snapshot shows only part of the page"

    @property
    def words(self) -> str:
        """The browser's message if the page is unknown, for example about an open dialog. Empty if the page is
        known.
        """
        return self._words if self._result is None else ""

    def page_for(self, call: Call) -> Page:
        """Return the page as last seen by the agent that makes a call. Raises NotTaken if the page may have changed
        since.
        """
        page = self._read()
        if isinstance(page, str):
            raise NotTaken(page)
        if self.shown_to != call.agent:
            raise NotTaken("the page was shown to another agent")
        return page


def has_mark(value: Any) -> bool:
    """Whether arguments contain a text with which a snapshot begins. The result may repeat this text."""
    if isinstance(value, str):
        return any(mark in value for mark in _MARKS)
    if isinstance(value, Mapping):
        return any(map(has_mark, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return isinstance(value, list) and any(map(has_mark, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class Targeted(NamedTuple):
    """An element that a call targets."""

    element: Element
    chain: tuple[Element, ...]
    """The target and the elements that contain it. The condition of an action may match any of them."""
    item: Mapping[str, Any] = {}
    """The item that names the element in a list argument, such as the list of a form's fields. Empty if the element is
    not named in a list.
    """
    act: int = 0
    """The index of the operation in the call. One operation may affect several elements."""


def named_elements(page: Page, call: Call, terms: PageTerms) -> list[tuple[Element, Mapping[str, Any]]]:
    """Return the elements that a call names, each with its item in a list argument.

    If the call names none, return the focused element. Raises NotTaken if an element is unknown.
    """
    if named := _named(page, call, terms):
        return named * 2 if call.arguments.get("doubleClick") else named
    given = {name for name, value in call.arguments.items() if value} - set(terms.description)
    if not given or not given <= _OF_FOCUS:
        raise NotTaken("the call names no element in a supported way")
    if page.focused is None:
        raise NotTaken("the call names no element, and the page does not show which element has focus")
    return [(page.focused, {})]


def targets_of(page: Page, call: Call, terms: PageTerms) -> list[Targeted]:
    """Return the elements that a call targets.

    Raises NotTaken if an element is unknown, or if the call submits a form without pressing a button.
    """
    named, arguments = named_elements(page, call, terms), call.arguments
    if _submits(arguments) and any(element.role not in _KEYED for element, _ in named):
        # The browser chooses the button by scripts and by attributes that snapshots do not show.
        if arguments.get("text") or any(item for _, item in named):
            raise NotAtOnce(
                "the call types text and submits a form. Type first, look at the page, then press the button"
            )
        raise NotTaken("the call submits a form, but no page shows which button it presses: press the intended button")
    is_key = bool(arguments.get("key") or arguments.get("keys"))
    for element, _ in named if not is_key else ():
        _check_inside(page, element)
    return [each for act, (element, item) in enumerate(named) for each in _worked_on(page, element, item, act)]


def _submits(arguments: Mapping[str, Any]) -> bool:
    for given in (arguments, *_items(arguments)):
        text = given.get("text", "")
        if not isinstance(text, str | int | float | None) or "\n" in str(text) or "\r" in str(text):
            return True
        if given.get("submit") not in (None, False):
            return True
        if not all(is_quiet(key) for name in ("key", "keys") if (key := given.get(name))):
            return True
    return False


def _named(page: Page, call: Call, terms: PageTerms) -> list[tuple[Element, Mapping[str, Any]]]:
    found: list[tuple[Element, Mapping[str, Any]]] = []
    for item in (call.arguments, *_items(call.arguments)):
        if any(item.get(name) is not None for name in _ELSEWHERE if name not in terms.target):
            raise NotTaken("the call names an element in a way that cannot be checked against the page")
        refs = [str(item[name]) for name in terms.target if item.get(name)]
        if item is call.arguments:
            refs += [str(value) for name, value in item.items() if names_element(name) and value]
        elif not refs:
            raise NotTaken("a list item in the call names no element of the page")
        found += [(_by_ref(page, ref), {} if item is call.arguments else item) for ref in dict.fromkeys(refs)]
    return found


def is_quiet(key: Any) -> bool:
    """Whether a key certainly does not submit a form."""
    return isinstance(key, str) and all(map(_QUIET_KEY.fullmatch, re.split(r"(?<=.)\+", key, flags=re.DOTALL)))


def _check_inside(page: Page, element: Element) -> None:
    inside = next((each for each in page.descendants(element) if each.role in _PRESSED), None)
    if inside is not None and element.role not in FIELDS:
        raise NotTaken(f"{name_of(page, element)} contains {name_of(page, inside)}, which the call may press instead")


def _worked_on(page: Page, element: Element, item: Mapping[str, Any], act: int) -> Iterator[Targeted]:
    """Yield the controls that an element affects: its own control, and every control that contains it."""
    chain = (element, *page.ancestors(element))
    end = next((at for at, each in enumerate(chain) if each.role in CONTROLS), None)
    if end is None:
        yield Targeted(element, chain, item, act)
        return
    yield Targeted(chain[end], chain[: end + 1], item, act)
    for each in chain[end + 1 :]:
        if each.role in _PRESSED:
            yield Targeted(each, (each,), item, act)


def _items(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for value in arguments.values():
        if isinstance(value, list):
            listed: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            if any(isinstance(each, list) for each in listed):
                raise NotTaken("an argument of the call contains a list inside a list")
            yield from (each for each in listed if isinstance(each, dict))


def _by_ref(page: Page, ref: str) -> Element:
    element = page.by_ref(ref)
    if element is None:
        raise NotTaken(f"the last page shown has no element `{ref}`")
    return element


def fits_page(page: Page, url: Pattern | None) -> bool:
    """Whether a pattern matches part of a page's address without its query. False for an unreadable address."""
    if url is None:
        return True
    try:
        return url.occurs(_address(page))
    except NotTaken:
        return False


def content_of(page: Page, content: Sequence[ElementTerms]) -> set[int]:
    """Return the positions of the elements in parts of a page that anyone may have written."""
    found: set[int] = set()
    roles = {role for terms in content for role in terms.roles}
    is_by_role = all(terms.roles for terms in content)
    for element in page.elements:
        if is_by_role and element.role not in roles:
            continue
        if element.at not in found and any(terms.fits(element) for terms in content):
            found |= {element.at, *(each.at for each in page.descendants(element))}
    return found


def fits_target(page: Page, target: Targeted, terms: TargetTerms) -> bool:
    """Whether an action's conditions match the target of a call."""
    if terms.page is not None and (page.is_in_frame(target.element) or not fits_page(page, terms.page)):
        return False
    for each in target.chain:
        if terms.url is not None and not terms.url.occurs(unquote(page.properties.get(each.at, {}).get("url", "\n"))):
            continue
        if terms.element.fits(each):
            return terms.within is None or any(map(terms.within.fits, page.ancestors(each)))
    return False


def _address(page: Page) -> str:
    """Return the normalised address of a page without its query. Raises NotTaken if the address is unreadable."""
    url = _read(read_url, page.url)
    return url.origin + url.path


def name_of(page: Page, element: Element) -> str:
    """Return a description of an element, using text from the page."""
    name = label_of(page, element)
    return f'{element.role} "{name}" on {page.url}' if name else f"{element.role} without a name on {page.url}"


def taken_from_page(take: Take, page: Page, element: Element, terms: PageTerms) -> Any:
    """Return the value of a parameter from a page. Raises NotTaken unless the page shows exactly one value."""
    if take.source == "page" and page.is_in_frame(element):
        raise NotTaken("the element belongs to another document, shown in a frame of the page")
    match take.source, take.field:
        case "page", "url" if take.pattern is None:
            return page.url
        case "page", "host" | "private":
            return _part_of_url(take.field, _read(read_url, page.url))
        case "link", _:
            return _part_of_url(take.field, _read(read_url, written_link(page, element)))
        case "page", "url":
            return _one(take, _found_in(take.pattern, _address(page)))
        case "page", "title":
            return page.title
        case "page", "text" if take.pattern is not None:
            texts = _texts(page, terms.content, take.within)
            return _one(take, (each for text in texts for each in _found_in(take.pattern, text)))
        case "page", "heading" if take.pattern is not None:
            shown = _trusted(take, page, terms)
            headings = (each.name for each in shown if each.role == "heading" and not _has_field(page, each))
            return _one(take, (value for name in headings for value in _found_in(take.pattern, name)))
        case "page", "fields":
            if not (fields := filled_in(page)):
                raise NotTaken(f"the page shows no `{take.name}`")
            return fields
        case "page", _:
            return _field(take, page, terms)
        case "element", "name":
            if any(each.role in FIELDS for each in page.descendants(element)):
                raise NotTaken("text typed into a field does not count as page content")
            if not (name := label_of(page, element)):
                raise NotTaken(f"the {element.role} has no name on the page, or its name has more than 900 characters")
            return name
        case "element", "role":
            return element.role
        case "element", _:
            return _shown(page, element)
        case _:
            pass
    row = next((each for each in (element, *page.ancestors(element)) if each.role == "row"), None)
    if row is None:
        raise NotTaken("the element is not in a table row")
    if take.field == "text":
        return _shown(page, row)
    if isinstance(take.column, int):
        cells = page.cells(row)
        found = cells[take.column - 1] if 0 < take.column <= len(cells) else None
    else:
        found = _cell(page, row, take.column)
    if found is None:
        raise NotTaken(f"the element's row has no unique cell `{take.column}`")
    return _shown(page, found)


def _part_of_url(field: str, url: Url) -> Any:
    return url.is_private if field == "private" else getattr(url, field)


def _read(read: Callable[..., Url], *texts: str) -> Url:
    try:
        return read(*texts)
    except Unreadable as error:
        raise NotTaken(f"the address `{texts[0][:100]}` cannot be read: {error.reason}") from None


def written_link(page: Page, element: Element) -> str:
    """Return the address of an element, or of the link that contains it, as written in the page. Empty if there is
    none.

    A relative address stays relative, because a snapshot does not show the page's base address (`<base>`).
    """
    links = (page.properties.get(each.at, {}).get("url", "") for each in (element, *page.ancestors(element)))
    return next(filter(None, links), "")


def label_of(page: Page, element: Element) -> str:
    """Return the name of an element, or its text if the snapshot omits the name. Empty if there is neither.

    Text that the user typed is not a name.
    """
    name = element.name or ("" if _has_field(page, element) else page.text_of(element))
    return " ".join(name.split())


def _shown(page: Page, element: Element) -> str:
    """Return the text of an element. Raises NotTaken if it includes text that was typed into a field."""
    if _has_field(page, element):
        raise NotTaken("text typed into a field does not count as page content")
    return page.text_of(element)


def _has_field(page: Page, element: Element) -> bool:
    return element.role in FIELDS or any(each.role in FIELDS for each in page.descendants(element))


def _cell(page: Page, row: Element, column: str) -> Element | None:
    """Return a row's cell in the column with this heading. The headings of a table are parsed once."""
    table = next((each for each in page.ancestors(row) if each.role in _TABLES), None)
    if table is None:
        return None
    own: Any = page.__dict__
    kept: dict[int, tuple[str, ...]] = own.setdefault("kept_columns", {})
    if table.at not in kept:
        kept[table.at] = page.columns(table)
    columns, cells = kept[table.at], page.cells(row)
    if len(cells) != len(columns) or columns.count(column) != 1:
        return None
    return cells[columns.index(column)]


def _trusted(take: Take, page: Page, terms: PageTerms) -> list[Element]:
    written = content_of(page, (*terms.content, FRAME))
    places = content_of(page, (take.within,)) if take.within is not None else None
    return [each for each in page.elements if each.at not in written and (places is None or each.at in places)]


def _found_in(pattern: Pattern | None, text: str) -> Iterator[str]:
    """Yield the matches of a pattern in each line of a text: the first group or, without groups, the whole match."""
    for found in pattern.finditer(text) if pattern is not None else ():
        value = found[1] if found.lastindex else found[0]
        if value and "\n" not in (found[0] or "") and value.strip():
            yield " ".join(value.split())


def _field(take: Take, page: Page, terms: PageTerms) -> str:
    fields = [each for each in page.elements if each.role in FIELDS and " ".join(each.name.split()) == take.column]
    if len(fields) != 1 or fields[0] not in _trusted(take, page, terms):
        raise NotTaken(f"the page has no unique field `{take.column}`")
    return _held(page, fields[0])


def filled_in(page: Page) -> list[str]:
    """Return the contents and states of a page's fields and other controls, with their names."""
    found: list[str] = []
    end = 0
    for element in page.elements:
        is_field = element.role in FIELDS or element.role == "listbox"
        if element.at < end:
            continue
        if is_field:
            end = element.at + 1 + len(page.descendants(element))
        held = _held(page, element) if is_field else element.text if element.name or element.role in CONTROLS else ""
        said = [" ".join(each.split()) for each in (held, *states_of(element))]
        name = " ".join(element.name.split())
        if told := ", ".join(each for each in said if each and each != name):
            found.append(f"{name or (page.text_of(element) if not is_field else '') or element.role}: {told}")
    return found


def states_of(element: Element) -> list[str]:
    """Return the states of an element as text, without those that concern only its appearance."""
    return [
        _STATES.get(name, name) if value in ("", "true") else f"{_STATES.get(name, name)}: {value}"
        for name, value in element.states
        if name not in _OF_LOOKS
    ]


def _held(page: Page, field: Element) -> str:
    inside = page.descendants(field)
    chosen = [page.label(each) for each in inside if each.state("selected") is not None]
    return ", ".join(chosen) or field.text or " ".join(each.text for each in inside if each.text)


def _texts(page: Page, content: tuple[ElementTerms, ...], within: ElementTerms | None = None) -> Sequence[str]:
    """Return the lines of a page as texts short enough for patterns to search completely. The result is cached for each
    page.
    """
    own: Any = page.__dict__
    kept: dict[Any, Sequence[str]] = own.setdefault("kept_texts", {})
    if (content, within) not in kept:
        kept[content, within] = _in_texts(lines_of(page, content, within))
    return kept[content, within]


def _in_texts(lines: Iterator[str]) -> Sequence[str]:
    found: list[list[str]] = [[]]
    length = 0
    for line in lines:
        if found[-1] and length + len(line) >= LONGEST:
            found.append([])
            length = 0
        found[-1].append(line)
        length += len(line) + 1
    return ["\n".join(lines) for lines in found]


def text_of(value: Any) -> str:
    """Return the text of a result that has exactly one text, or else an empty string. Pictures are ignored."""
    parts: Any = cast("Mapping[str, Any]", value).get("content") if isinstance(value, Mapping) else value
    if isinstance(parts, list):
        listed = [cast("Mapping[str, Any]", each) for each in cast("list[Any]", parts) if isinstance(each, Mapping)]
        texts = [each.get("text") for each in listed if each.get("type") == "text"]
        parts = texts[0] if len(texts) == 1 else ""
    return parts if isinstance(parts, str) else ""


@lru_cache(maxsize=8)
def page_in(text: str) -> Page | Unreadable:
    try:
        return read_page(text)
    except Unreadable as error:
        return error


def _one(take: Take, found: Iterator[str]) -> str:
    values = dict.fromkeys(found)
    if not values:
        raise NotTaken(f"the page shows no `{take.name}`")
    if len(values) > 1:
        shown = " and ".join(f"`{each[:60]}`" for each in list(values)[:3])
        raise Ambiguous(f"the page shows several values for `{take.name}`: {shown}")
    return next(iter(values))


def lines_of(page: Page, content: Sequence[ElementTerms], within: ElementTerms | None = None) -> Iterator[str]:
    """Yield the texts of a page or of its parts `within`: the name and text of each element, and neighbouring texts in
    one element.

    Parts from other documents, parts that anyone may have written, and typed text are left out.
    """
    typed = {above.at for each in page.elements if each.role in FIELDS for above in page.ancestors(each)}
    places = content_of(page, (within,)) if within is not None else None
    left, at = -1, 0
    for element in page.elements:
        at = element.at
        if at <= left:
            continue
        if element.role == "iframe" or element.role in FIELDS or any(terms.fits(element) for terms in content):
            left = at + len(page.descendants(element))
            continue
        if places is not None and at not in places:
            continue
        # An element's name may be its complete content.
        if element.name and not element.name.startswith("/") and at not in typed:
            yield " ".join(element.name.split())
        if element.text:
            yield " ".join(element.text.split())
        children = list(page.children(element)) if element.role not in ("main", "document") else []
        if at not in typed and len(children) > 1 and all(not page.descendants(each) for each in children):
            yield " ".join(" ".join(each.text or each.name for each in children).split())


def shows_value(text: str, value: str, terms: PageTerms, arguments: Mapping[str, Any]) -> bool:
    """Whether a snapshot shows a value, outside the parts of the page that anyone may have written."""
    page = page_in(text)
    if isinstance(page, Unreadable) or has_mark(arguments):
        return False
    told = " ".join(value.split())
    written = content_of(page, terms.content)
    return any(told in part for part in _texts(page, terms.content)) and not any(
        told in each.name or told in each.text for each in page.elements if each.at in written
    )
