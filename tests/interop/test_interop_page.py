"""The page about interoperability."""

import pytest
import targets_table


@pytest.mark.dense
def test_the_table_of_targets_is_that_of_the_cards():
    assert targets_table.shown() == targets_table.table(), "run python tests/tools/targets_table.py"
