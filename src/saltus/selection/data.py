"""The data as given -> columns that can enter, centred, projected and scaled; what had to be left out is said."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._record import as_sequence
from .._words import counted, listed
from ..errors import SelectionError

ROWS = 512  # of a table that are worked on at a time
FLAT = 1e-10  # a column whose spread is below this share of its size, after projection, is a combination of what is always in


@dataclass(frozen=True)
class Data:
    """A regression, ready for selection.

    names: of all columns of X, in order. X: (n, P) as given, in float64. y: (n,). always: (P,) forced in. entering: (p,) indices of
    the columns that can enter. intercept: whether there is one. base: (n, q) an orthonormal basis of what is always in.
    columns: (n, p)
    and response (n,): projected off it, of length 1. lengths: (p,), and length: before that. notes: what was done, for people.
    """

    names: list[str]
    X: np.ndarray
    y: np.ndarray
    response_name: str
    always: np.ndarray
    entering: np.ndarray
    intercept: bool
    base: np.ndarray
    columns: np.ndarray
    response: np.ndarray
    lengths: np.ndarray
    length: float
    notes: list[str]

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def p(self) -> int:
        return len(self.entering)

    @property
    def left(self) -> int:
        """N: rows minus what is always in."""
        return self.n - self.base.shape[1]


def read_data(X: Any, y: Any, names: Any = None, forced: Any = None, intercept: bool = True) -> Data:
    """Check and prepare; SelectionError says which columns are wrong."""
    table, names = _read_table(X, names)
    response, response_name = _read_response(y, len(table))
    _refuse_other_order(X, y)
    _refuse_missing(table, names)
    n = len(table)
    if n < 3:
        raise SelectionError("There are too few rows.", expected="at least 3", found=counted(n, "row"))
    always = _read_forced(forced, names)
    base = _basis(table, always, intercept)
    if base.shape[1] > n - 2:
        raise SelectionError(
            "More columns are always in than the rows can bear.",
            expected=f"at most {n - 2} for {n} rows, the intercept among them",
            found=f"{base.shape[1]}",
        )
    y_left = _off(base, response)
    length = float(np.linalg.norm(y_left))
    if not length > 1e-12 * float(np.linalg.norm(response)):
        what = "constant" if always.sum() == 0 else "explained completely by the columns that are always in"
        raise SelectionError(f"The response is {what}: there is nothing to explain.", found=f"y[0] = {response[0]:g}")
    columns = _off(base, table)
    spread, size = _lengths(columns), _lengths(table)
    flat = ~(spread > FLAT * np.maximum(size, 1e-300)) & ~always
    entering = np.flatnonzero(~flat & ~always)
    columns = columns if len(entering) == len(names) else columns[:, entering]
    columns /= spread[entering]
    notes = _notes(names, flat, always, columns, entering)
    return Data(
        names,
        table,
        response,
        response_name,
        always,
        entering,
        intercept,
        base,
        columns,
        y_left / length,
        spread[entering],
        length,
        notes,
    )


def _read_table(X: Any, names: Any) -> tuple[np.ndarray, list[str]]:
    expected = "a DataFrame, or an array of numbers with a row for each observation and a column for each variable"
    own = None
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        own = [str(name) for name in X.columns]
        _refuse_words(X, own)
    elif hasattr(X, "toarray"):
        raise SelectionError("`X` is sparse.", expected=expected, found=type(X).__name__, hint="X.toarray()")
    try:
        raw = _values_of(X) if own is not None else np.asarray(X)
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"numbers of type {raw.dtype}")
        table = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise SelectionError("`X` is not numeric.", expected=expected, found=str(cause)[:80]) from None
    if table.ndim != 2 or table.shape[1] == 0 or table.shape[0] == 0:
        hint = "one variable is X.reshape(-1, 1)" if table.ndim == 1 else ""
        raise SelectionError("`X` has the wrong shape.", expected=expected, found=f"shape {table.shape}", hint=hint)
    return table, _read_names(names, own, table.shape[1])


def _values_of(X: Any) -> np.ndarray:
    """Of a data frame, NaN where pandas' own NA is."""
    try:
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    except TypeError:  # of other packages, which have no such words
        return X.to_numpy()


def _refuse_words(X: Any, names: list[str]) -> None:
    wrong = []
    for place, name in enumerate(names):
        kind = getattr(X.dtypes.iloc[place] if hasattr(X.dtypes, "iloc") else None, "kind", "f")
        if kind not in "biuf":
            wrong.append(name)
    if wrong:
        raise SelectionError(
            "Some columns of `X` are not numbers.",
            expected="numbers, or True and False",
            found=f"{counted(len(wrong), 'column')} of words, dates or categories: {listed(wrong)}",
            hint="X = pandas.get_dummies(X, drop_first=True, dtype=float) makes a column of 0 and 1 for each category",
        )


def _read_names(names: Any, own: list[str] | None, num: int) -> list[str]:
    if names is None:
        names = own if own is not None else [f"x{i}" for i in range(num)]
    given = [str(x) for x in as_sequence(names, "names", SelectionError, f"{num} names")]
    if len(given) != num:
        raise SelectionError("`names` do not fit `X`.", expected=counted(num, "name"), found=counted(len(given), "name"))
    seen: set[str] = set()
    twice = [x for x in given if x in seen or seen.add(x)]  # type: ignore[func-returns-value]
    if twice:
        raise SelectionError("Names of columns are not unique.", found=f"twice or more: {listed(sorted(set(twice)))}")
    return given


