"""Rows as users have them, for the native module: arrays are handed over where they lie, files by their names."""
import collections
import os

import numpy as np

from . import _native
from .errors import InvalidError

Coded = collections.namedtuple("Coded", "codes names")
"""Labels as places among names."""

_TAKEN = {np.dtype(kind) for kind in ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")}


def is_paths(data):
    """A path, or a list of them?"""
    if isinstance(data, (str, os.PathLike)):
        return True
    return isinstance(data, (list, tuple)) and len(data) > 0 and all(isinstance(one, (str, os.PathLike)) for one in data)


def numbers(array):
    """An array that the native module reads as it is; copied only if its type or byte order is another."""
    array = np.asarray(array)
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if array.dtype in _TAKEN and array.dtype.isnative:
        return array
    return array.astype(np.float32)


def labels(y):
    """Numbers, and the names for which they stand; no names where labels are numbers themselves."""
    if isinstance(y, Coded):
        return numbers(y.codes), y.names
    y = np.asarray(y)
    if y.dtype.kind in "fiub":
        return numbers(y), []
    names, codes = np.unique(y.astype(str) if y.dtype.kind == "O" else y, return_inverse=True)
    return codes.astype(np.int32), [str(name) for name in names]


def _dense(array, columns):
    array = numbers(array)
    if array.ndim < 2:
        raise InvalidError(f"rows of {array.ndim} dimensions, expected 2 (rows and their numbers) or more; "
                           "reshape(1, -1) makes one row of an array")
    if array.ndim > 2:
        array = np.ascontiguousarray(array)
    if 0 in array.shape[1:]:
        raise InvalidError("rows of no numbers, expected at least one")
    return _native.dense(array, [] if columns is None else [str(name) for name in columns])


def _sparse(matrix):
    matrix = matrix.tocsr()
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return _native.sparse(numbers(matrix.indptr), numbers(matrix.indices), numbers(matrix.data), matrix.shape[1])


class Columns(dict):
    """Arrays of one dimension beside each other, by name: a table without a library for tables."""


def _column(name, array):
    array = np.asarray(array)
    if array.dtype.kind in "fiub":
        return str(name), numbers(array)
    names, codes = np.unique(array.astype(str), return_inverse=True)
    texts = [str(text).encode() for text in names]
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    return str(name), codes.astype(np.int32), starts, b"".join(texts)


def _table(data, columns, label):
    if hasattr(data, "tocsr"):
        return _sparse(data)
    if isinstance(data, Columns):
        return _native.columns([_column(name, array) for name, array in data.items()], label)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return _native.from_arrow(data.__arrow_c_stream__(), label)
        except ImportError:  # pandas without pyarrow
            return _table(Columns((name, data[name]) for name in data.columns), columns, label)
    return _dense(data, columns)


def source(data, y=None, sample_weight=None, columns=None, label="none"):
    """A native table, or a list of paths. Names for a row's numbers are `columns`; the column with the labels, where
    there are columns, is `label` ("" guesses)."""
    if is_paths(data):
        if y is not None or sample_weight is not None:
            raise InvalidError("labels and weights of rows in files are columns of theirs: label=, weight_column=")
        return [os.fspath(data)] if isinstance(data, (str, os.PathLike)) else [os.fspath(one) for one in data]
    table = _table(data, columns, "none" if y is not None else label)
    if y is not None:
        codes, names = labels(y)
        _check_length(table, codes, "labels")
        table.set_labels(codes, names)
    if sample_weight is not None:
        weights = numbers(sample_weight)
        _check_length(table, weights, "weights")
        table.set_weights(weights)
    return table


def _check_length(table, array, what):
    if array.ndim != 1 or len(array) != table.rows:
        raise InvalidError(f"{what} of shape {array.shape}, expected one for each of {table.rows} rows")
