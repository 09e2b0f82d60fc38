"""Random arrays that are functions of integer keys: equal keys give equal numbers."""

from primgraph.base.array_functions import KEYS
from primgraph.operators.names import namespace

# Functions of JAX on keys, which are integers here.
_INSTEAD = dict.fromkeys(("PRNGKey", "fold_in", "key", "key_data", "wrap_key_data"), KEYS)
__all__, __getattr__, __dir__ = namespace(__name__, globals(), _INSTEAD)
