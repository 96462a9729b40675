"""The online linear learner, with products of features generated on the fly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pomona import _native
from pomona.chunk import Chunk, RowChunk
from pomona.errors import ModelFileError, NumericError, OptionError
from pomona.learner import State
from pomona.online.names import FeatureNames
from pomona.online.parameters import LOSSES, OnlineParameters
from pomona.online.tables import Tables, table_words, taken
from pomona.online.terms import Terms, factors_at
from pomona.task import Task

#: Matrices with more columns give them rows as they appear: most of a table for all would stay empty.
WIDE = 1 << 20
#: Bytes of scratch memory that are set aside at the least.
SCRATCH = 1 << 24

_RUNNING = tuple(
    "examples weight_sum scale_sum clock lowest highest product_weight_sum product_scale_sum product_gain"
    " without halved with_all loss_sum loss_weight mistakes features".split()
)


class OnlineLearner:
    """Learns weights of features and of their products, one example after the other.

    For an example (x, y) with importance h, prediction p and features scaled to [-1, 1] by the largest value seen
    (before predicting, so that a large value cannot blow the prediction up)::

        G += h (dloss/dp)^2 x^2        w += u m x / sqrt(G)        m = sqrt(T / S)

    with T the sum of importances, S the sum of h |x|^2, and u the step that following the gradient continuously for
    the whole importance would make (Ross, Mineiro and Langford 2013; Karampatziakis and Langford 2011).

    Parameters
    ----------
    parameters : the choices that fix the learner.
    fields : names of the fields (namespaces, columns) that interactions refer to; may grow from chunk to chunk.
    """

    family: ClassVar[str] = "online"
    #: How products are hashed: a model of another way would find its weights in other places.
    hashing: ClassVar[int] = 2

    def __init__(self, parameters: OnlineParameters, fields: Sequence[str] = ()) -> None:
        self.parameters = parameters
        self.fields = fields
        self.tables = self._new_tables()
        self.names = FeatureNames(self._hashed_slots)
        self.map: _native.IdMap | None = None
        #: Rows of columns, where they are not the columns themselves.
        self.column_rows: _native.ColumnRows | None = None
        self.n_columns = 0
        self._scratch = np.zeros(0, np.uint8)
        self._products, self._product_fields = np.zeros((0, 3), np.int32), -1
        self._model = _native.OnlineStruct()
        self._model.lowest, self._model.highest = np.inf, -np.inf
        self._model.product_gain, self._model.fresh = 1.0, True
        self._configure()

    def _new_tables(self) -> Tables:
        return Tables(self.parameters)

    def _configure(self) -> None:
        parameters, model = self.parameters, self._model
        for name in (
            "squares n_outputs shared stride adaptive normalized invariant ftrl peer_order bounded gentle"
            " learning_rate l1 l2 quantile ftrl_beta"
        ).split():
            setattr(model, name, getattr(parameters, name))
        model.real_bytes = parameters.real_bytes
        model.loss = LOSSES.index(parameters.loss)
        if parameters.peer_order and model.examples == 0:
            model.lowest = model.highest = 0.0
        self.tables.describe(model)

    def scale_rate(self, factor: float) -> None:
        """Learn on with so much of the learning rate."""
        self._model.learning_rate = self.parameters.learning_rate * factor

    @property
    def uses_fields(self) -> bool:
        """Whether it matters which field a feature belongs to."""
        return any("*" in term for term in self.parameters.interactions)

    # ---- the verbs ----
    def learn(
        self, chunk: Chunk, labels: NDArray[np.float64], order: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Learn the examples in order; returns the raw prediction made before learning each."""
        chunk = self._rows(chunk, grow=True)
        labels = np.ascontiguousarray(labels, np.float64)
        struct = self._struct(chunk, labels)
        predictions = self._room(len(chunk))
        done, stop = 0, len(chunk) if order is None else len(order)
        while done < stop:
            status, done = _native.online_learn(self._model, struct, order, done, self._scratch, predictions)
            if status == _native.FULL:
                e = done if order is None else int(order[done])
                predictions = self._make_room(chunk, labels, e, predictions)
                self._make_scratch(struct)
            elif status == _native.PAUSE:
                self._pause()
                self._make_scratch(struct)
            elif status == _native.NOT_FINITE:
                raise NumericError(
                    f"the prediction for example {self.examples + 1:,} is not a finite number: lower the learning rate"
                    f" (now {self.parameters.learning_rate:g}), or scale the features"
                )
            elif status != _native.OK:
                raise ValueError(f"the kernel refused example {done} of a chunk")
        return predictions

    def predict(self, chunk: Chunk) -> NDArray[np.float64]:
        """Raw predictions: margins or values (n,), or scores (n, classes)."""
        chunk = self._rows(chunk, grow=False)
        struct = self._struct(chunk, None)
        predictions = self._room(len(chunk))
        if len(chunk):
            _native.online_predict(self._model, struct, self._scratch, predictions)
        return predictions

    def expand(self, chunk: Chunk) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
        """The features of the examples, products included, as CSR arrays; columns number the slots of all tables."""
        chunk = self._rows(chunk, grow=False)
        if not len(chunk):
            return np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32)
        struct = self._struct(chunk, None)
        return _native.online_expand(self._model, struct, self._scratch, 4 * len(chunk.indices) + (1 << 16))

    def set_weights(self, table: int, places: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        """Give scaled features these weights, (places, outputs); the other features of the table get none."""
        slots, K = self.tables.slots[table], self.parameters.n_outputs
        first = 0 if K == 1 else 4
        slots[:, first : first + K] = 0.0
        slots[places, first : first + K] = weights
        if self.parameters.regularized:
            self.tables.touched[table][:] = self._model.clock
        self._model.product_gain = 1.0

    def set_intercepts(self, values: NDArray[np.float64]) -> None:
        """Give the outputs these intercepts."""
        first = 0 if self.parameters.n_outputs == 1 else 4
        self.tables.intercept[first : first + self.parameters.n_outputs] = values

    def finish(self, raw: NDArray[np.float64], task: Task) -> NDArray[np.float64]:
        """Raw predictions to probabilities (of the second class, or of all) or to values."""
        loss = self.parameters.loss
        if task.kind == "regression":
            return np.exp(raw) if loss == "poisson" else raw
        if loss == "softmax":
            e = np.exp(raw - raw.max(axis=1, keepdims=True))
            return np.asarray(e / e.sum(axis=1, keepdims=True))
        p = np.clip((raw + 1) / 2, 0.0, 1.0) if loss == "squared" else 1 / (1 + np.exp(-raw))
        if task.kind == "binary":
            return p
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])

    def start_pass(self, number: int) -> None:
        """Examples of later passes have been learnt before: how well they are predicted says less."""
        self._model.fresh = number == 0

    def end_pass(self) -> None:
        """Nothing to do between passes."""

    # ---- figures ----
    @property
    def examples(self) -> int:
        """Examples learnt so far, over all passes."""
        return int(self._model.examples)

    @property
    def features(self) -> int:
        """Features generated so far, products included."""
        return int(self._model.features)

    @property
    def loss_sums(self) -> tuple[float, float]:
        """Sum of the progressive losses and of the weights they count with."""
        return float(self._model.loss_sum), float(self._model.loss_weight)

    @property
    def mistakes(self) -> float:
        """Weight of the examples whose class was predicted wrongly just before they were learnt; NaN: not known."""
        return float(self._model.mistakes)

    def weights_of(
        self, table: int, places: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights of scaled features, (slots,) or (slots, outputs), and inverse scales, of a table or some places."""
        slots, K = taken(self.tables.slots[table], places), self.parameters.n_outputs
        w, s = (slots[:, 0], slots[:, 2]) if K == 1 else (slots[:, 4 : 4 + K], slots[:, 0])
        w, s = w.astype(np.float64), s.astype(np.float64)
        if self.parameters.regularized:
            G = slots[:, self.parameters.sums].astype(np.float64)
            G = G[:, 0] if K == 1 else G
            waited = self._model.clock - taken(self.tables.touched[table], places)
            speed = np.where(G > 0, 1 / np.sqrt(np.where(G > 0, G, 1.0)), 0.0) if self.parameters.adaptive else 1.0
            tau = speed * (waited if K == 1 else waited[:, None])
            l1, l2 = self.parameters.l1, self.parameters.l2
            size = np.abs(w) - l1 * tau if l2 == 0 else (np.abs(w) + l1 / l2) * np.exp(-l2 * tau) - l1 / l2
            w = np.copysign(np.maximum(size, 0.0), w)
        return w, s

    @property
    def product_gain(self) -> float:
        """What weights of products are multiplied with in predictions."""
        return 1.0

    @property
    def gentle_tables(self) -> int:
        """Tables, the first ones, whose weights follow the scales of their features half of the way."""
        return len(self.tables.slots) if self.parameters.adaptive and self.parameters.gentle else 0

    def scaled(
        self, values: NDArray[np.float32], inverse: NDArray[np.float32], tables: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Values of features of some tables as predicting scales them: beyond the largest learnt they count less."""
        if not self.parameters.normalized:
            return values
        small = values * inverse
        size = np.maximum(np.abs(small), np.float32(1))
        most = np.where(tables < self.gentle_tables, np.sqrt(np.minimum(size, 16 / size)), np.float32(1))
        return np.where(size > 1, np.copysign(np.maximum(most, np.float32(1)), small), small).astype(np.float32)

    def intercepts(self) -> NDArray[np.float64]:
        """The intercept of each output."""
        slot, K = self.tables.intercept, self.parameters.n_outputs
        return (slot[:1] if K == 1 else slot[4 : 4 + K]).astype(np.float64)

    def terms(self) -> Terms:
        """Every weight, with the name of its feature on demand."""
        return Terms.of(self)

    def factors_at(self, table: int, slots: list[int]) -> dict[int, tuple[int, ...]]:
        """The rows of the features whose product stands in each of these slots, where that is known."""
        return factors_at(self, table, slots)

    def inspect(self, task: Task, top: int) -> dict[str, Any]:
        """How full the tables are, and the strongest features."""
        slots, used = sum(len(slots) for slots in self.tables.slots), self.tables.used
        table = {"hashed": any(self.tables.hashed), "slots": slots, "used": used, "bytes": self.tables.nbytes}
        facts = {"weights": table_words(table, len(task.classes))}
        terms = self.terms()
        return {"table": table, "facts": facts, "ranked_by": terms.ranked_by, "top": terms.top(task, top)}

    # ---- chunks ----
    def _make_room(
        self, chunk: Chunk, labels: NDArray[np.float64], e: int, predictions: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Grow the tables by what example ``e`` needs, no more: so the size of chunks does not matter."""
        outputs = self.parameters.n_outputs
        if outputs > 1 and labels[e] >= outputs:
            self.parameters = replace(self.parameters, n_outputs=int(labels[e]) + 1)
            self.tables.widen(self.parameters)
            self._configure()
            wide = self._room(len(chunk))
            wide[:, :outputs], wide[:, outputs:] = predictions, 0.0
            return wide
        rows = chunk.indices[chunk.indptr[e] : chunk.indptr[e + 1]]
        self._grow(int(rows.max()) + 1)
        return predictions

    def _grow(self, n_rows: int) -> None:
        """Make room for rows 0 … n_rows - 1."""
        self.tables.grow(self._model, n_rows)

    def _pause(self) -> None:
        """Called after example ``pause_at`` of the kernel's struct."""
        raise NotImplementedError

    def prepare(self, chunk: Chunk) -> RowChunk:
        """Rows of the tables in place of ids; features never met before get a row and leave their name."""
        return self._rows(chunk, grow=True)

    def arranged(self, chunk: RowChunk) -> RowChunk:
        """The chunk as learning wants it: for products, the features of an example by rising row."""
        if self.parameters.degree == 1:
            return chunk
        struct = _native.chunk_struct(
            chunk.indptr, chunk.indices, chunk.values, None, None, None, chunk.fields, column_fields=False
        )
        arrays = _native.sorted_rows(struct, int(chunk.indptr[-1]))
        if arrays is None:
            return chunk
        indices, values, fields = arrays
        return replace(chunk, indices=indices, values=values, fields=fields)

    def with_keys(self, chunk: RowChunk) -> RowChunk:
        """The chunk with what learning would find out first: where columns stand in a hashed table."""
        columns: Any = chunk.indices
        if not self.parameters.hashes_features or columns.dtype != np.uint32:
            return chunk
        return replace(chunk, rows=_native.column_keys(columns))

    def look_up(self, ids: NDArray[np.uint64]) -> NDArray[np.uint32] | None:
        """Rows of features met so far, for ``Chunk.rows``; called on any thread."""
        return None if self.map is None else self.map.find(ids)

    @property
    def _hashed_slots(self) -> int:
        return len(self.tables.slots[0]) if self.parameters.hashes_features else 0

    @property
    def _id_bits(self) -> int | None:
        """Bits by which ids are told apart; None: all."""
        return None

    def _rows(self, chunk: Chunk, grow: bool) -> RowChunk:
        if isinstance(chunk, RowChunk):
            return chunk
        first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
        indices, closed = chunk.indices[first:last], chunk.indices.dtype == np.uint32
        self._check_kind(closed)
        if closed and self.numbers_columns(chunk, grow):
            indices = self._rows_of_columns(chunk, indices, grow)
        elif closed:
            if grow and len(indices):
                self.n_columns = max(self.n_columns, int(indices.max()) + 1)
                self.names.note_columns(chunk, self.n_columns)
        elif self.parameters.hashes_features:
            if grow:
                self.names.note_hashed(chunk)
        else:
            self.map = self.map or _native.IdMap(self.tables.row_limit, self._id_bits)
            ids = indices.astype(np.uint64, copy=False)  # they are: columns by number took another branch
            if grow:
                found = None if chunk.rows is None else chunk.rows[first:last]
                indices, fresh = self.map.insert(ids, found)
                self.names.note_fresh(chunk, fresh + first)
            else:
                indices = self.map.find(ids)
        return RowChunk(
            chunk.indptr - first if first else chunk.indptr,
            indices,
            chunk.values[first:last],
            labels=chunk.labels,
            weights=chunk.weights,
            fields=None if chunk.fields is None else chunk.fields[first:last],
            offsets=chunk.offsets,
        )

    def numbers_columns(self, chunk: Chunk, grow: bool = True) -> bool:
        """Whether columns get rows as they appear, as features by name do, rather than being rows themselves.

        Found out from the first chunk: they do in wide matrices, so that those that never appear take no room.
        """
        fresh = grow and self.column_rows is None and self.n_columns == 0
        if fresh and not (self.parameters.hashes_features or self.uses_fields):
            if chunk.width > min(WIDE, self.tables.row_limit):
                self._number_columns(chunk.width)
        return self.column_rows is not None

    def _most_rows(self, width: int) -> int:
        """How many of so many columns may have a row of their own."""
        return self.tables.row_limit

    def _number_columns(self, width: int) -> _native.ColumnRows:
        """From here on columns get rows as they appear."""
        self.column_rows = self.names.column_rows = _native.ColumnRows(self._most_rows(width), width)
        return self.column_rows

    def _rows_of_columns(self, chunk: Chunk, columns: NDArray[Any], grow: bool) -> NDArray[np.uint32]:
        assert self.column_rows is not None
        if not grow:
            return self.column_rows.find(columns)
        rows, fresh = self.column_rows.insert(columns)
        self.n_columns = max(self.n_columns, chunk.width, int(columns[fresh].max(initial=0)) + 1)
        self.names.note_fresh(chunk, fresh + int(chunk.indptr[0]))
        return rows

    def _check_kind(self, closed: bool) -> None:
        """Columns by number and features by name have nothing in common."""
        if closed and self.names.named:
            raise OptionError("the model knows features by name: it cannot read an array of numbered columns")
        if not closed and self.n_columns:
            raise OptionError("the model knows columns by number: it cannot read features by name")

    def _struct(self, chunk: Chunk, labels: NDArray[np.float64] | None) -> _native.ChunkStruct:
        if self._product_fields != len(self.fields):  # namespaces of a text may still come
            self._products, self._product_fields = self.parameters.products(self.fields), len(self.fields)
            self._model.products, self._model.n_products = self._products.ctypes.data, len(self._products)
        struct = _native.chunk_struct(
            np.ascontiguousarray(chunk.indptr),
            chunk.indices,
            chunk.values,
            labels,
            chunk.weights,
            chunk.offsets,
            chunk.fields,
            column_fields=self.n_columns > 0 and self.column_rows is None,
            keys=chunk.rows,
        )
        self._make_scratch(struct)
        return struct

    def _make_scratch(self, struct: _native.ChunkStruct) -> None:
        """Room for the expansion of the longest example."""
        needed = _native.online_scratch_bytes(self._model, struct) if struct.n else 0
        if needed > max(self.parameters.memory, 1 << 30):
            raise OptionError(
                f"an example has so many features that its products need {needed / 2**30:.1f} GiB: use fewer"
                " interactions, or products of chosen fields as in a*b"
            )
        if needed > len(self._scratch):
            # More addresses than are needed now: memory is taken as it is touched, and stays when more is needed.
            self._scratch = np.empty(max(needed + needed // 4, SCRATCH), np.uint8)

    def _room(self, n: int) -> NDArray[np.float64]:
        outputs = self.parameters.n_outputs
        return np.full(n if outputs == 1 else (n, outputs), np.nan)

    # ---- state ----
    def state(self) -> State:
        """Everything that is needed to go on from here, or to predict, elsewhere."""
        header = {
            "parameters": self.parameters.header(),
            "running": {name: float(getattr(self._model, name)).hex() for name in _RUNNING},
            "fields": list(self.fields),
            "n_columns": self.n_columns,
            "named": self.names.named,
            "plain": self.names.plain,
            "hashed": self.tables.hashed,
            "hashing": self.hashing,
            "mapped": self.map is not None,
            "sizes": [len(table) for table in self.tables.slots],
        }
        arrays = {"intercept": self.tables.intercept, **self.names.arrays()}
        if self.map is not None:
            arrays["ids"] = self.map.ids()
        if self.column_rows is not None:
            arrays["columns"] = self.column_rows.columns()
        for i, (slots, touched) in enumerate(zip(self.tables.slots, self.tables.touched, strict=True)):
            used = np.flatnonzero(slots.view(np.uint32).any(axis=1))  # a tag may look like no number
            if len(used) < len(slots) // 2:
                arrays[f"used{i}"] = used
            else:
                used = np.arange(len(slots))
            arrays[f"slots{i}"] = slots[used]
            if len(touched):
                arrays[f"touched{i}"] = touched[used]
        return State(header, arrays)

    def _slots_of(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Slots as they are today. Earlier models with softmax have a sum of squared gradients for every class."""
        parameters, K, P = self.parameters, self.parameters.n_outputs, self.parameters.padded_outputs
        if not parameters.shared or stored.shape[1] == parameters.stride:
            return stored
        slots = stored[:, : parameters.stride].copy()
        slots[:, parameters.sums] = stored[:, 4 + P : 4 + P + K].max(axis=1, keepdims=True)
        return slots

    @classmethod
    def _new(cls, header: dict[str, Any]) -> OnlineLearner:
        """A learner that has learnt nothing, with the parameters of the header."""
        return cls(OnlineParameters.from_header(header["parameters"]), header["fields"])

    @classmethod
    def from_state(cls, state: State) -> OnlineLearner:
        """The learner that :meth:`state` described."""
        header, arrays = state.header, state.arrays
        learner = cls._new(header)
        if any(header["hashed"][1:]) and header.get("hashing") != cls.hashing:
            raise ModelFileError("the model has products hashed as by an earlier version of pomona: train it again")
        # The first models did not count their mistakes: how many they made is not known.
        for name, value in {"mistakes": "nan", **header["running"]}.items():
            number = float.fromhex(value)
            setattr(learner._model, name, int(number) if name == "features" else number)
        learner.n_columns = header["n_columns"]
        learner.names = FeatureNames.from_arrays(learner._hashed_slots, header["named"], arrays, header.get("plain", 0))
        tables = learner.tables
        tables.intercept[:] = learner._slots_of(arrays["intercept"][None])[0]
        tables.hashed = list(header["hashed"])
        for i, size in enumerate(header["sizes"]):
            used = arrays.get(f"used{i}", slice(None))
            tables.slots[i], tables.touched[i] = tables._empty(size), tables._clocks(size)
            tables.slots[i][used] = learner._slots_of(arrays[f"slots{i}"])
            if len(tables.touched[i]):
                tables.touched[i][used] = arrays[f"touched{i}"]
        if header["mapped"]:
            learner.map = _native.IdMap(tables.row_limit, learner._id_bits)
            learner.map.insert(arrays["ids"])
        if "columns" in arrays:
            learner._number_columns(learner.n_columns).insert(arrays["columns"])
        tables.describe(learner._model)
        return learner
