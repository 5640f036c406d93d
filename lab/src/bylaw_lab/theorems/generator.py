"""Plays one generated conversation from its seed."""

from random import Random

from bylaw.record import Log
from bylaw_lab.theorems.consent_story import consent_story
from bylaw_lab.theorems.limit_story import limit_story
from bylaw_lab.theorems.payout_story import payout_story
from bylaw_lab.theorems.request_story import request_story
from bylaw_lab.theorems.shop_story import shop_story
from bylaw_lab.theorems.truth import True_

STORIES = {
    "consent": (consent_story, 43, 12),
    "requests": (request_story, 10, 12),
    "shop": (shop_story, 31, 65),
    "limits": (limit_story, 8, 100),
    "payouts": (payout_story, 8, 100),
}
"""How often each story is played, and the percentage of its conversations that have a log."""


def conversation(rng: Random, memory: Log, file: Log, name: str, story: str = "") -> list[True_]:
    """Play one conversation and return its true events. `name` is its tenant in both logs."""
    names = list(STORIES)
    chosen = story or rng.choices(names, [STORIES[each][1] for each in names])[0]
    play, _, logged = STORIES[chosen]
    log = rng.choices((None, memory, file), (100 - logged, logged - 1, 1))[0]
    return play(rng, log, name)
