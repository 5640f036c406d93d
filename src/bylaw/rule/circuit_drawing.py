"""A circuit as an SVG picture: predicates, rules with their weights, the action."""

from html import escape

from bylaw.rule.circuit import Circuit
from bylaw.rule.formula import atoms
from bylaw.rule.rule import Rule

_ROW = 46
_TOP = 64
_LEFT, _MIDDLE, _RIGHT = 20, 300, 800
_NARROW, _WIDE, _HEIGHT = 190, 410, 34


def draw_circuit(circuit: Circuit) -> str:
    """The circuit as SVG."""
    predicates = circuit.predicates
    rules = circuit.rules
    rows = max(len(predicates), len(rules), 1)
    width, height = _RIGHT + _NARROW + 20, _TOP + rows * _ROW + 20
    left = {name: _TOP + _ROW * (i + (rows - len(predicates)) / 2) for i, name in enumerate(predicates)}
    middle = [_TOP + _ROW * (i + (rows - len(rules)) / 2) for i in range(len(rules))]
    action_y = _TOP + _ROW * (rows - 1) / 2
    heaviest = max((abs(rule.weight) for rule in rules if not rule.hard), default=1.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>Circuit of {escape(circuit.action)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _heading(_LEFT, "predicates"),
        _heading(_MIDDLE, "rules and weights"),
        _heading(_RIGHT, f"action, eps {circuit.eps:g}"),
    ]
    for rule, y in zip(rules, middle, strict=True):
        near = [name for name in atoms(rule.formula) if name in left]
        parts += [_edge(_LEFT + _NARROW, left[name], _MIDDLE, y, 1.0, rule.physical) for name in near]
        if circuit.action in atoms(rule.formula):
            thick = 3.0 if rule.hard else 0.8 + 3.0 * abs(rule.weight) / heaviest
            parts.append(_edge(_MIDDLE + _WIDE, y, _RIGHT, action_y, thick, rule.physical))
    parts += [_box(_LEFT, y, _NARROW, name, "#eef3fb") for name, y in left.items()]
    parts += [_rule(rule, y) for rule, y in zip(rules, middle, strict=True)]
    parts.append(_box(_RIGHT, action_y, _NARROW, circuit.action, "#dfe7f5"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _rule(rule: Rule, y: float) -> str:
    label = "knowledge" if rule.physical and rule.hard else "veto" if rule.hard else f"{rule.weight:.2f}"
    box = _box(_MIDDLE, y, _WIDE, f"{rule.name}: {rule.formula}", "#f4f6f8", room=_WIDE - 80, hint=rule.policy)
    return f'{box}<text x="{_MIDDLE + _WIDE - 8}" y="{y + 22}" text-anchor="end" font-weight="600">{label}</text>'


def _box(x: float, y: float, width: float, text: str, colour: str, *, room: float | None = None, hint: str = "") -> str:
    most = int((room or width - 16) / 7)
    short = text if len(text) <= most else text[: most - 1] + "…"
    title = escape(f"{text}\n{hint}" if hint else text)
    return (
        f"<g><title>{title}</title>"
        f'<rect x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" rx="6" fill="{colour}" stroke="#5b6b7f"/>'
        f'<text x="{x + 8}" y="{y + 22}">{escape(short)}</text></g>'
    )


def _edge(x1: float, y1: float, x2: float, y2: float, thick: float, dashed: bool) -> str:
    y1, y2, bend = y1 + _HEIGHT / 2, y2 + _HEIGHT / 2, (x1 + x2) / 2
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    path = f"M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="#9aa8ba" stroke-width="{thick:.1f}"{dash}/>'


def _heading(x: float, text: str) -> str:
    return f'<text x="{x}" y="36" fill="#5b6b7f" font-weight="600">{escape(text)}</text>'
