// Rows of parameters of the tuples of an example: cells by mixed radix, then rows by rank, in stages that ask for the
// memory of later stages ahead.
#pragma once
#include <cstdint>

#include "lanes.h"
#include "pomona.h"

namespace pm {
namespace PM_ISA {

// Whether tuples and codes stay inside their tables: what the loops below rely on.
inline bool fits(const pm_tuples& t) {
  if (t.order < 1 || t.order > PM_MAX_ORDER || t.n_tuples < 0 || t.n_columns < 0 || t.n_rows >= PM_NO_ROW) return false;
  for (int64_t i = 0; i < t.n_tuples; ++i) {
    uint64_t last = 0;
    for (int64_t p = 0; p < t.order; ++p) {
      const int32_t column = t.columns[p * t.n_tuples + i];
      if (column < 0 || column >= t.n_columns || t.sizes[column] == 0) return false;
      last += uint64_t{t.sizes[column] - 1} * t.strides[p * t.n_tuples + i];
    }
    if (t.strides[i] != 1) return false;
    if (t.starts[i + 1] <= t.starts[i] || last >= t.starts[i + 1] - t.starts[i] || last > UINT32_MAX) return false;
  }
  const uint64_t cells = t.starts[t.n_tuples];
  if (t.index == PM_TUPLES_RANKED) return cells <= t.n_words * 64;
  if (t.index == PM_TUPLES_HASHED) return t.n_rows > 0 && (t.n_rows & (t.n_rows - 1)) == 0;
  return t.index == PM_TUPLES_CELLS && cells <= t.n_rows;
}

inline bool codes_fit(const pm_tuples& t, const uint32_t* codes, int64_t n) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < t.n_columns; ++c) good &= codes[i * t.n_columns + c] < t.sizes[c];
  return good;
}

// Cells within their tuples.
template <int Order>
inline __attribute__((always_inline)) void cells_of(const pm_tuples& t, const uint32_t* code, uint32_t* cells) {
  const int64_t n = t.n_tuples;
  const int32_t* const columns = t.columns;
  const uint32_t* const strides = t.strides;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t cell = code[columns[i]];
#pragma GCC unroll 8
    for (int p = 1; p < Order; ++p) cell += code[columns[p * n + i]] * strides[p * n + i];
    cells[i] = cell;
  }
}

inline void cells_of(const pm_tuples& t, const uint32_t* code, uint32_t* cells) {
  switch (t.order) {
    case 1: return cells_of<1>(t, code, cells);
    case 2: return cells_of<2>(t, code, cells);
    case 3: return cells_of<3>(t, code, cells);
    case 4: return cells_of<4>(t, code, cells);
    case 5: return cells_of<5>(t, code, cells);
    case 6: return cells_of<6>(t, code, cells);
    case 7: return cells_of<7>(t, code, cells);
    default: return cells_of<8>(t, code, cells);
  }
}

// Without a branch: the cell's bit is moved to the top, so that counting what is left gives its rank, itself included, and
// its sign tells whether it is set.
inline __attribute__((always_inline)) uint32_t ranked_row(const pm_tuples& t, uint64_t cell) {
  const pm_rank_word word = t.words[cell >> 6];
  const uint64_t below = word.bits << (~cell & 63);
  const uint64_t row = word.rank + static_cast<uint64_t>(__builtin_popcountll(below));
  return static_cast<uint32_t>(row) & static_cast<uint32_t>(static_cast<int64_t>(below) >> 63);
}

inline void rows_of(const pm_tuples& t, const uint32_t* cells, uint32_t* rows) {
  const int64_t n = t.n_tuples;
  if (t.index == PM_TUPLES_RANKED) {
    for (int64_t i = 0; i < n; ++i) rows[i] = ranked_row(t, t.starts[i] + cells[i]);
  } else if (t.index == PM_TUPLES_HASHED) {
    const uint64_t mask = t.n_rows - 1;
    // One multiplication, high bits: what an unchecked hash costs at least.
    for (int64_t i = 0; i < n; ++i)
      rows[i] = 1 + static_cast<uint32_t>((((t.starts[i] + cells[i]) * 0x9e3779b97f4a7c15u) >> 32) & mask);
  } else {
    for (int64_t i = 0; i < n; ++i) rows[i] = 1 + static_cast<uint32_t>(t.starts[i] + cells[i]);
  }
}

