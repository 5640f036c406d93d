"""A handbook of many articles, made by seed: some sentences stand in several of them, some articles cite another."""

import random

WORDS = (
    *("refund", "exchange", "parcel", "voucher", "invoice", "gift", "delivery", "address", "warranty", "repair"),
    *("discount", "booking", "deposit", "account", "subscription", "return", "damage", "pickup", "courier", "customs"),
)
SHARED = (
    "Ask for the order number before you look anything up.",
    "A manager must approve it.",
    "Say what you are about to do and wait for a yes.",
)


def letters(number: int) -> str:
    """An article's short name, without figures: `aai` for 8."""
    return "".join(chr(ord("a") + number // 26**place % 26) for place in (2, 1, 0))


def articles(count: int = 700, *, seed: int = 1) -> dict[str, str]:
    """The texts of a help centre by file name. Every tenth article cites the one before it."""
    rng = random.Random(seed)
    made: dict[str, str] = {}
    for number in range(count):
        one, other = rng.sample(WORDS, 2)
        days, limit = rng.randint(3, 90), rng.randint(20, 900)
        lines = [
            f"# {one.title()} and {other}, {letters(number)}",
            "",
            f"A {one} of class {number} is granted within {days} days after the {other} of class {number}.",
            f"It is worth at most {limit}.00, whatever the {other} of class {number} cost.",
            rng.choice(SHARED),
            "",
            "## How it works",
            "",
        ]
        for part in range(rng.randint(8, 14)):
            a, b = rng.sample(WORDS, 2)
            lines.append(
                f"- Case {part} of article {number}: the {a} is kept until the {b} of class {number} is closed."
            )
        if number % 10 == 9:
            lines += ["", f"What [the article before]({letters(number - 1)}.md) says holds for class {number} as well."]
        made[f"help/{letters(number)}.md"] = "\n".join(lines) + "\n"
    return made


def rule_of(number: int, text: str) -> str:
    """The sentence of an article that its guard holds calls to."""
    return next(line for line in text.split("\n") if line.startswith("A ") and f"class {number} is granted" in line)


def pack_files(count: int = 700, *, seed: int = 1) -> dict[str, str]:
    """A pack over such a handbook: one guard for each article, with both its cases; all other sentences are known."""
    texts = articles(count, seed=seed)
    files = {
        **texts,
        "pack.yaml": 'format: 1\nname: help\nversion: "1"\ndocument: help\n',
        "tools.yaml": "tools:\n  grant: {effect: write, parameters: {kind: integer, days: integer}}\n",
    }
    for number, text in enumerate(texts.values()):
        days = rule_of(number, text).split(" within ")[1].split()[0]
        files[f"guards/a{number:03d}.py"] = (
            f'def within_days_{number:03d}(call: grant, facts):\n    """{rule_of(number, text)}"""\n'
            f"    if call.kind == {number} and call.days > {days}:\n"
            f'        return deny("more than {days} days")\n    return permit()\n'
        )
        files[f"cases/a{number:03d}.yaml"] = "".join(
            f"- {{policy: within-days-{number:03d}, call: {{grant: {{kind: {number}, days: {more}}}}}, want: {want}}}\n"
            for more, want in ((days, "permit"), (int(days) + 1, "deny"))
        )
    return files
