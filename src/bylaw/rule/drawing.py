"""A rule's automaton as a picture: one circle per state, coloured by its verdict, and below it what each edge means.

States stand on a ring, the start at the left.
"""

from collections.abc import Sequence
from html import escape
from math import cos, hypot, pi, sin
from textwrap import wrap

from bylaw.rule.automaton import VERDICTS, StateVerdict, WholeAutomaton, automaton
from bylaw.rule.formula import And, Constant, Formula, Not, Or, show
from bylaw.rule.letters import Alphabet, alphabet
from bylaw.rule.rule import Rule

COLOURS: dict[StateVerdict, tuple[str, str]] = {
    "permanently_satisfied": ("#b7e4c7", "#2d6a4f"),
    "currently_satisfied": ("#e9f7ef", "#2d6a4f"),
    "currently_violated": ("#fff3cd", "#b8860b"),
    "permanently_violated": ("#f8c9c4", "#a4262c"),
}
"""Fill and line."""
RADIUS = 26
STATE_LIMIT = 40
"""A picture with more states than these helps nobody."""

Point = tuple[int, int]


def draw_automaton(rule: Rule) -> str:
    """The rule's automaton as an SVG document."""
    own = alphabet(rule.formula)
    table = automaton(own).plain
    if not isinstance(table, WholeAutomaton) or table.states > STATE_LIMIT:
        return _page(rule, 760, 120, ['<text x="24" y="104" class="note">too many states to draw</text>'])
    places = _places(table.states)
    centre = sum(x for x, _ in places) / len(places) + 0.1, sum(y for _, y in places) / len(places)
    width = max(760, max(x for x, _ in places) + 130)
    height = max(y for _, y in places) + 120
    body = _legend(height)
    for number, ((source, target), letters) in enumerate(_edges(table).items(), 1):
        condition = condition_of(letters, own)
        meaning = "any act" if condition == Constant(True) else show(condition)
        body.append(_edge(places[source], places[target], centre, str(number)))
        body.append(f'<text x="24" y="{height + 22 + 18 * number}" class="note">{number}  {escape(meaning)}</text>')
    height += 18 * len(_edges(table)) + 40
    body += [_state(table, number, place) for number, place in enumerate(places)]
    x, y = places[0][0] - 64, places[0][1] + 48
    into = _towards(places[0], (x, y), RADIUS + 4)
    body.append(f'<path d="M {x} {y} L {into[0]:.1f} {into[1]:.1f}" class="edge" marker-end="url(#tip)"/>')
    return _page(rule, width, height, body)


def condition_of(letters: Sequence[int], own: Alphabet) -> Formula:
    """A short formula over the leaves that, of all possible letters, holds exactly at these."""
    wanted = set(letters)
    others = [letter for letter in own.possible if letter not in wanted]
    if not others:
        return Constant(True)
    parts: list[Formula] = []
    left = sorted(wanted)
    while left:
        mask = (1 << len(own.leaves)) - 1
        for place in range(len(own.leaves)):
            wider = mask & ~(1 << place)
            if not any(other & wider == left[0] & wider for other in others):
                mask = wider
        parts.append(_cube(left[0], mask, own.leaves))
        left = [letter for letter in left if letter & mask != left[0] & mask]
    joined = parts[0]
    for part in parts[1:]:
        joined = Or(joined, part)
    return joined


def _cube(letter: int, mask: int, leaves: Sequence[Formula]) -> Formula:
    found: Formula | None = None
    for place, leaf in enumerate(leaves):
        if mask >> place & 1:
            part = leaf if letter >> place & 1 else leaf.operand if isinstance(leaf, Not) else Not(leaf)
            found = part if found is None else And(found, part)
    return Constant(True) if found is None else found


def _edges(table: WholeAutomaton) -> dict[tuple[int, int], list[int]]:
    """From which state to which, with the letters that lead there."""
    found: dict[tuple[int, int], list[int]] = {}
    for place, target in enumerate(table.after):
        state, column = divmod(place, len(table.letters))
        found.setdefault((state, target), []).append(table.letters[column])
    return found


def _places(count: int) -> list[Point]:
    """The start at the left, the others clockwise."""
    radius = max(130, 48 * count)
    angles = [pi + 2 * pi * number / count for number in range(count)]
    highest = min(map(sin, angles))
    return [(round(140 + radius * (1 + cos(angle))), round(190 + radius * (sin(angle) - highest))) for angle in angles]


