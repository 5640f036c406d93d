"""The slots whose answers are being written, each at its own pace."""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from bylaw_lab.training.decoder import Decoder

BLOCK = 16
"""Answers are looked at after this many steps."""


class Written(NamedTuple):
    """What one slot wrote in a block of steps."""

    tokens: list[int]
    chances: list[float]
    """The log-probability of each token as it was drawn; empty where the likeliest is taken."""
    is_over: bool


class Floor:
    """Writes on in every slot that has joined, until its answer is at its end."""

    def __init__(self, decoder: Decoder, ends: Sequence[int], longest: int, temperature: float, seed: int) -> None:
        self.decoder, self.longest, self.temperature = decoder, longest, temperature
        self.ends = torch.tensor(list(ends), device=decoder.device)
        self.random = torch.Generator(device=decoder.device).manual_seed(seed)
        self.resize(0)

    def resize(self, count: int) -> None:
        """From now on the first `count` slots take part; all of them must join anew."""
        self.tokens = torch.zeros(count, dtype=torch.long, device=self.decoder.device)
        # Slots that take no part write where no answer ever reaches.
        self.places = torch.full_like(self.tokens, self.decoder.room - 1)
        self.left = torch.zeros_like(self.tokens)
        self.over = torch.ones(count, dtype=torch.bool, device=self.decoder.device)

    def join(self, own: Mapping[int, tuple[Sequence[int], int]]) -> None:
        """Slots take part, by slot with their tokens and where in these the answer begins."""
        if not own:
            return
        slots = torch.tensor(list(own), device=self.tokens.device)
        given = [(tokens[-1], len(tokens) - 1, self.longest - (len(tokens) - begun)) for tokens, begun in own.values()]
        self.tokens[slots], self.places[slots], self.left[slots] = torch.tensor(given, device=slots.device).unbind(1)
        self.over[slots] = False

    def steps(self, reach: int) -> list[Written]:
        """A block of steps in all slots; `reach` tokens has the longest of them now."""
        written: list[torch.Tensor] = []
        chances: list[torch.Tensor] = []
        span = self.decoder.span(reach + BLOCK)
        for _ in range(BLOCK):
            following, chance = draw(self.decoder.step(self.tokens, self.places, span), self.temperature, self.random)
            written.append(torch.where(self.over, -1, following))
            chances.append(chance)
            self.left = torch.where(self.over, self.left, self.left - 1)
            self.tokens = torch.where(self.over, self.tokens, following)
            self.places = torch.where(self.over, self.places, self.places + 1)
            self.over = self.over | torch.isin(following, self.ends) | (self.left <= 0)
        tokens = torch.cat([torch.stack(written, 1), self.over[:, None].long()], 1).tolist()
        likely = torch.stack(chances, 1).tolist() if self.temperature else [[]] * len(tokens)
        found: list[Written] = []
        for row, logs in zip(tokens, likely, strict=True):
            size = sum(token >= 0 for token in row[:-1])
            found.append(Written(row[:size], logs[:size], bool(row[-1])))
        return found


def draw(
    logits: torch.Tensor, temperature: float, random: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The next tokens, drawn by their chances or the likeliest at temperature 0; and the logs of their chances."""
    if temperature == 0:
        found = logits.argmax(-1)
        return found, torch.zeros_like(found, dtype=torch.float32)
    logs = (logits.float() / temperature).log_softmax(-1)
    noise = torch.empty_like(logs).exponential_(generator=random)
    found = logs.exp().div_(noise).argmax(-1)
    return found, logs.gather(-1, found[:, None])[:, 0]
