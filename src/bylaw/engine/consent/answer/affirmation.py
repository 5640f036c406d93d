"""Words by which people agree."""

from bylaw.facts.phrases import Phrases

YES = Phrases(
    (
        "yes|yea|yep|yup|ya|oui|si|sí|ja|da|affirm|absolute|definite|certain|of course|agree|confirm|i do|please do|"
        "approve",
        r"^(?:\W*(?:oh|well|ah|great|perfect|good|ok|okay|sure|thanks|thank you|alright|um|hi|hello)\b[\s,!.]*)*"
        r"\W*(?:yes+|yeah|yep|yup|yea|ya|oui|si|sí|ja|da|affirmative|absolutely|definitely|certainly|of course|agreed|"
        r"confirmed|i confirm|i do|i agree|please do|approved?)\b",
    ),
    ("yes|yeah|yep|oui", r"(?:[,;:-]|\band|\bthen|\bso)\W*\b(?:yes+|yeah|yep|oui)\b"),
    ("yes|oui|ja|sí", r"[\"'](?:yes|oui|ja|sí)[\"']"),
    ("ahead|please do|do ", r"\b(?:go|going) ahead\b|\bplease do\b|\bdo (?:it|that|this|both|all)\b"),
    (
        "proceed",
        # "How do we proceed?" and "Can you confirm the price?" ask.
        r"(?<!how do we )(?<!how to )(?<!how can we )(?<!how should we )(?<!how would we )(?<!how do i )\bproceed\b",
    ),
    (
        "confirm",
        r"(?<!you )(?<!you please )(?<!you also )(?<!please )(?<!to )\bconfirm(?:ed|ing)?\b"
        r"(?! (?:if|whether|how|what|when|once|that the|my|the exact))",
    ),
    ("forward", r"\b(?:move|going?) forward\b"),
    (
        "confirm|agree|accept|approve|consent|authori",
        r"\b(?:i|we) (?:can |hereby |do |fully |also )?(?:confirm|agree|accept|approve|consent|authori[sz]e)\b",
    ),
    (" me", r"\b(?:works?|fine|good|okay|ok|perfect|great) (?:for|by|with) me\b"),
    (" my ", r"\byou (?:have|got) my (?:ok|okay|permission|confirmation|consent|approval|go-ahead)\b"),
    (
        "sounds |looks |seems |all ",
        r"\b(?:sounds|looks|seems|all) (?:\w+ )?(?:good|great|fine|correct|right|perfect|ok|okay|excellent)\b",
    ),
    (
        "correct|right|fine|perfect|work|great|good|ok|accurate",
        r"(?<!hope )(?<!hoping )"
        r"\b(?:that|this|it|all|everything|those|these|they|details)(?:'?s|'?re| is| are| all)?(?: all)? "
        r"(?:correct|right|fine|perfect|works|work|great|good|ok|okay|accurate)\b",
    ),
    (
        "let's ",
        r"\blet's (?:do|go|book|make|finali[sz]e|get|proceed|use|stick|move|take|have|cancel|change)\b",
    ),
    ("am |'m ", r"\bi(?:'m|\s+am) (?:ok|okay|happy|fine|good|comfortable|ready) (?:with|to)\b"),
    ("finali|process ", r"\bfinali[sz]e\b|\bprocess (?:it|that|this|the|them|my|these|those)\b"),
)
WEAK = Phrases(
    (
        "sure|ok|right|correct|exact|perfect|great|fine|good|wonderful|excellent|awesome|cool|understood|that helps",
        r"^\W*(?:sure|ok|okay|alright|all right|correct|right|exactly|perfect|great|fine|good|wonderful|excellent|"
        r"awesome|cool|understood|that helps)\b"
        # "Sure, my user ID is ..." gives what was asked for; it agrees to nothing.
        # "Ok, but please also send a receipt" agrees, perhaps.
        r"(?!\W+(?:my|here|i have|what|how|why|can|could|let me (?!know)|is|before)\b)"
        r"(?!\W+but\b(?! (?:also|please|could you|can you|make sure|i(?:'d| would) (?:also )?like)\b"
        r"(?!.*\b(?:first|before|instead|only|not|rather|different|lower|reduce|waive|wait|cheaper)\b|.*n't\b)))",
    )
)
WELCOMES = Phrases(
    ("i'd |i would ", r"\bi(?:'d| would) (?:like|love|appreciate|be happy with) (?:that|it|this)\b"),
    (
        "'d | would | will ",
        r"\b(?:that|this|it)(?:'d| would| will) (?:be|do) (?:just )?"
        r"(?:great|perfect|fine|good|wonderful|ideal|nice|ok|okay|lovely|awesome|amazing|fantastic|brilliant|excellent|"
        r"helpful|appreciated|super|cool)\b",
    ),
    (
        "please|y|k|for sure|all means|deal|👍",
        r"^\W*(?:please|y|k|kk|for sure|by all means|why not|deal|👍)\W*(?:and )?(?:thanks?|thank you|please)?\W*$",
    ),
    ("sure", r"^\W*(?:yes\W+)?i(?:'m| am) (?:quite |very |absolutely )?sure\W*$"),
    (
        "both|all|everything|the two|the three|the lot",
        r"^(?:\W*(?:yes|yeah|yep|yup|ok|okay|sure|fine|please|do|go with|to)\b)*\W*"
        r"(?:both|all|everything|the (?:two|three|four|lot))(?: (?:of )?(?:them|these|those|it|changes|things))?"
        r"(?:,? (?:please|thanks|thank you|then|now|are (?:fine|ok|okay|good|right)|is (?:fine|ok|good)|sounds? good|"
        r"works?|for me|go on|go ahead))*\W*$",
    ),
    (
        "what you|as you",
        r"\b(?:do|go with|exactly) (?:what|as) you(?:'ve| have)? (?:just )?"
        r"(?:said|suggested|proposed|described|told|listed|outlined)\b",
    ),
    ("no ", r"^\W*no (?:objections?|problems?|issues?|worries)\b(?!.*\b(?:but|except)\b)"),
    (
        " on| it so|go through|go for",
        r"\b(?:go|carry) on\b|\bmake it so\b|\bgo through with\b|\bgo for (?:it|that)\b",
    ),
    ("i'll |i will ", r"\bi(?:'ll| will) (?:go with|take|have|accept) (?:that|it|this|them|those|the)\b"),
    ("what i ", r"\bthat(?:'s| is) (?:exactly |just )?what i (?:want|need|wanted|asked for)\b"),
    (
        "please |accept ",
        r"\bplease (?:continue|complete|finish|accept|submit|execute)\b|\baccept (?:it|that|this|the)\b",
    ),
    ("my ", r"\b(?:give|have) (?:you )?my (?:consent|approval|permission|okay|ok|go-ahead)\b"),
)
"""Agrees where a yes was asked for, wherever it stands."""


def is_weak(sentence: str) -> bool:
    """Whether a sentence agrees where a yes was asked for."""
    return WEAK.found_in(sentence) or WELCOMES.found_in(sentence)
