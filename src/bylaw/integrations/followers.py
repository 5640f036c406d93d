"""The conversations of a framework that hands over the whole history each time: one let go is simply read again.

What a host vouches for may differ from one run to the next. The principal is whoever `signed_in_as` names. Where
another one goes on in the same thread, a conversation of their own begins, linked by its name: what the first has
agreed to, given as a reason or had approved is not theirs.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bylaw.engine.context import PRINCIPAL, is_of_one
from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower
from bylaw.pack import Pack
from bylaw.shield import LiveSession, Shield
from bylaw.shield.linking import linked

MOST = 1_000
"""Conversations kept at once."""
Vouched = Mapping[str, Any] | None
Context = Vouched | Callable[[Any], Vouched]
"""What the host vouches for: the same for all conversations, or a function of what the framework knows of the run."""


class Followers:
    def __init__(self, shield: Shield | Pack | str | Path, context: Context = None) -> None:
        self.shield = shield if isinstance(shield, Shield) else Shield(shield)
        self._context = context
        self._kept: OrderedDict[str, Follower] = OrderedDict()
        self._speaking: dict[str, Follower] = {}
        """By the key of a history, whose conversation had the word last."""
        self._lock = threading.Lock()

    def get(self, key: str, run: Any = None) -> Follower:
        """The follower of a conversation; without a key it is one of its own.

        `run` is what the framework knows of the run, for a context that is told by it.
        """
        context = self._context(run) if callable(self._context) else self._context
        if not key:
            return Follower(self.shield.session(context=context), is_named=False)
        with self._lock:
            follower = first = self._kept_or_new(key, context)
            passes_on = first.session.may_be_handed_over
            if not passes_on and not _is_same(first.session.context, context):
                first.leave()
                follower = self._kept_or_new(linked(key, context), context, is_linked=True)
            known = follower.session.context
            if passes_on or {**known, **(context or {})} != known:
                follower.hear(context)
            before = self._speaking.get(key)
            if before is not None and before is not follower:
                before.leave()
            self._speaking[key] = follower
            return follower

    def _kept_or_new(self, name: str, context: Vouched, *, is_linked: bool = False) -> Follower:
        follower = self._kept.get(name)
        if follower is None:
            follower = self._kept[name] = Follower(self._session(name, context), is_linked=is_linked)
        self._kept.move_to_end(name)
        if len(self._kept) > MOST:
            gone, _ = self._kept.popitem(last=False)
            self._speaking.pop(gone, None)
        return follower

    def _session(self, name: str, context: Vouched) -> LiveSession:
        """The conversation of this name, whoever it belongs to."""
        session = self.shield.session(name, context=context)
        try:
            session.trajectory()
        except UsageError:
            # It was opened with another context, which stays its own.
            session = self.shield.session(name)
            session.trajectory()
        return session

    def known(self, key: str) -> Follower | None:
        """The follower of a conversation, where there is one."""
        return self._kept.get(key)


def _is_same(one: Vouched, other: Vouched) -> bool:
    """Whether two contexts are of one principal; where nobody says who it is, the whole of them is compared."""
    ours, theirs = dict(one or {}), dict(other or {})
    return other is None or (is_of_one(ours, theirs) and (PRINCIPAL in ours or ours == theirs))
