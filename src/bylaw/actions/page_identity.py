"""Determines which calls on a page change nothing, and what the user's consent covers for all other calls.

Consent covers one element with its frame and form, and the page as it was shown.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urldefrag, urljoin

from bylaw.actions.action import FIELDS, PageTerms
from bylaw.actions.page_state import (
    CONTROLS,
    FORMS,
    PageState,
    Targeted,
    content_of,
    filled_in,
    label_of,
    name_of,
    named_elements,
    states_of,
    written_link,
)
from bylaw.actions.taking import NotTaken
from bylaw.reading.page import Element, Page
from bylaw.trace.event import Call

_PASSING = frozenset(("active", "cursor"))
"""Element states that change even if a user only looks at the page."""
_DIGITS = 20
"""The length of a fingerprint: 80 bits."""
_LONGEST_NAME = 1500
"""The maximum length of an element's name on a card."""
_DIALOG = "### Modal state"
_LONGEST_DIALOG = 1000


def only_types(page: Page, target: Targeted, arguments: Mapping[str, Any], terms: PageTerms) -> bool:
    """Whether a call only types into a listed field on a listed page.

    A click or a key may have any effect, because a snapshot does not show the page's scripts, or elements that cover
    other elements.
    """
    element, item = target.element, target.item
    known = {*terms.target, *terms.description}
    given, of_item = _given(arguments) - known, _given(item) - known
    is_typing = given == {"text"}
    if item:
        is_typing = given == {"fields"} and of_item <= {"name", "type", "value"}
        is_typing = is_typing and item.get("type", "textbox") == "textbox" and isinstance(item.get("value"), str)
    if not is_typing or element.role not in FIELDS or page.is_in_frame(element):
        return False
    return terms.is_field(" ".join(element.name.split())) and terms.lists(page.url)


def _given(arguments: Mapping[str, Any]) -> set[str]:
    return {name for name, value in arguments.items() if value not in (None, False)}


def listed_page(page: Page, element: Element, terms: PageTerms) -> str:
    """Return the address of a link if the address is listed as view-only. Empty for any other element.

    Only opening the address is a look-up, so a page gains nothing by showing a false address.
    """
    if element.role != "link" or page.is_in_frame(element) or not (written := written_link(page, element)):
        return ""
    try:
        address = urljoin(page.url, written)
    except ValueError:
        return ""
    is_elsewhere = urldefrag(address).url != urldefrag(page.url).url
    return address if is_elsewhere and terms.lists(address) else ""


def identity_of(page: Page, element: Element, terms: PageTerms) -> dict[str, Any]:
    """Return the description of a page element for a card. The user's consent covers only this element in this state of
    the page.
    """
    above = tuple(page.ancestors(element))
    frame = next((each for each in above if each.role == "iframe"), None)
    form = next((each for each in above if each.role in FORMS), frame)
    name = label_of(page, element)
    if len(name) > _LONGEST_NAME:
        raise NotTaken(f"the name of the {element.role} has {len(name):,} characters, too many for a card")
    said: dict[str, Any] = {"element": f"{name} ({element.role})" if name else element.role}
    text = " ".join(page.text_of(element).split())
    if text not in name:
        said["with the text"] = _cut(text)
    if states := states_of(element):
        said["its state"] = states
    if frame is not None:
        said["frame"] = frame.name or "a document with an unknown address"
    if leads := written_link(page, element):
        said["leads to"] = leads
    if fields := filled_in(page):
        said["filled in"] = fields
    if form is not None and (texts := " | ".join(_texts_in(page, form))):
        said["beside it"] = _cut(texts)
    if numbers := " | ".join(_numbers_on(page, _passing_around(page, element, terms))):
        said["numbers on the page"] = _cut(numbers)
    return {**said, "address of the page": page.url, "as shown": _fingerprint(_around(page, element, terms))}


def _cut(text: str) -> str:
    left = len(text) - _LONGEST_NAME
    return text if left <= 0 else f"{text[:_LONGEST_NAME]}... ({left} more characters)"


def _texts_in(page: Page, form: Element) -> list[str]:
    """Return the texts in a form or dialog that are not the name of a control. One of them may be a field without a
    role.
    """
    return [" ".join(each.text.split()) for each in page.descendants(form) if each.text and each.role not in CONTROLS]


def _numbers_on(page: Page, passing: set[int]) -> Iterator[str]:
    """Yield the texts on a page that contain digits, such as a total. The contents of fields are in `filled in`
    instead.
    """
    shown = (each for each in page.elements if each.role not in FIELDS and each.at not in passing)
    texts = (text for each in shown for text in (each.name, each.text))
    yield from dict.fromkeys(" ".join(text.split()) for text in texts if any(map(str.isdigit, text)))


def _passing_around(page: Page, element: Element, terms: PageTerms) -> set[int]:
    """Return the positions in the parts listed as `passing`, except for the element itself and the elements around and
    inside it.
    """
    passing = {at for at in content_of(page, terms.passing) if not page.is_in_frame(page.elements[at])}
    return passing - {element.at, *(each.at for each in (*page.ancestors(element), *page.descendants(element)))}


def _around(page: Page, element: Element, terms: PageTerms) -> list[Any]:
    """Return an element with everything that its page shows, except the parts that the owner lists as `passing`.

    All other parts count, because any of them may contain a total or an address.
    """
    passing = _passing_around(page, element, terms)
    before = sum(at < element.at for at in passing)
    shown = [each for at, each in enumerate(_shown(page)) if at not in passing]
    return [page.url, element.ref, element.at - before, shown]


def _shown(page: Page) -> list[Any]:
    """Return everything that a page shows, by element. The result is cached for each page."""
    own: Any = page.__dict__
    if "kept_shown" not in own:
        own["kept_shown"] = [
            (
                *(each.depth, each.role, each.name, each.text),
                [state for state in each.states if state[0] not in _PASSING],
                page.properties.get(each.at, {}),
            )
            for each in page.elements
        ]
    return own["kept_shown"]


def identity_of_call(state: PageState, call: Call) -> dict[str, Any]:
    """Return the description of the page for a card, for a call that has no action on a known element.

    While a dialog is open, only the result that announced the dialog shows the page. Raises NotTaken if the page is
    unknown.
    """
    if words := state.words:
        _, *found = words.split(_DIALOG)
        if len(found) != 1 or len(found[0]) > _LONGEST_DIALOG:
            raise NotTaken("the page may have changed, so its content is unknown")
        return {"the browser says": " ".join(found[0].split()), "as shown": _fingerprint(words)}
    page = state.page_for(call)
    try:
        elements = [element for element, _ in named_elements(page, call, state.terms)]
    except NotTaken:
        return {"address of the page": page.url, "as shown": _fingerprint([page.url, _shown(page)])}
    names = [name_of(page, each) for each in elements]
    shown = _fingerprint([_around(page, each, state.terms) for each in elements])
    said = {"acts on": names[0] if len(names) == 1 else names, "filled in": filled_in(page), "as shown": shown}
    return {name: value for name, value in said.items() if value}


def _fingerprint(parts: Any) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
