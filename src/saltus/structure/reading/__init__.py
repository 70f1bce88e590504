"""Reading a log_prob: which entries of s may interact, and whether it is a polynomial of degree 2, from its jaxpr.

An abstract interpreter. Primitives on its lists are followed exactly or by an upper bound; every other one is taken to make
all it sees interact. So what is not listed among the interactions does not interact: nothing else is promised.
"""

from .dependence import MANY
from .reader import Reading, read, read_rows
from .summands import terms_of

__all__ = ["MANY", "Reading", "read", "read_rows", "terms_of"]
