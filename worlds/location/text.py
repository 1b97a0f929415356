"""How names are compared: without case, accents and punctuation.

plain("Café  Ekberg, Oy") == "cafe ekberg oy"
"""

from __future__ import annotations

import re
import unicodedata


def plain(text: str) -> str:
    """Lower case, no accents, single spaces between words."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(re.findall(r"\w+", bare))
