"""Compiled code is kept, also where none may be written beside the sources: each child would compile everything.

Loaded before anything large is imported.
"""

import os
import sys
from pathlib import Path

if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    kept = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parents[1] / ".pytest_cache/bytecode"))
    sys.pycache_prefix = kept
    sys.dont_write_bytecode = False
