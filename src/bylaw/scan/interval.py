"""How far a share of few cases can be trusted."""

import math


def wilson(hits: int, cases: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a share of `hits` in `cases`; everything is possible where there are none."""
    if cases == 0:
        return 0.0, 1.0
    share = hits / cases
    spread = z * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    middle = share + z * z / (2 * cases)
    scale = 1 + z * z / cases
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
