"""Printable text and its width."""

from __future__ import annotations

import unicodedata

# Widths of the letters of DejaVu Sans Bold, in hundredths of the font size. It is a wide font, so
# that text in narrower browser fonts fits, too.
_WIDTHS = {
    31: "'", 35: " ijl", 38: "/IJ\\|,.·", 45: ":;-f", 50: "!()[]tr–_`", 60: '"*?zcs', 65: "Lvxy",
    70: "akEFTeo$0123456789", 73: "hnu{}SYbdgpqCPZ", 78: "BAKRVX", 85: "UGD#+<=>HN^~OQ&×→",
    93: "w", 105: "%@Mm…", 110: "W",
}  # fmt: skip
_WIDTH_OF = {letter: width / 100 for width, letters in _WIDTHS.items() for letter in letters}
_UNKNOWN, _FULL = 0.85, 1.1
# As `html.escape` does, whose module has a large table of names.
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
# Width of a letter of a monospaced font.
_FIXED = 0.615


def plain(text: str) -> str:
    """Replace characters that do not print, or change the writing direction, by escapes.

    Letters, digits, punctuation, symbols and spaces remain; control characters, line ends,
    bidirectional marks and lone surrogates become `\n` or `\u202e`.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def escape_html(text: str) -> str:
    """Escape `text` for the content of an HTML element or attribute; all text is inserted by
    this."""
    return plain(text).translate(_ENTITIES)


def shorten_text(text: str, most: int) -> str:
    """Return `text`, cut to `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def width_of(text: str, size: float, *, fixed: bool = False) -> float:
    """Return an upper bound on the width of `text` in units of the font size `size`."""
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
