"""The conversations of a framework that hands over the whole history each time: one let go is simply read again."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from bylaw.integrations.follower import Follower
from bylaw.shield import Shield

MOST = 1_000
"""Conversations kept at once."""


class Followers:
    """Followers by conversation."""

    def __init__(self, shield: Shield, context: Mapping[str, Any] | None = None, *, most: int = MOST) -> None:
        self._shield = shield
        self._context = context
        self._most = most
        self._kept: OrderedDict[str, Follower] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, messages: list[Any], otherwise: Callable[[list[Any]], str]) -> Follower:
        """The follower of a conversation; `otherwise` names it by its messages where it has no key."""
        key = key or otherwise(messages)
        if not key:
            return Follower(self._shield.session(context=self._context))
        with self._lock:
            follower = self._kept.get(key)
            if follower is None:
                follower = self._kept[key] = Follower(self._shield.session(key, context=self._context))
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return follower

    def known(self, key: str) -> Follower | None:
        """The follower of a conversation, where there is one."""
        return self._kept.get(key)
