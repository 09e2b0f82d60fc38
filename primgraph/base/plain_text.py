"""Text as it may be shown anywhere, and how much room it takes."""

from __future__ import annotations

import html
import unicodedata

# Widths of the letters of DejaVu Sans Bold, in hundredths of the font size: a wide face, so that
# text in the narrower ones that browsers choose fits too.
_WIDTHS = {
    31: "'", 35: " ijl", 38: "/IJ\\|,.·", 45: ":;-f", 50: "!()[]tr–_`", 60: '"*?zcs', 65: "Lvxy",
    70: "akEFTeo$0123456789", 73: "hnu{}SYbdgpqCPZ", 78: "BAKRVX", 85: "UGD#+<=>HN^~OQ&×→",
    93: "w", 105: "%@Mm…", 110: "W",
}  # fmt: skip
_WIDTH_OF = {letter: width / 100 for width, letters in _WIDTHS.items() for letter in letters}
_UNKNOWN, _FULL = 0.85, 1.1
# The letters of a fixed-width face.
_FIXED = 0.615


def plain(text: str) -> str:
    """`text` with escapes in the place of all that does not print, or turns the writing around.

    What remains are letters, digits, punctuation, symbols and spaces; control characters, line
    ends, bidirectional marks and lone surrogates read as `\\n` or `\\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def escaped(text: str) -> str:
    """`text` as the content of an element or an attribute; the one way that text comes in."""
    return html.escape(plain(text))


def shortened(text: str, most: int) -> str:
    """`text`, or as much of it as fits in `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def width_of(text: str, size: float, *, fixed: bool = False) -> float:
    """No less than the width of `text` in the units of the font size `size`."""
    total = 0.0
    for letter in text:
        if unicodedata.east_asian_width(letter) in "WF":
            total += _FULL if not fixed else 2 * _FIXED
        elif unicodedata.combining(letter):
            continue
        elif fixed:
            total += _FIXED if letter.isascii() else _UNKNOWN
        else:
            total += _WIDTH_OF.get(letter, _UNKNOWN)
    return total * size
