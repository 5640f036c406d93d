"""The conversations of a framework that hands over the whole history each time: one let go is simply read again."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from bylaw.integrations.follower import Follower
from bylaw.integrations.speaking import Context, Vouched, is_same, session_of, vouched
from bylaw.shield import Shield
from bylaw.shield.linking import linked

MOST = 1_000
"""Conversations kept at once."""


class Followers:
    """Followers by conversation."""

    def __init__(self, shield: Shield, context: Context = None, *, most: int = MOST) -> None:
        self._shield = shield
        self._context = context
        self._most = most
        self._kept: OrderedDict[str, Follower] = OrderedDict()
        self._speaking: dict[str, Follower] = {}
        """By the key of a history, whose conversation had the word last."""
        self._lock = threading.Lock()

    def get(self, key: str, messages: list[Any], otherwise: Callable[[list[Any]], str], run: Any = None) -> Follower:
        """The follower of a conversation; `otherwise` names it by its messages where it has no key.

        `run` is what the framework knows of the run, for a context that is told by it.
        """
        key, context = key or otherwise(messages), vouched(self._context, run)
        if not key:
            return Follower(self._shield.session(context=context))
        with self._lock:
            follower = first = self._kept_or_new(key, context)
            if first.session.may_be_handed_over:
                first.hear(context)
            elif not is_same(first.session.context, context):
                first.leave()
                follower = self._kept_or_new(linked(key, context), context, is_linked=True)
            before = self._speaking.get(key)
            if before is not None and before is not follower:
                before.leave()
            self._speaking[key] = follower
            return follower

    def _kept_or_new(self, name: str, context: Vouched, *, is_linked: bool = False) -> Follower:
        follower = self._kept.get(name)
        if follower is None:
            follower = self._kept[name] = Follower(session_of(self._shield, name, context), is_linked=is_linked)
        self._kept.move_to_end(name)
        if len(self._kept) > self._most:
            gone, _ = self._kept.popitem(last=False)
            self._speaking.pop(gone, None)
        return follower

    def known(self, key: str) -> Follower | None:
        """The follower of a conversation, where there is one."""
        return self._kept.get(key)
