"""Tuples of coded attributes: rows of parameters, counts, learning; supervised cuts of numbers."""

from __future__ import annotations

import ctypes as c

import numpy as np
from numpy.typing import NDArray

from pomona._native.library import FULL, NOT_FINITE, OK, lib, pointer

#: How a cell finds its row of parameters.
CELLS, RANKED, HASHED = range(3)
#: Rows are numbered by 32 bits; the last number stands for none.
MAX_ROWS = 2**32 - 2
RANK_WORD = np.dtype([("bits", np.uint64), ("rank", np.uint64)])

Codes = NDArray[np.uint32]
Labels = NDArray[np.int32]
Weights = NDArray[np.float32]


class _TuplesStruct(c.Structure):
    _fields_ = [
        *[(name, c.c_int32) for name in ("order", "n_columns", "index", "reserved")],
        ("n_tuples", c.c_int64),
        *[(name, c.c_void_p) for name in ("columns", "strides", "starts", "sizes", "words")],
        *[(name, c.c_uint64) for name in ("n_words", "n_rows")],
    ]


class _ModelStruct(c.Structure):
    _fields_ = [
        *[(name, c.c_void_p) for name in ("slots", "bias")],
        *[(name, c.c_int32) for name in ("n_classes", "n_outputs", "padded")],
        *[(name, c.c_float) for name in ("eta", "l2", "reserved")],
        ("examples", c.c_uint64),
        *[(name, c.c_double) for name in ("loss_sum", "errors")],
    ]


_VOID, _LONG = c.c_void_p, c.c_int64
lib.pm_tuples_scratch_bytes.restype = _LONG
lib.pm_tuples_scratch_bytes.argtypes = [_VOID, c.c_int32]
lib.pm_tuples_rank.argtypes = [_VOID]
lib.pm_tuples_explore.argtypes = [_VOID, _VOID, _LONG, _VOID, _VOID, _VOID]
lib.pm_tuples_rows.argtypes = [_VOID, _VOID, _LONG, _VOID]
lib.pm_tuples_count.argtypes = [_VOID, _VOID, _VOID, _LONG, c.c_int32, _VOID]
lib.pm_tuples_learn.argtypes = [_VOID, _VOID, _VOID, _VOID, _LONG, _VOID]
lib.pm_tuples_predict.argtypes = [_VOID, _VOID, _LONG, _VOID, c.c_int32, _VOID, _LONG, _VOID]
lib.pm_tuples_drop.argtypes = [_VOID, _VOID, _LONG, _VOID, c.c_int32, _VOID, _VOID, _LONG, _VOID, _VOID]
lib.pm_mdl_scratch_bytes.restype = _LONG
lib.pm_mdl_scratch_bytes.argtypes = [_LONG, c.c_int32]
lib.pm_mdl_cuts.restype = _LONG
lib.pm_mdl_cuts.argtypes = [_VOID, _LONG, c.c_int32, _VOID, _VOID]
lib.pm_bin_codes.argtypes = [_VOID, _LONG, _VOID, _LONG, _VOID, _LONG]
lib.pm_bin_codes.restype = None


