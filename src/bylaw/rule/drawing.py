from collections.abc import Sequence
from html import escape
from textwrap import wrap

from bylaw.rule.automaton import VERDICTS, StateVerdict, WholeAutomaton, automaton
from bylaw.rule.circuit import Circuit
from bylaw.rule.formula import And, Constant, Formula, Not, Or, atoms, show
from bylaw.rule.letters import Alphabet, alphabet
from bylaw.rule.rule import Rule

COLOURS: dict[StateVerdict, tuple[str, str]] = {
    "permanently_satisfied": ("#b7e4c7", "#2d6a4f"),
    "currently_satisfied": ("#e9f7ef", "#2d6a4f"),
    "currently_violated": ("#fff3cd", "#b8860b"),
    "permanently_violated": ("#f8c9c4", "#a4262c"),
}
"""Fill and line colours."""
STATE_LIMIT = 40
_WIDTH = 1020
_LINE = 20
_BOX = 34


def draw_automaton(rule: Rule) -> str:
    own = alphabet(rule.formula)
    table = automaton(own).plain
    title = wrap(rule.text, 130)[:3]
    y = 40 + _LINE * len(title)
    body = [_text(24, 32, rule.name, "bold"), *(_text(24, 34 + _LINE * i, line) for i, line in enumerate(title, 1))]
    if not isinstance(table, WholeAutomaton) or table.states > STATE_LIMIT:
        return _page(rule.name, y + 50, [*body, _text(24, y + 24, "too many states to draw")])
    for column, verdict in enumerate(VERDICTS):
        body.append(_circle(36 + 190 * column, y + 24, 8, COLOURS[verdict]))
        body.append(_text(52 + 190 * column, y + 29, verdict.replace("_", " ")))
    y += 56
    for state in range(table.states):
        edges = _edges(table, state)
        # The start state has a verdict only if an act leads back to it.
        is_start = state == 0 and 0 not in table.after
        colours = ("#ffffff", "#444444") if is_start else COLOURS[_verdict(table, state)]
        body.append(_circle(56, y + 22, 24, colours))
        body.append(f'<text x="56" y="{y + 27}" class="state" text-anchor="middle">{_name(state)}</text>')
        for number, (target, letters) in enumerate(edges.items()):
            condition = condition_of(letters, own)
            meaning = "any act" if condition == Constant(True) else show(condition)
            body.append(_text(104, y + 18 + _LINE * number, f"{meaning}  →  {_name(target)}"))
        y += max(56, _LINE * len(edges) + 14)
    return _page(rule.name, y + 10, body)


def condition_of(letters: Sequence[int], own: Alphabet) -> Formula:
    """Return a short formula that is true for exactly these letters and false for all other possible letters."""
    wanted = set(letters)
    others = [letter for letter in own.possible if letter not in wanted]
    joined: Formula | None = None
    left = sorted(wanted)
    while left:
        mask = (1 << len(own.leaves)) - 1
        for place in range(len(own.leaves)):
            wider = mask & ~(1 << place)
            if not any(other & wider == left[0] & wider for other in others):
                mask = wider
        part = _cube(left[0], mask, own.leaves)
        joined = part if joined is None else Or(joined, part)
        left = [letter for letter in left if letter & mask != left[0] & mask]
    return joined or Constant(True)


def _cube(letter: int, mask: int, leaves: Sequence[Formula]) -> Formula:
    found: Formula | None = None
    for place, leaf in enumerate(leaves):
        if mask >> place & 1:
            part = leaf if letter >> place & 1 else leaf.operand if isinstance(leaf, Not) else Not(leaf)
            found = part if found is None else And(found, part)
    return found or Constant(True)


def _edges(table: WholeAutomaton, state: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for column, letter in enumerate(table.letters):
        found.setdefault(table.after[state * len(table.letters) + column], []).append(letter)
    return found


def _verdict(table: WholeAutomaton, state: int) -> StateVerdict:
    permanent = set(_edges(table, state)) == {state}
    return VERDICTS[(0 if permanent else 1) if table.accepting[state] else (3 if permanent else 2)]


def _name(state: int) -> str:
    return str(state) if state else "start"


def draw_circuit(circuit: Circuit) -> str:
    """Return an SVG of the circuit: its predicates, weighted rules and action. Dashed lines are knowledge rules."""
    predicates, rules = circuit.predicates, circuit.rules
    row, top, left, middle, right = 46, 64, 20, 300, 800
    rows = max(len(predicates), len(rules), 1)
    levels = {name: top + row * (i + (rows - len(predicates)) / 2) for i, name in enumerate(predicates)}
    action_y = top + row * (rows - 1) / 2
    heaviest = max((abs(rule.weight) for rule in rules if not rule.hard), default=1.0) or 1.0
    heads = ((left, "predicates"), (middle, "rules and weights"), (right, f"action, eps {circuit.eps:g}"))
    edges, boxes = [_text(x, 36, text, "bold") for x, text in heads], list[str]()
    for number, rule in enumerate(rules):
        y = top + row * (number + (rows - len(rules)) / 2)
        edges += [_edge(210, levels[name], middle, y, 1.0, rule) for name in atoms(rule.formula) if name in levels]
        if circuit.action in atoms(rule.formula):
            thick = 3.0 if rule.hard else 0.8 + 3.0 * abs(rule.weight) / heaviest
            edges.append(_edge(710, y, right, action_y, thick, rule))
        label = "knowledge" if rule.physical and rule.hard else "veto" if rule.hard else f"{rule.weight:.2f}"
        boxes.append(_box(middle, y, 410, f"{rule.name}: {rule.formula}", "#f4f6f8", kept=80, hint=rule.policy))
        boxes.append(f'<text x="{middle + 402}" y="{y + 22}" text-anchor="end" class="bold">{label}</text>')
    boxes += [_box(left, y, 190, name, "#eef3fb") for name, y in levels.items()]
    boxes.append(_box(right, action_y, 190, circuit.action, "#dfe7f5"))
    return _page(f"Circuit of {circuit.action}", top + rows * row + 20, [*edges, *boxes])


def _box(x: float, y: float, width: float, text: str, colour: str, *, kept: int = 16, hint: str = "") -> str:
    """Draw a box with the text, shortened to fit. A tooltip shows the full text."""
    most = int((width - kept) / 7)
    short = text if len(text) <= most else text[: most - 1] + "…"
    return (
        f"<g><title>{escape(f'{text} {hint}'.strip())}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{_BOX}" rx="6" fill="{colour}" stroke="#5b6b7f"/>'
        f"{_text(x + 8, y + 22, short)}</g>"
    )


def _edge(x1: float, y1: float, x2: float, y2: float, thick: float, rule: Rule) -> str:
    y1, y2, bend = y1 + _BOX / 2, y2 + _BOX / 2, (x1 + x2) / 2
    dash = ' stroke-dasharray="4 3"' if rule.physical else ""
    path = f"M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="#9aa8ba" stroke-width="{thick:.1f}"{dash}/>'


def _circle(x: int, y: int, radius: int, colours: tuple[str, str]) -> str:
    return f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colours[0]}" stroke="{colours[1]}" stroke-width="2"/>'


def _text(x: float, y: float, text: str, kind: str = "note") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(text)}</text>'


def _page(name: str, height: float, body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(name)}"><title>{escape(name)}</title>'
        "<style>text{font-family:system-ui,sans-serif;font-size:13px;fill:#222}.bold{font-weight:600}</style>"
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>{"".join(body)}</svg>\n'
    )