// Cells and rows in one loop, for maps that lie in the cache; asks for the slots, which are a cache line or less.
template <int Order>
inline __attribute__((always_inline)) void ranked_rows(const pm_tuples& t, const uint32_t* code, uint32_t* rows,
                                                       const float* slots, int64_t stride) {
  const int64_t n = t.n_tuples;
  const int32_t* const columns = t.columns;
  const uint32_t* const strides = t.strides;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t cell = code[columns[i]];
#pragma GCC unroll 8
    for (int p = 1; p < Order; ++p) cell += code[columns[p * n + i]] * strides[p * n + i];
    rows[i] = ranked_row(t, t.starts[i] + cell);
    __builtin_prefetch(slots + int64_t{rows[i]} * stride, 1);
  }
}

// Rows of one example after the other. `next` gives those of the current example and asks for the parameters of the
// following one, and for the map of the one after that.
class RowStream {
 public:
  RowStream(const pm_tuples& tuples, const uint32_t* codes, int64_t n, void* memory, const float* slots, int64_t stride)
      : t_(tuples), codes_(codes), n_(n), slots_(slots), stride_(stride),
        fused_(tuples.index == PM_TUPLES_RANKED && tuples.n_words <= kCachedWords && tuples.order <= 3) {
    const int64_t padded = tuples.n_tuples + 16;
    uint32_t* const start = static_cast<uint32_t*>(memory);
    for (int64_t i = 0; i < 2; ++i) cells_[i] = start + i * padded, rows_[i] = start + (2 + i) * padded;
    find_cells(0), find_cells(1), find_rows(0);
  }

  const uint32_t* next() {
    find_cells(at_ + 2);
    find_rows(at_ + 1);
    return rows_[at_++ & 1];
  }

 private:
  void find_cells(int64_t i) {
    if (i >= n_ || fused_) return;
    uint32_t* const cells = cells_[i & 1];
    // The rows of example i - 2 were made from this memory before.
    cells_of(t_, codes_ + i * t_.n_columns, cells);
    if (t_.index == PM_TUPLES_RANKED)
      for (int64_t k = 0; k < t_.n_tuples; ++k) __builtin_prefetch(t_.words + ((t_.starts[k] + cells[k]) >> 6));
  }
  void find_rows(int64_t i) {
    if (i >= n_) return;
    uint32_t* const rows = rows_[i & 1];
    const uint32_t* const code = codes_ + i * t_.n_columns;
    const bool second = stride_ > 16;
    if (fused_) {
      if (t_.order == 1) ranked_rows<1>(t_, code, rows, slots_, stride_);
      else if (t_.order == 2) ranked_rows<2>(t_, code, rows, slots_, stride_);
      else ranked_rows<3>(t_, code, rows, slots_, stride_);
      if (!second) return;
    } else {
      rows_of(t_, cells_[i & 1], rows);
    }
    if (t_.n_rows * static_cast<uint64_t>(stride_) < kCachedFloats) return;
    for (int64_t k = 0; k < t_.n_tuples; ++k) {
      const float* const slot = slots_ + int64_t{rows[k]} * stride_;
      __builtin_prefetch(slot, 1);
      if (second) __builtin_prefetch(slot + stride_ - 1, 1);
    }
  }

  // Below these sizes the tables lie in the cache anyhow.
  static constexpr uint64_t kCachedWords = 1 << 12, kCachedFloats = 1 << 15;
  const pm_tuples& t_;
  const uint32_t* codes_;
  int64_t n_, at_ = 0;
  const float* slots_;
  int64_t stride_;
  bool fused_;
  uint32_t* cells_[2];
  uint32_t* rows_[2];
};

}  // namespace PM_ISA
}  // namespace pm