class TupleIndex:
    """Tuples of attributes, and the rows of parameters of their cells.

    Parameters
    ----------
    columns, strides : of shape (order, tuples): which attributes a tuple has, and what a step in each is worth.
    starts : first cell of each tuple, and the end of the last.
    sizes : one an attribute; codes are less.
    kind : ``CELLS``, ``RANKED`` or ``HASHED``.
    bits : ranked: which cells occur, 64 a word; all zero where not given.
    n_rows : hashed: rows, a power of two.
    """

    def __init__(
        self,
        columns: NDArray[np.int32],
        strides: NDArray[np.uint32],
        starts: NDArray[np.uint64],
        sizes: NDArray[np.uint32],
        kind: int = RANKED,
        *,
        bits: NDArray[np.uint64] | None = None,
        n_rows: int = 0,
    ) -> None:
        self.columns, self.strides, self.starts, self.sizes = columns, strides, starts, sizes
        if columns.shape != strides.shape or columns.ndim != 2 or len(starts) != columns.shape[1] + 1:
            raise ValueError("columns and strides are (order, tuples), starts one more than tuples")
        self.n_cells = int(starts[-1])
        n_words = (self.n_cells + 63) // 64 if kind == RANKED else 0
        self.words = np.zeros(n_words, RANK_WORD)
        if bits is not None:
            if bits.shape != (n_words,):
                raise ValueError(f"expected {n_words} words of bits, got {len(bits)}")
            self.words["bits"] = bits
        self.struct = _TuplesStruct(
            order=columns.shape[0],
            n_columns=len(sizes),
            index=kind,
            n_tuples=columns.shape[1],
            columns=pointer(columns, np.int32).value,
            strides=pointer(strides, np.uint32).value,
            starts=pointer(starts, np.uint64).value,
            sizes=pointer(sizes, np.uint32).value,
            words=pointer(self.words, RANK_WORD).value,
            n_words=n_words,
            n_rows=self.n_cells if kind == CELLS else n_rows,
        )
        if bits is not None:
            self.rank()

    @property
    def n_tuples(self) -> int:
        return int(self.columns.shape[1])

    @property
    def order(self) -> int:
        return int(self.columns.shape[0])

    @property
    def kind(self) -> int:
        return int(self.struct.index)

    @property
    def n_rows(self) -> int:
        """Features: rows of parameters, the row 0 of absent ones not counted."""
        return int(self.struct.n_rows)

    @property
    def nbytes(self) -> int:
        arrays = (self.columns, self.strides, self.starts, self.words)
        return sum(int(array.nbytes) for array in arrays)

    def rank(self) -> None:
        """Number the cells whose bits are set."""
        status = lib.pm_tuples_rank(c.byref(self.struct))
        if status == FULL:
            raise OverflowError(f"there are more than {MAX_ROWS:,} features")

    def explore(self, codes: Codes, lower: TupleIndex | None = None, parents: NDArray[np.int32] | None = None) -> None:
        """Set the bits of the cells that occur; ranks must be counted anew."""
        n = self._check(codes)
        if parents is not None and parents.shape != self.columns.shape:
            raise ValueError("parents must have the shape of columns")
        scratch = np.empty(2 * lower.n_tuples if lower is not None else 0, np.uint32)
        address = c.byref(lower.struct) if lower is not None else None
        status = lib.pm_tuples_explore(
            c.byref(self.struct),
            pointer(codes, np.uint32),
            n,
            address,
            pointer(parents, np.int32),
            pointer(scratch, np.uint32),
        )
        _raise(status)

    def rows(self, codes: Codes) -> NDArray[np.uint32]:
        """Row of every tuple in every example; 0 where the cell has none."""
        n = self._check(codes)
        rows = np.empty((n, self.n_tuples), np.uint32)
        _raise(lib.pm_tuples_rows(c.byref(self.struct), pointer(codes, np.uint32), n, pointer(rows, np.uint32)))
        return rows

    def count(self, codes: Codes, labels: Labels, counts: NDArray[np.uint32]) -> None:
        """Add to ``counts`` of shape (n_rows + 1, classes)."""
        n = self._check(codes, labels)
        if counts.ndim != 2 or len(counts) != self.n_rows + 1:
            raise ValueError(f"counts must have {self.n_rows + 1} rows")
        status = lib.pm_tuples_count(
            c.byref(self.struct),
            pointer(codes, np.uint32),
            pointer(labels, np.int32),
            n,
            counts.shape[1],
            pointer(counts, np.uint32),
        )
        _raise(status)

    def predict(self, codes: Codes, weights: Weights, bias: Weights) -> NDArray[np.float32]:
        """Scores (n, outputs); a row of ``weights`` may be longer than ``bias``."""
        n = self._check(codes)
        self._check_weights(weights)
        scores = np.empty((n, len(bias)), np.float32)
        status = lib.pm_tuples_predict(
            c.byref(self.struct),
            pointer(weights, np.float32),
            weights.shape[1],
            pointer(bias, np.float32),
            len(bias),
            pointer(codes, np.uint32),
            n,
            pointer(scores, np.float32),
        )
        _raise(status)
        return scores

    def drop(self, codes: Codes, labels: Labels, weights: Weights, bias: Weights, drops: NDArray[np.float64]) -> None:
        """Add to ``drops``, one a tuple, how much the summed loss grows without it."""
        n = self._check(codes, labels)
        self._check_weights(weights)
        if drops.shape != (self.n_tuples,):
            raise ValueError(f"expected {self.n_tuples} sums, got {drops.shape}")
        scratch = np.empty(8 * len(bias) + 4 * self.n_tuples + 8, np.uint8)
        status = lib.pm_tuples_drop(
            c.byref(self.struct),
            pointer(weights, np.float32),
            weights.shape[1],
            pointer(bias, np.float32),
            len(bias),
            pointer(codes, np.uint32),
            pointer(labels, np.int32),
            n,
            pointer(drops, np.float64),
            pointer(scratch, np.uint8),
        )
        _raise(status)

    def _check(self, codes: Codes, labels: Labels | None = None) -> int:
        if codes.ndim != 2 or codes.shape[1] != len(self.sizes):
            raise ValueError(f"expected codes of {len(self.sizes)} attributes, got the shape {codes.shape}")
        if labels is not None and labels.shape != (len(codes),):
            raise ValueError(f"expected {len(codes)} labels, got the shape {labels.shape}")
        return len(codes)

    def _check_weights(self, weights: Weights) -> None:
        if weights.ndim != 2 or len(weights) != self.n_rows + 1:
            raise ValueError(f"expected {self.n_rows + 1} rows of weights, got the shape {weights.shape}")


def padded_outputs(n_classes: int) -> int:
    """Outputs of a row of parameters, filled up so that vectors run over whole rows."""
    if n_classes == 2:
        return 1
    return 4 if n_classes <= 4 else (n_classes + 7) // 8 * 8


