"""The plots of the page of results of the alignment experiment."""

from pathlib import Path

from align_logs import FIFTH, FOURTH, LOGS, SEEDS, THIRD, lines_of, named, training

COLOURS = ("#2f6fb0", "#c2571a", "#2b8a57", "#8a4fb0", "#777777", "#111111")


def chart(path: Path, title: str, lines: dict[str, list[tuple[float, float]]], low: float, high: float) -> None:
    """A line chart as SVG."""
    wide, tall, left, top = 640, 260, 46, 34
    last = max(x for points in lines.values() for x, _ in points)

    def at(x: float, y: float) -> str:
        part = (min(max(y, low), high) - low) / (high - low)
        return f"{left + (wide - left - 120) * x / last:.1f},{top + (tall - top - 30) * (1 - part):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" font-family="sans-serif" font-size="11">',
        f'<rect width="{wide}" height="{tall}" fill="#ffffff"/>',
        f'<text x="{left}" y="18" font-size="13" fill="#222222">{title}</text>',
    ]
    for step in range(5):
        value = low + (high - low) * step / 4
        x, y = at(0, value).split(",")
        end = at(last, value).split(",")[0]
        parts.append(f'<line x1="{x}" y1="{y}" x2="{end}" y2="{y}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4}" text-anchor="end" fill="#555555">{value:.4g}</text>')
    parts.append(f'<text x="{left}" y="{tall - 8}" fill="#555555">step 1</text>')
    parts.append(
        f'<text x="{at(last, low).split(",")[0]}" y="{tall - 8}" text-anchor="end" fill="#555555">{last:.0f}</text>'
    )
    for place, (name, points) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        path_of = " ".join(at(x, y) for x, y in points)
        parts.append(f'<polyline points="{path_of}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<text x="{wide - 112}" y="{top + 14 + 16 * place}" fill="{colour}">{name}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def curves() -> None:
    supervised = {
        f"run {run}, {named(kind, seed)}": [(line["step"], line["loss"]) for line in training(kind, (run, seed))]
        for kind, run, seed in (("answers", 1, 1), ("stage1", 2, 3), ("stage2", 2, 3))
    }
    chart(LOGS / "loss.svg", "Loss of the supervised arms, by step", supervised, 0.0, 0.4)
    reinforced = {"run 1, seed 2": training("stage3", (1, 2)), "run 2, seed 3": training("stage3", (2, 3))}
    reinforced |= {f"run 3, seed {seed}": lines_of(THIRD / f"stage3-{seed}.train.jsonl") for seed in SEEDS}
    reinforced["run 4"] = lines_of(FOURTH / "stage3_alone-1.train.jsonl")
    fifth = {f"seed {seed}": training("stage3", (5, seed)) for seed in SEEDS}
    reward, drift = "mean reward of the answers tried, by step", "how far it went from stage 2 (KL a token), by step"
    for folder, arms, rewards, most in ((LOGS, reinforced, (3.0, 5.0), 0.04), (FIFTH, fifth, (4.5, 4.9), 0.002)):
        for name, field, title, low, high in (
            ("reward", "reward", reward, *rewards),
            ("drift", "kl", drift, 0.0, most),
        ):
            lines = {
                said: [(line["step"], line[field]) for line in found if field in line] for said, found in arms.items()
            }
            chart(folder / f"{name}.svg", f"Stage 3: {title}", lines, low, high)