def _read_response(y: Any, n: int) -> tuple[np.ndarray, str]:
    name = str(getattr(y, "name", None) or "y")
    try:
        raw = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"values of type {raw.dtype}")
        response = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise SelectionError("`y` is not numeric.", expected=f"{n} numbers", found=str(cause)[:80]) from None
    if response.ndim == 2 and response.shape[1] == 1:
        response = response[:, 0]
    if response.shape != (n,):
        raise SelectionError(
            "`y` does not fit `X`.", expected=f"{n} numbers, one for each row of X", found=f"shape {response.shape}"
        )
    if not np.isfinite(response).all():
        bad = np.flatnonzero(~np.isfinite(response))
        raise SelectionError(
            "`y` has missing or infinite values.",
            found=f"in {counted(len(bad), 'row')}, first in row {bad[0]}",
            hint="leave these rows out of X and y",
        )
    return response, name


def _refuse_other_order(X: Any, y: Any) -> None:
    """Rows are paired by position; two pandas indexes with the same labels in another order are a mistake."""
    ours: Any = getattr(X, "index", None)
    theirs: Any = getattr(y, "index", None)
    if hasattr(ours, "equals") and hasattr(theirs, "sort_values") and not ours.equals(theirs):
        try:
            same = ours.sort_values().equals(theirs.sort_values())
        except TypeError:  # labels that cannot be ordered
            return
        if same:
            raise SelectionError(
                "The rows of `X` and `y` are in different orders.",
                expected="the same index in the same order: rows are paired by position",
                found=f"{ours[0]!r} and {theirs[0]!r} in the first row",
                hint="y = y.loc[X.index]",
            )


def _refuse_missing(table: np.ndarray, names: list[str]) -> None:
    bad = ~np.isfinite(table)
    if bad.any():
        wrong = [names[j] for j in np.flatnonzero(bad.any(axis=0))]
        raise SelectionError(
            "`X` has missing or infinite values.",
            found=f"in {counted(len(wrong), 'column')}: {listed(wrong)}; in {counted(int(bad.any(axis=1).sum()), 'row')}",
            hint="rows without them: keep = numpy.isfinite(X).all(axis=1); or fill them in first",
        )


def _read_forced(forced: Any, names: list[str]) -> np.ndarray:
    always = np.zeros(len(names), bool)
    if forced is None:
        return always
    expected = "names or numbers of columns that are in every model"
    given: list[Any] = [forced] if isinstance(forced, str) else as_sequence(forced, "forced", SelectionError, expected)
    for each in given:
        if isinstance(each, str) and each in names:
            always[names.index(each)] = True
        elif isinstance(each, (int, np.integer)) and not isinstance(each, bool) and 0 <= each < len(names):
            always[each] = True
        else:
            raise SelectionError("`forced` names a column that is not there.", expected=expected, found=repr(each)[:80])
    return always


def _basis(table: np.ndarray, always: np.ndarray, intercept: bool) -> np.ndarray:
    """(n, q) orthonormal, of the intercept and the forced columns; combinations of each other count once."""
    n = len(table)
    parts = [np.ones((n, 1))] if intercept else []
    parts.append(table[:, always])
    every = np.concatenate(parts, axis=1)
    if every.shape[1] == 0:
        return np.zeros((n, 0))
    scaled = every / np.maximum(np.linalg.norm(every, axis=0), 1e-300)
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    return u[:, s > 1e-10 * math.sqrt(n)]


def _off(base: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x without its part in the span of the basis; twice, for the digits; some rows at a time, for the memory."""
    x = x.copy()
    for _ in range(2):
        along = base.T @ x
        for first in range(0, len(x), ROWS):
            x[first : first + ROWS] -= base[first : first + ROWS] @ along
    return x


def _lengths(x: np.ndarray) -> np.ndarray:
    """Of every column."""
    return np.sqrt(np.einsum("ij,ij->j", x, x))


def _notes(names: list[str], flat: np.ndarray, always: np.ndarray, columns: np.ndarray, entering: np.ndarray) -> list[str]:
    notes = []
    if always.any():
        notes.append(f"always in: {listed([names[j] for j in np.flatnonzero(always)])}")
    if flat.any():
        which = [names[j] for j in np.flatnonzero(flat)]
        beside = " or a combination of the forced columns" if always.any() else ""
        verb = "is" if len(which) == 1 else "are"
        notes.append(f"{listed(which)} {verb} constant{beside}: inclusion 0, not counted among the columns")
    for group in duplicates(columns)[:5]:
        notes.append(f"{listed([names[entering[j]] for j in group])} are copies of each other: a model holds one of them at most")
    return notes


def duplicates(columns: np.ndarray) -> list[list[int]]:
    """Groups of columns that are the same up to a factor."""
    if not columns.size:
        return []
    shadow = np.abs(np.random.default_rng(0).normal(size=len(columns)) @ columns)  # alike for copies, hardly ever for others
    order = np.argsort(shadow, kind="stable")
    groups: list[list[int]] = []
    for i, j in itertools.pairwise(order):
        if shadow[j] - shadow[i] < 1e-8 and abs(columns[:, i] @ columns[:, j]) > 1 - 1e-9:
            if groups and groups[-1][-1] == i:
                groups[-1].append(int(j))
            else:
                groups.append([int(i), int(j)])
    return sorted(sorted(group) for group in groups)
