"""The pages on coming from other libraries list the names that `primgraph.compat` has and lacks."""

import pytest
from compat_names import DOCS, SYSTEMS, compared, page


@pytest.mark.skipif(not DOCS.exists(), reason="the tests run without the checkout around them")
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_page_lists_the_names_that_there_are(system: str) -> None:
    """`python tests/tools/compat_names.py` writes the lists."""
    assert (DOCS / f"{system}.md").read_text(encoding="utf-8") == page(system)


@pytest.mark.parametrize("system", SYSTEMS)
def test_compat_has_most_names(system: str) -> None:
    found = compared(system).values()
    has = sum(len(names) for names, _ in found)
    assert has >= 0.7 * sum(len(names) + len(lacking) for names, lacking in found)
