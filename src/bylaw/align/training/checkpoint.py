"""A checkpoint on disk as an agent that plays tasks."""
# pyright: basic, reportMissingImports=false

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from bylaw.align.episode import Episode
from bylaw.align.training.dialect import Dialect

LONGEST = 256
"""Tokens of one output."""
AT_ONCE = 64
"""Prompts that are computed together."""


class Checkpoint:
    """Answers greedily."""

    def __init__(self, model: Any, dialect: Dialect, *, longest: int = LONGEST) -> None:
        self.model = model
        self.dialect = dialect
        self.longest = longest

    @torch.no_grad()
    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        """The next output in each episode."""
        prompts = [self.dialect.prompt(episode.messages) for episode in episodes]
        answers = [""] * len(prompts)
        for places in batches(prompts):
            ids, mask = self._padded([prompts[place] for place in places])
            options = {"max_new_tokens": self.longest, "do_sample": False, "eos_token_id": self.dialect.end}
            found = self.model.generate(ids, attention_mask=mask, pad_token_id=self.dialect.end, **options)
            for place, tokens in zip(places, found[:, ids.shape[1] :].tolist(), strict=True):
                size = tokens.index(self.dialect.end) if self.dialect.end in tokens else len(tokens)
                answers[place] = self.dialect.text(tokens[:size])
        return answers

    def _padded(self, prompts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Prompts of one length, filled up on the left, and the mask of their own tokens."""
        longest = max(map(len, prompts))
        ids = [[self.dialect.end] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
        mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        device = self.model.device
        return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def batches(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """The places of the prompts, those of like length together."""
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    return [order[start : start + AT_ONCE] for start in range(0, len(order), AT_ONCE)]


def open_checkpoint(folder: Path) -> Checkpoint:
    """The model in `folder`, on a GPU if there is one."""
    cuda = torch.cuda.is_available()
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16 if cuda else torch.float32)
    dialect = Dialect(AutoTokenizer.from_pretrained(folder))
    return Checkpoint(model.to("cuda") if cuda else model, dialect)
