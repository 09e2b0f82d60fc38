"""The names that users write stay, and take what they took."""

from difflib import unified_diff
from pathlib import Path

from public_api import public_api

KEPT = Path(__file__).with_name("public_api.txt")


def test_the_public_names_and_their_parameters_are_those_that_are_written_down():
    """Who changes one on purpose writes the file anew and tells it in CHANGELOG.md."""
    before, now = KEPT.read_text().splitlines(), public_api().splitlines()
    changes = "\n".join(unified_diff(before, now, "as written down", "now", lineterm="", n=0))
    assert not changes, f"{changes}\npython tests/public_api.py > tests/public_api.txt"
