"""Words by which people refuse, put off, or say what is not to be done."""

import re

from bylaw.facts.phrases import Phrases

LATER = (
    r"(?:later|tomorrow|tonight|another (?:day|time)|some other (?:day|time)|next (?:week|month|time|year)|"
    r"in an? (?:while|bit|minute|moment|hour|day|week|few \w+|couple of \w+))"
)
HOLD = Phrases(
    (
        "hold |hang on|not yet|just a |never|think",
        r"\b(?:hold (?:on|off|it|that)|hang on(?! to)|not yet|just a (?:second|moment|minute)|let me think|"
        # "Never mind the fee" waves a worry aside, and not what was put.
        r"never ?mind(?! (?:about )?(?:the|any|all|those|these|its|your) \w)|"
        r"think about it)\b",
    ),
    ("wait", r"(?<!can't )(?<!cannot )(?<!had to )(?<!having to )\bwait\b(?! (?:for|to))"),
    (
        "give me |let me ",
        r"\bgive me (?:until|till|(?:a|an|one|two|some|a few|a couple of) "
        r"(?:sec(?:ond)?|moment|min(?:ute)?|hour|day|week|time)s?)\b"
        r"|\blet me (?:just |first )?(?:check|ask|think|talk|discuss)\b",
    ),
    (
        "day|next |in ",
        r"\b(?:go ahead|proceed|do (?:it|that)) (?:(?:on |next |this )?(?:mon|tues|wednes|thurs|fri|satur|sun)day"
        r"|next (?:week|month)|in (?:an?|one|two|three|\d+) \w+)\b"
        r"|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:please )?(?:go ahead|proceed|do (?:it|that))\b",
    ),
    ("first|before", r"\b(?:but|though) (?:first|before)\b"),
    (
        "before ",
        r"\bbefore (?:(?:i|we|you) )?(?:do|decide|proceed|confirm|go|agree|mak|cancel|book|finali|mov|commit|chang)\w*",
    ),
    ("sure ", r"\bnot (?:so |yet )?sure (?:if i|whether|about|yet|i want)\b"),
    (
        "sleep on|mull|pass|know|up to you|whatever",
        r"\b(?:sleep on|mull over|mull) (?:it|this|that)\b|\bi(?:'ll| will) pass\b|\bi don't know\W*$"
        r"|^\W*(?:(?:it's |that's )?up to you|whatever(?: you (?:think|like|want))?)\W*$",
    ),
    (
        "not ",
        r"\bnot (?:today|now|tonight|tomorrow|right now|right away|just yet|at the moment|for now|"
        r"this (?:week|month|time))\b",
    ),
    (
        "later|tomorrow|tonight|next |another |some other |in a",
        # "Book it for tomorrow" says when it is to be; "do it tomorrow" puts it off.
        r"(?<!i'll )(?<!i will )(?<!i can )(?<!we'll )"
        rf"\b(?:do|cancel|book|make|change|process|submit|move|send|decide|confirm)\w* (?:it|that|this|them) {LATER}\b"
        rf"|\bbut (?:only |please |maybe )?{LATER}\b|\b(?:ask|remind|call) me (?:again )?{LATER}\b"
        rf"|^\W*(?:(?:yes|yeah|yep|ok|okay|sure|fine|please)\W+)*(?:maybe |perhaps )?(?:later|another (?:day|time)|"
        r"some other (?:day|time)|next time)\W*$",
    ),
    (
        "my mind|second thought|rather ",
        r"\bchanged? my mind\b|\bon second thought\b|\bi(?:'d| would) rather (?:not|wait)\b",
    ),
)
NO = Phrases(
    (
        "no|nah|nein",
        r"^(?:\W*(?:oh|well|sorry|hmm|actually|um|uh)\b)*\W*"
        # Before a noun it says what is not wanted beside: "no insurance", "no changes".
        r"(?:nope|nah|non|nein|no(?!\s+\w)|no(?=\s+(?:i|we|you|it|it's|that|that's|this|thanks?|please|don't|do|not|"
        r"there|wait|actually|sorry|but|let|let's|can|just|way|the|my)\b))\b",
    )
)
REFUSES = Phrases(
    (
        "not",
        r"\b(?:absolutely|definitely|certainly|of course|surely|obviously|please|better|preferably|i think|"
        r"i'd say) not\b",
    ),
    ("no ", r"\b(?:no way|hell no|by no means|under no circumstances|no chance)\b"),
    (
        "a chance|scratch|strike|nothing|touch",
        r"\bnot a chance\b|\b(?:scratch|strike) that\b|\bdo nothing\b|(?:n't|\bnot) touch\b",
    ),
    ("no", r"\bactually,? no\b|\b(?:yes|yeah|right|well|ok|okay|sure)\W+no\W*$|\byes is not\b"),
    (
        "forget|scrap|drop|abort|stop",
        r"\b(?:forget|scrap|drop|abort) (?:it|that|this|about it)\b"
        r"|\bstop\b(?= (?:it|that|this|there|please|now)\b|\W*$)",
    ),
    (
        "leave |keep ",
        r"\b(?:leave|keep) (?:it|that|this|them|everything|things)(?: just| exactly)? "
        r"(?:as (?:it |they |that |things )?(?:is|are|was|were)|alone|unchanged|be)\b",
    ),
    ("don|do not", r"\b(?:don'?t|do not)\W*$"),
)
"""Says no without the word, or after one that sounds like a yes: "absolutely not", "ok, forget it"."""
KEEPS = Phrases(
    (
        "keep|leav|retain",
        r"\b(?:keep|keeping|leave|leaving|retain|retaining) (?:it|that|this|them|both|everything|[a-z]{0,4}-?\d\w*|"
        r"(?:the|my|our|that|this) (?:\w+ )?"
        r"(?:appointment|booking|reservation|visit|order|trip|flight|slot|one|listing)s?)"
        r"(?: [a-z]*-?\d\w*)?(?: (?:please|thanks|thank you|then|instead|for now|after all|though|anyway|yes|"
        r"on the books|as booked|booked|in place))*\W*(?:,.*)?$",
    ),
    (" to keep", r"\b(?:want|wanted|like|wish|plan) to keep\W*$"),
)
"""Agrees to leaving things as they are: "yes to keeping it", "go ahead and keep it"."""
KEEPS_ONE = Phrases(
    ("keep|leav|retain", r"\b(?:keep|keeping|leave|leaving|retain|retaining) #?[a-z]{1,6}-?\d[\w-]*"),
)
"""The same of one thing by its id."""
DOES = re.compile(r"\b(?:cancel|book|chang|mov|updat|add|upgrad|downgrad|refund|send|switch|proceed with)")
MOCKS = Phrases(
    ("right", r"\b(?:yeah|yea|ya|sure|oh),? right\b(?! (?:away|now|there))"),
    ("as if", r"\bas if\W*$"),
    ("wish|dreams|chance|funny", r"\byou wish\b|\bin your dreams\b|\bfat chance\b|\bvery funny\b"),
    ("everything |anything |all ", r"\b(?:everything|anything|all) but (?:that|this|it)\b"),
)
"""Says yes and may mean the opposite, or all but what was asked."""
_NOT = r"\b(?:don'?t|do not|not|never|stop|won'?t|can'?t|cannot|wouldn'?t|isn'?t|aren'?t|shouldn'?t)\b[^,.;-]{0,24}?"
_NOT_PARTS = "n't|not|never|stop|dont|wont|cant|wouldnt|isnt|arent|shouldnt"
UNDONE = Phrases(
    (
        _NOT_PARTS,
        _NOT
        + r"\b(?:proceed|go ahead|do (?:it|that|this)|confirm|agree|say yes|accept|approve|work for me|correct|right|"
        r"ok|okay|fine|acceptable|want (?:that|this|it)\b|\w+ (?:it|that|this|them|anything)? ?yet)\b",
    )
)
SPARED = Phrases(
    (
        _NOT_PARTS,
        _NOT + r"\b(?:cancel|book|chang|process|submit|send|charg|updat|make|refund|remov|add|mov|switch|upgrad|"
        r"downgrad)\w*\b",
    )
)
ASIDE = Phrases(
    (
        "don|do not|no to|not|skip|leave out|never|forget|except",
        r"\b(?:don'?t|do not|no to|not|skip|leave out|never ?mind|forget(?: about)?|except(?: for)?)\b"
        r"(?:[^,.;:!?-]|-(?=\w))*",
    )
)
"""Says of one thing that it is not to be done, whatever else is."""
WITHOUT = re.compile(r"\b(?:want|wanted|like|liked)\b.*\b(?:without|otherwise)\b")
"""Says what would not have been wanted, and so that this is."""
