"""Determines which calls on a page change nothing, and what the user's consent to other calls covers: one element with
its frame and form, and the page as shown.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urldefrag, urljoin

from bylaw.actions.action import FIELDS, PageTerms
from bylaw.actions.page_state import (
    CONTROLS,
    FORMS,
    PageState,
    Targeted,
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
_PASSING_PARTS = frozenset(("banner", "contentinfo", "navigation"))
"""Parts of a page that rarely affect other elements."""
_DIGITS = 20
"""The length of a fingerprint: 80 bits."""
_LONGEST_NAME = 1500
"""The maximum length of the name of an element on a card."""
_DIALOG = "### Modal state"
_LONGEST_DIALOG = 1000


def only_types(page: Page, target: Targeted, arguments: Mapping[str, Any], terms: PageTerms) -> bool:
    """Whether a call only types into a listed field on a listed page.

    A click or a key may have any effect, because snapshots show neither the scripts of a page nor elements that cover
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
    """Return the listed address to which a link leads, or an empty string for other elements.

    Only opening the address is a look-up, so a page cannot gain anything by a false address.
    """
    if element.role != "link" or page.is_in_frame(element) or not (written := written_link(page, element)):
        return ""
    try:
        address = urljoin(page.url, written)
    except ValueError:
        return ""
    is_elsewhere = urldefrag(address).url != urldefrag(page.url).url
    return address if is_elsewhere and terms.lists(address) else ""


def identity_of(page: Page, element: Element) -> dict[str, Any]:
    """Return the description of a page element for a card. A yes is not valid for another element or page state."""
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
    return {**said, "address of the page": page.url, "as shown": _fingerprint(_around(page, element))}


def _cut(text: str) -> str:
    left = len(text) - _LONGEST_NAME
    return text if left <= 0 else f"{text[:_LONGEST_NAME]}... ({left} more characters)"


def _texts_in(page: Page, form: Element) -> list[str]:
    """Return the texts in a form or dialog that no control names. One of them may be a field without a role."""
    return [" ".join(each.text.split()) for each in page.descendants(form) if each.text and each.role not in CONTROLS]


def _around(page: Page, element: Element) -> list[Any]:
    """Return an element and everything on the page that matters for the user's decision. Headers, footers and menus
    around other elements are left out, because a clock in them may change at any time.
    """
    above = {element.at, *(each.at for each in page.ancestors(element))}
    named = [(each.role, each.name) for each in page.ancestors(element) if each.name]
    is_whole = page.is_in_frame(element)
    shown: list[Any] = []
    left, place = -1, 0
    for at, each in enumerate(_shown(page)):
        if at <= left:
            continue
        if page.elements[at].role in _PASSING_PARTS and at not in above and not is_whole:
            left = at + len(page.descendants(page.elements[at]))
            continue
        if at == element.at:
            place = len(shown)
        shown.append(each)
    return [page.url, element.ref, place, named, shown]


def _shown(page: Page) -> list[Any]:
    """Return everything that a page shows, by element. Cached per page."""
    own: Any = page.__dict__
    if "kept_shown" not in own:
        own["kept_shown"] = [
            (each.depth, each.role, each.name, each.text, [state for state in each.states if state[0] not in _PASSING])
            for each in page.elements
        ]
    return own["kept_shown"]


def identity_of_call(state: PageState, call: Call) -> dict[str, Any]:
    """Return the description of the page for a card, for a call without an action on a known element.

    While a dialog is open, only the result that announced it shows the page. Raises NotTaken if the page is unknown.
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
    shown = _fingerprint([_around(page, each) for each in elements])
    said = {"acts on": names[0] if len(names) == 1 else names, "filled in": filled_in(page), "as shown": shown}
    return {name: value for name, value in said.items() if value}


def _fingerprint(parts: Any) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
