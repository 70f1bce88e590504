"""Discrete spaces: a table of values, the labels a person reads, and the hops between codes."""

from .base import Piece, Space
from .kinds import Binary, Categorical, Clock, Ordinal, Spin
from .product import Product

__all__ = ["Binary", "Categorical", "Clock", "Ordinal", "Piece", "Product", "Space", "Spin"]
