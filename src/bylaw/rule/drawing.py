"""A rule's automaton as a picture: one circle per state, coloured by its verdict.

A few states stand in columns from left to right; more of them stand on a ring, and where there are many edges their
conditions are listed below and numbered in the picture.
"""

from collections.abc import Sequence
from html import escape
from math import cos, hypot, pi, sin
from textwrap import wrap

from msgspec import Struct

from bylaw.rule.automaton import VERDICTS, StateVerdict, Table, automaton
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
COLUMN = 300
ROW = 190
LABEL_LIMIT = 9
"""With more edges than these, conditions are listed below."""
STATE_LIMIT = 40
"""A picture with more states than these helps nobody."""


class _Edge(Struct, frozen=True):
    source: int
    target: int
    label: tuple[str, ...]


def draw_automaton(rule: Rule) -> str:
    """The rule's automaton as an SVG document."""
    own = alphabet(rule.formula)
    table = automaton(own).plain
    if not isinstance(table, Table) or table.states > STATE_LIMIT:
        return _page(rule, 760, 40, ['<text x="24" y="84" class="note">too many states to draw</text>'])
    edges = _edges(own, table)
    places = _columns(table) if table.states <= 3 else _ring(table.states)
    width = max(760, max(x for x, _ in places) + 190)
    height = max(y for _, y in places) + 110
    body = _legend(height)
    if len(edges) > LABEL_LIMIT:
        listed = [f"{number}  {' '.join(edge.label)}" for number, edge in enumerate(edges, 1)]
        body += [
            f'<text x="24" y="{height + 40 + 18 * row}" class="note">{escape(line)}</text>'
            for row, line in enumerate(listed)
        ]
        height += 18 * len(listed) + 10
        edges = [_Edge(edge.source, edge.target, (str(number),)) for number, edge in enumerate(edges, 1)]
    middle = (sum(x for x, _ in places) / len(places), sum(y for _, y in places) / len(places))
    body += [_edge(edge, places, middle) for edge in edges]
    body += [_state(table, number, place) for number, place in enumerate(places)]
    body.append(_arrow_in(places[0]))
    return _page(rule, width, height + 40, body)


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


def _edges(own: Alphabet, table: Table) -> list[_Edge]:
    letters: dict[tuple[int, int], list[int]] = {}
    for state in range(table.states):
        for column, letter in enumerate(table.letters):
            target = table.after[state * len(table.letters) + column]
            letters.setdefault((state, target), []).append(letter)
    found: list[_Edge] = []
    for (source, target), given in letters.items():
        condition = condition_of(given, own)
        text = "any act" if condition == Constant(True) else show(condition)
        found.append(_Edge(source, target, tuple(wrap(text, 26))))
    return found


def _columns(table: Table) -> list[tuple[int, int]]:
    """A column per distance from the start, a row per state of it."""
    columns = [0] + [-1] * (table.states - 1)
    order = [0]
    count = len(table.letters)
    for state in order:
        for target in table.after[state * count : (state + 1) * count]:
            if columns[target] < 0:
                columns[target] = columns[state] + 1
                order.append(target)
    rows: dict[int, int] = {}
    tallest = max(columns.count(column) for column in columns)
    places: dict[int, tuple[int, int]] = {}
    for state in order:
        column = columns[state]
        row = rows.get(column, 0)
        rows[column] = row + 1
        middle = (tallest - columns.count(column)) * ROW // 2
        # Every other column is a little lower, so that an edge that skips one does not run through it.
        places[state] = (110 + column * COLUMN, 200 + middle + row * ROW + 36 * (column % 2))
    return [places[state] for state in range(table.states)]


def _ring(count: int) -> list[tuple[int, int]]:
    """The start at the left, the others clockwise."""
    radius = max(170, 48 * count)
    angles = [pi + 2 * pi * number / count for number in range(count)]
    return [(round(130 + radius * (1 + cos(angle))), round(190 + radius * (1 + sin(angle)))) for angle in angles]


def _verdict(table: Table, state: int) -> StateVerdict:
    count = len(table.letters)
    permanent = all(target == state for target in table.after[state * count : (state + 1) * count])
    return VERDICTS[(0 if permanent else 1) if table.accepting[state] else (3 if permanent else 2)]


def _state(table: Table, number: int, place: tuple[int, int]) -> str:
    x, y = place
    # Nothing has been asked before the first act, so the start has a verdict only where acts lead back to it.
    fill, line = COLOURS[_verdict(table, number)] if number or 0 in table.after else ("#ffffff", "#444444")
    name = "start" if number == 0 else str(number)
    return (
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{fill}" stroke="{line}" stroke-width="2"/>'
        f'<text x="{x}" y="{y + 5}" class="state">{name}</text>'
    )


def _edge(edge: _Edge, places: Sequence[tuple[int, int]], centre: tuple[float, float]) -> str:
    x1, y1 = places[edge.source]
    x2, y2 = places[edge.target]
    if edge.source == edge.target:
        return _loop(x1, y1, edge.label, centre if len(places) > 3 else (x1, y1 + 1))
    length = hypot(x2 - x1, y2 - y1)
    across, along = (x2 - x1) / length, (y2 - y1) / length
    bend = 34
    middle_x, middle_y = (x1 + x2) / 2 + along * bend, (y1 + y2) / 2 - across * bend
    start = _towards(x1, y1, middle_x, middle_y, RADIUS)
    end = _towards(x2, y2, middle_x, middle_y, RADIUS + 3)
    path = f"M {start[0]:.1f} {start[1]:.1f} Q {middle_x:.1f} {middle_y:.1f} {end[0]:.1f} {end[1]:.1f}"
    label_x = (start[0] + 2 * middle_x + end[0]) / 4
    label_y = (start[1] + 2 * middle_y + end[1]) / 4
    return _curve(path) + _label(label_x, label_y - 7 * (len(edge.label) - 1), edge.label)


def _loop(x: float, y: float, label: Sequence[str], centre: tuple[float, float]) -> str:
    """From a state to itself, away from the centre."""
    out_x, out_y = x - centre[0], y - centre[1]
    length = hypot(out_x, out_y)
    out_x, out_y = out_x / length, out_y / length
    side_x, side_y = -out_y, out_x

    def at(out: float, side: float) -> str:
        return f"{x + out * out_x + side * side_x:.1f} {y + out * out_y + side * side_y:.1f}"

    path = f"M {at(22, -14)} C {at(84, -46)}, {at(84, 46)}, {at(24, 15)}"
    far = 80 if len(label) == 1 else 74 + 7 * len(label)
    top = y + far * out_y - 7.5 * (len(label) - 1)
    return _curve(path) + _label(x + far * out_x, top, label)


def _towards(x: float, y: float, to_x: float, to_y: float, by: float) -> tuple[float, float]:
    length = hypot(to_x - x, to_y - y)
    return x + (to_x - x) / length * by, y + (to_y - y) / length * by


def _curve(path: str) -> str:
    return f'<path d="{path}" class="edge" marker-end="url(#tip)"/>'


def _label(x: float, y: float, lines: Sequence[str]) -> str:
    spans = "".join(
        f'<tspan x="{x:.1f}" dy="{0 if first else 15}">{escape(line)}</tspan>'
        for line, first in zip(lines, [True] + [False] * len(lines), strict=False)
    )
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" class="label">{spans}</text>'


def _arrow_in(place: tuple[int, int]) -> str:
    x, y = place
    return f'<path d="M {x - 72} {y} L {x - RADIUS - 4} {y}" class="edge" marker-end="url(#tip)"/>'


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
