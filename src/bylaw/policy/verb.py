"""Verbs that occur in tool names, each with the effect that it most probably has."""

import re
from functools import lru_cache

from bylaw.policy.tool import Effect


def _words(text: str) -> list[str]:
    return text.split()


_READ = _words(
    """
    get list search find read lookup look fetch query view show describe check count retrieve browse select is
    has exists verify validate inspect load compare preview estimate status info details recall poll peek scan
    download track quote locate identify
    """
)
_WRITE = _words(
    """
    create add book cancel update delete remove send set post put insert modify change edit write append move
    rename reschedule schedule reserve transfer invite share charge refund pay issue submit approve reject
    assign unassign enable disable activate deactivate grant revoke open close order return exchange apply
    register subscribe unsubscribe upload save make place confirm void reset toggle start stop restart suspend
    resume terminate merge archive upgrade downgrade waive adjust replace drop publish upsert patch mark upvote
    accept decline block unblock lock unlock deposit withdraw renew execute run launch deploy record lend borrow
    """
)
_NONE = _words(
    """
    think thought reflect calculate compute calculator plan wait sleep noop done finish respond echo
    """
)
_PERSONS = {"human", "humans", "operator", "supervisor", "representative", "agents"}
VERBS: dict[str, Effect] = {
    **dict.fromkeys(_READ, "read"),
    **dict.fromkeys(_WRITE, "write"),
    **dict.fromkeys(_NONE, "none"),
}
_NOUNS = frozenset(("status", "info", "details", "track", "quote"))
"""Verbs for reading that may be nouns at the start of a name, such as `status` in `status_update`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> list[str]:
    return [*_words_of(name[:200])]


@lru_cache(maxsize=4096)
def _words_of(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def hands_over(tool: str) -> bool:
    """Whether the tool's name says that the tool hands the conversation over to a person."""
    words = set(words_of(tool))
    named = "handoff" in words or "handover" in words or {"hand", "over"} <= words
    return named or "escalate" in words or ("transfer" in words and bool(_PERSONS & words))


def sounds_harmless(tool: str) -> bool:
    """Whether the name starts with a verb for reading, thinking or transferring, and contains no verb for writing."""
    words = words_of(tool)
    if hands_over(tool):
        return True
    if not words or VERBS.get(words[0], "write") == "write" or words[0] in _NOUNS or words[:2] == ["check", "out"]:
        return False
    joined = words[words.index("and") :] if "and" in words else []
    return not any(VERBS.get(word) == "write" for word in joined)