class Slots:
    """Parameters while they are learnt: a weight ``w``, a sum of squares ``G`` and a factor ``L`` for each output.

    The last row is the intercept's. With several outputs G and L are the upper halves of floats, in 32 bits together.
    """

    def __init__(self, n_rows: int, n_classes: int) -> None:
        self.n_classes, self.outputs = n_classes, 1 if n_classes == 2 else n_classes
        self.padded = padded_outputs(n_classes)
        self.size = 4 if self.padded == 1 else 2 * self.padded
        raw = np.empty((n_rows + 2) * self.size + _LINE // 4, np.float32)
        skip = -raw.ctypes.data % _LINE // 4
        self.raw = raw[skip : skip + (n_rows + 2) * self.size].reshape(n_rows + 2, self.size)
        #: Examples learnt so far.
        self.examples = 0

    def fill(self, rows: slice, w: Weights | float, G: float, L: Weights | float) -> None:
        """Set parameters; what pads the outputs stays without effect."""
        part = self.raw[rows]
        if self.padded == 1:
            part[:, :1], part[:, 1], part[:, 2:3], part[:, 3] = w, G, L, 0
            return
        part[:, : self.padded] = 0
        part[:, : self.outputs] = w
        both = part.view(np.uint32)[:, self.padded :]
        both[:] = _upper(G) << 16
        both[:, : self.outputs] |= _upper(L)

    def restart(self, rows: slice, G: float) -> None:
        """Weights at 0 and sums at G again; factors stay."""
        part = self.raw[rows]
        if self.padded == 1:
            part[:, 0], part[:, 1] = 0, G
            return
        part[:, : self.padded] = 0
        both = part.view(np.uint32)[:, self.padded :]
        both &= np.uint32(0xFFFF)
        both |= _upper(G) << 16

    @property
    def weights(self) -> Weights:
        """Weights of the features, row 0 first, as the start of longer rows."""
        return self.raw[:-1]

    @property
    def bias(self) -> Weights:
        return self.raw[-1, : self.outputs]


_LINE = 64


def _upper(values: Weights | float) -> NDArray[np.uint32]:
    """The upper halves of floats, rounded to nearest."""
    bits = np.atleast_1d(np.ascontiguousarray(values, np.float32)).view(np.uint32)
    return np.asarray((bits + np.uint32(0x8000)) >> np.uint32(16))


def learn(
    index: TupleIndex, slots: Slots, codes: Codes, labels: Labels, eta: float, l2: float = 0.0
) -> tuple[float, int] | None:
    """Learn rows one after the other; the summed progressive loss and errors, or None where a score overflows."""
    n = index._check(codes, labels)
    if len(slots.raw) != index.n_rows + 2:
        raise ValueError(f"expected slots of {index.n_rows} features, got {len(slots.raw) - 2}")
    model = _ModelStruct(
        slots=pointer(slots.raw, np.float32).value,
        bias=pointer(slots.raw[-1], np.float32).value,
        n_classes=slots.n_classes,
        n_outputs=slots.outputs,
        padded=slots.padded,
        eta=eta,
        l2=l2,
        examples=slots.examples,
    )
    scratch = np.empty(int(lib.pm_tuples_scratch_bytes(c.byref(index.struct), slots.padded)), np.uint8)
    status = lib.pm_tuples_learn(
        c.byref(index.struct),
        c.byref(model),
        pointer(codes, np.uint32),
        pointer(labels, np.int32),
        n,
        pointer(scratch, np.uint8),
    )
    slots.examples = int(model.examples)
    if status == NOT_FINITE:
        return None
    _raise(status)
    return float(model.loss_sum), int(model.errors)


def mdl_cuts(counts: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Places of the cuts, each after a distinct value, of a table (values, classes) of counts."""
    n, classes = counts.shape
    cuts = np.empty(max(n - 1, 0), np.int64)
    scratch = np.empty(int(lib.pm_mdl_scratch_bytes(n, classes)), np.uint8)
    args = (pointer(counts, np.uint32), n, classes, pointer(cuts, np.int64), pointer(scratch, np.uint8))
    found = lib.pm_mdl_cuts(*args)
    if found < 0:
        raise ValueError(f"cannot cut a table of the shape {counts.shape}")
    return cuts[:found].copy()


def bin_codes(values: NDArray[np.float64], cuts: NDArray[np.float64], codes: Codes, column: int) -> None:
    """Write into ``codes[:, column]`` how many cuts lie below each value; ``len(cuts) + 1`` for NaN."""
    if codes.ndim != 2 or len(codes) != len(values) or not 0 <= column < codes.shape[1]:
        raise ValueError("values need a column of codes of the same length")
    if not codes.flags.c_contiguous or codes.dtype != np.uint32:
        raise TypeError("codes must be contiguous and uint32")
    lib.pm_bin_codes(
        pointer(values, np.float64),
        len(values),
        pointer(cuts, np.float64),
        len(cuts),
        c.c_void_p(codes.ctypes.data + 4 * column),
        codes.shape[1],
    )


def _raise(status: int) -> None:
    if status != OK:
        raise ValueError("codes or labels outside their range, or tuples that do not fit together")
