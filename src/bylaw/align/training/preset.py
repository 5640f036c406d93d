"""Settings for training: `paper` as in PA3 (tables 9 and 10), `small` for one GPU, and `tiny` for a CPU.

The paper does not use DPO, so `paper` shares the DPO settings of `small`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError

PresetName = Literal["paper", "small", "tiny"]
Stage = Literal[1, 2, 3, "dpo"]


class _Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings for every stage. An example is a conversation or a pair or, in stage 3, an answer."""

    learning_rate: float
    least_learning_rate: float
    epochs: float
    batch: int
    """The number of examples per step, on all devices together."""
    at_once: int
    """The number of examples that each device processes at once."""
    recompute: bool = False
    """Whether to compute activations twice to save memory."""
    warmup: float = 0.05
    gradient_norm: float = 1.0


class Supervised(_Settings, frozen=True):
    """Settings for stages 1 and 2."""

    longest: int
    """The maximum length in tokens. Longer conversations are counted and left out."""


class Reinforced(_Settings, frozen=True):
    """Settings for stage 3 (GRPO)."""

    longest_answer: int
    """The maximum length of an answer, in tokens."""
    rollout: int | None = None
    """The number of answers to generate at once, on all devices together. None means the answers of one step."""
    beta: float = 0.1
    generations: int = 4
    iterations: int = 1
    temperature: float = 1.0
    scale: Literal["group", "batch", "none"] = "group"
    """The spread by which each reward is divided, after the mean for its prompt is subtracted.

    `group`, as in the paper, takes the spread of the answers to one prompt, so that small differences weigh as much as
    large ones. `batch` takes the spread of the whole batch.
    """


class Preferred(_Settings, frozen=True):
    """Settings for DPO."""

    beta: float = 0.1
    imitation: float = 1.0
    """The weight of the supervised loss on the chosen answers, which keeps them likely."""


Settings = Supervised | Reinforced | Preferred
# 5e-6 made a model much worse; smaller rates have not been tried.
DPO = Preferred(learning_rate=1e-6, least_learning_rate=1e-7, epochs=2, batch=16, at_once=4)


PRESETS: dict[PresetName, tuple[Supervised, Reinforced, Preferred]] = {
    "paper": (
        Supervised(
            learning_rate=1e-5, least_learning_rate=1e-6, epochs=15, batch=64, at_once=1, longest=32768, recompute=True
        ),
        Reinforced(
            learning_rate=1e-6,
            least_learning_rate=1e-7,
            epochs=20,
            batch=512,
            at_once=4,
            longest_answer=2048,
            recompute=True,
        ),
        DPO,
    ),
    "small": (
        Supervised(learning_rate=5e-5, least_learning_rate=5e-6, epochs=2, batch=32, at_once=8, longest=12288),
        # Larger learning rates made the model worse.
        Reinforced(learning_rate=2e-6, least_learning_rate=2e-7, epochs=3, batch=256, at_once=128, longest_answer=224),
        DPO,
    ),
    "tiny": (
        Supervised(learning_rate=1e-3, least_learning_rate=1e-4, epochs=1, batch=4, at_once=4, longest=12288),
        Reinforced(learning_rate=1e-4, least_learning_rate=1e-5, epochs=1, batch=8, at_once=8, longest_answer=16),
        Preferred(learning_rate=1e-3, least_learning_rate=1e-4, epochs=1, batch=2, at_once=2),
    ),
}


def settings_of(preset: PresetName, stage: Stage, changes: Mapping[str, Any]) -> Settings:
    chosen = PRESETS[preset][{3: 1, "dpo": 2}.get(stage, 0)]
    try:
        return msgspec.convert({**msgspec.to_builtins(chosen), **changes}, type(chosen))
    except msgspec.ValidationError as error:
        names = ", ".join(field.name for field in msgspec.structs.fields(chosen))
        why = str(error)
        raise UsageError(f"no such setting: {why[:1].lower()}{why[1:]}", hint=f"stage {stage} has {names}") from None