def _verdict(table: WholeAutomaton, state: int) -> StateVerdict:
    count = len(table.letters)
    permanent = all(target == state for target in table.after[state * count : (state + 1) * count])
    return VERDICTS[(0 if permanent else 1) if table.accepting[state] else (3 if permanent else 2)]


def _state(table: WholeAutomaton, number: int, place: Point) -> str:
    x, y = place
    # Nothing has been asked before the first act, so the start has a verdict only where acts lead back to it.
    fill, line = COLOURS[_verdict(table, number)] if number or 0 in table.after else ("#ffffff", "#444444")
    name = "start" if number == 0 else str(number)
    return (
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{fill}" stroke="{line}" stroke-width="2"/>'
        f'<text x="{x}" y="{y + 5}" class="state">{name}</text>'
    )


def _edge(source: Point, target: Point, centre: tuple[float, float], label: str) -> str:
    """A bent arrow with its number; from a state to itself, a loop away from the centre."""
    (x1, y1), (x2, y2) = source, target
    if source == target:
        out, side = _towards(source, centre, -84), _towards(source, centre, -22)
        turned = (y1 - side[1]) * 0.65, (side[0] - x1) * 0.65
        start = f"M {side[0] + turned[0]:.1f} {side[1] + turned[1]:.1f}"
        bend = f"C {out[0] + 2.2 * turned[0]:.1f} {out[1] + 2.2 * turned[1]:.1f}"
        back = f"{out[0] - 2.2 * turned[0]:.1f} {out[1] - 2.2 * turned[1]:.1f}"
        path = f"{start} {bend}, {back}, {side[0] - turned[0]:.1f} {side[1] - turned[1]:.1f}"
        at = _towards(source, centre, -76)
    else:
        length = hypot(x2 - x1, y2 - y1)
        middle = (x1 + x2) / 2 + (y2 - y1) / length * 34, (y1 + y2) / 2 - (x2 - x1) / length * 34
        start, end = _towards(source, middle, RADIUS), _towards(target, middle, RADIUS + 3)
        path = f"M {start[0]:.1f} {start[1]:.1f} Q {middle[0]:.1f} {middle[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
        at = (start[0] + 2 * middle[0] + end[0]) / 4, (start[1] + 2 * middle[1] + end[1]) / 4
    return (
        f'<path d="{path}" class="edge" marker-end="url(#tip)"/>'
        f'<text x="{at[0]:.1f}" y="{at[1] + 4:.1f}" class="label">{label}</text>'
    )


def _towards(place: Point, other: tuple[float, float], by: float) -> tuple[float, float]:
    away = by / hypot(other[0] - place[0], other[1] - place[1])
    return place[0] + (other[0] - place[0]) * away, place[1] + (other[1] - place[1]) * away


def _legend(top: int) -> list[str]:
    parts: list[str] = []
    for number, verdict in enumerate(VERDICTS):
        fill, line = COLOURS[verdict]
        x = 36 + number * 180
        parts.append(
            f'<circle cx="{x}" cy="{top}" r="8" fill="{fill}" stroke="{line}" stroke-width="2"/>'
            f'<text x="{x + 15}" y="{top + 4}" class="note">{verdict.replace("_", " ")}</text>'
        )
    return parts


def _page(rule: Rule, width: int, height: int, body: Sequence[str]) -> str:
    title = wrap(rule.text, max(40, width // 8))
    lines = "".join(
        f'<text x="24" y="{56 + 18 * place}" class="note">{escape(line)}</text>' for place, line in enumerate(title[:3])
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(rule.name)}">'
        "<style>text{font-family:ui-sans-serif,system-ui,sans-serif;fill:#222}"
        ".state{font-size:14px;text-anchor:middle}.note{font-size:13px}.title{font-size:17px;font-weight:600}"
        ".label{font-size:12px;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:5px}"
        ".edge{fill:none;stroke:#555;stroke-width:1.4}</style>"
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M 0 0 L 10 5 L 0 10 z" fill="#555"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<text x="24" y="32" class="title">{escape(rule.name)}</text>{lines}{"".join(body)}</svg>'
    )
