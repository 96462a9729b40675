// Columns of a table to sparse rows. A block of rows is encoded column by column into scratch, one slot after the
// other, then copied out row by row without its zeros while it is still in the cache.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "hash.h"
#include "pomona.h"

namespace {

constexpr int64_t kBlock = 256;                 // rows encoded at once
constexpr int64_t kStride = PM_ENCODE_SCRATCH;  // more than a block: strides of 2^n would share few cache lines

inline bool is_valid(const uint8_t* bitmap, int64_t i) { return !bitmap || (bitmap[i >> 3] >> (i & 7) & 1); }

// Where a column writes: row r of its slot s is at s * kStride + r.
struct Slots {
  uint64_t* ids;
  float* values;
};

template <class T>
void load(const pm_column& column, int64_t start, int64_t m, double* x) {
  const T* data = static_cast<const T*>(column.data) + column.first + start;
  for (int64_t r = 0; r < m; ++r) x[r] = static_cast<double>(data[r]);
}

void load_bits(const pm_column& column, int64_t start, int64_t m, double* x) {
  const uint8_t* bits = static_cast<const uint8_t*>(column.data);
  for (int64_t r = 0; r < m; ++r) x[r] = is_valid(bits, column.first + start + r) ? 1.0 : 0.0;
}

// Numbers of a block as doubles, NaN where missing.
bool load_numbers(const pm_column& column, int64_t start, int64_t m, double* x) {
  switch (column.type) {
    case PM_INT8: load<int8_t>(column, start, m, x); break;
    case PM_INT16: load<int16_t>(column, start, m, x); break;
    case PM_INT32: load<int32_t>(column, start, m, x); break;
    case PM_INT64: load<int64_t>(column, start, m, x); break;
    case PM_UINT8: load<uint8_t>(column, start, m, x); break;
    case PM_UINT16: load<uint16_t>(column, start, m, x); break;
    case PM_UINT32: load<uint32_t>(column, start, m, x); break;
    case PM_UINT64: load<uint64_t>(column, start, m, x); break;
    case PM_FLOAT32: load<float>(column, start, m, x); break;
    case PM_FLOAT64: load<double>(column, start, m, x); break;
    case PM_BITS: load_bits(column, start, m, x); break;
    default: return false;
  }
  if (column.valid)
    for (int64_t r = 0; r < m; ++r)
      if (!is_valid(column.valid, column.first + start + r)) x[r] = NAN;
  return true;
}

// For each x the number of points below it (or not above it), by binary searches that go step by step together:
// no step depends on a branch, so nothing is mispredicted.
template <bool kInclusive>
void count_points(const double* points, int64_t n, const double* x, int64_t m, int64_t* counts) {
  const auto passed = [](double point, double value) {
    return static_cast<int64_t>(kInclusive ? point <= value : point < value);
  };
  std::fill(counts, counts + m, 0);
  for (; n > 1; n -= n / 2) {
    const int64_t half = n / 2;
    for (int64_t r = 0; r < m; ++r) counts[r] += half & -passed(points[counts[r] + half - 1], x[r]);
  }
  for (int64_t r = 0; n == 1 && r < m; ++r) counts[r] += passed(points[counts[r]], x[r]);
}

// Linear between two points and clamped outside. Huge points are halved, or their difference would overflow.
struct Ramp {
  double scale;

  explicit Ramp(const pm_column& column)
      : scale(std::isfinite(column.points[column.n_points - 1] - column.points[0]) ? 1.0 : 0.5) {}

  double operator()(double low, double high, double x) const {
    const double inside = x < low ? low : (x > high ? high : x);
    return (inside * scale - low * scale) / (high * scale - low * scale);
  }
};

// Rows without a fault, m unless a value is too large; NaN gives anything, and is replaced afterwards.
int64_t raw_rows(const pm_column& column, const double* x, int64_t m, Slots out) {
  const double mean = column.points[0], scale = column.points[1];
  for (int64_t r = 0; r < m; ++r) {
    const float value = static_cast<float>((x[r] - mean) * scale);
    if (!std::isfinite(value) && !std::isnan(x[r])) return r;
    out.ids[r] = column.ids[0];
    out.values[r] = value;
  }
  return m;
}

void hat_rows(const pm_column& column, const double* x, int64_t m, Slots out) {
  const Ramp ramp(column);
  int64_t intervals[kBlock];
  count_points<true>(column.points + 1, column.n_points - 2, x, m, intervals);
  for (int64_t r = 0; r < m; ++r) {
    const int64_t k = intervals[r];
    const double t = ramp(column.points[k], column.points[k + 1], x[r]);
    out.ids[r] = column.ids[k];
    out.ids[kStride + r] = column.ids[k + 1];
    out.values[r] = static_cast<float>(1.0 - t);
    out.values[kStride + r] = static_cast<float>(t);
  }
}

void bin_rows(const pm_column& column, const double* x, int64_t m, Slots out) {
  int64_t bins[kBlock];
  count_points<false>(column.points, column.n_points, x, m, bins);
  for (int64_t r = 0; r < m; ++r) {
    out.ids[r] = column.ids[bins[r]];
    out.values[r] = 1.0f;
  }
}

void ramp_rows(const pm_column& column, const double* x, int64_t m, Slots out) {
  const Ramp ramp(column);
  for (int64_t r = 0; r < m; ++r) {
    out.ids[r] = column.ids[0];
    out.values[r] = static_cast<float>(ramp(column.points[0], column.points[1], x[r]));
  }
}

void mark_missing(const pm_column& column, const double* x, int64_t m, Slots out) {
  for (int64_t r = 0; r < m; ++r) {
    if (!std::isnan(x[r])) continue;
    out.ids[r] = column.missing;
    out.values[r] = column.marks_missing ? 1.0f : 0.0f;
    if (column.kind == PM_COLUMN_HAT) out.values[kStride + r] = 0.0f;
  }
}

int64_t encode_numbers(const pm_column& column, int64_t start, int64_t m, Slots out) {
  double x[kBlock];
  if (!load_numbers(column, start, m, x)) return 0;
  int64_t done = m;
  switch (column.kind) {
    case PM_COLUMN_RAW: done = raw_rows(column, x, m, out); break;
    case PM_COLUMN_HAT: hat_rows(column, x, m, out); break;
    case PM_COLUMN_BINS: bin_rows(column, x, m, out); break;
    default: ramp_rows(column, x, m, out);
  }
  if (column.valid || column.type == PM_FLOAT32 || column.type == PM_FLOAT64) mark_missing(column, x, m, out);
  return done;
}

template <class T>
int64_t encode_codes(const pm_column& column, int64_t start, int64_t m, Slots out) {
  const T* codes = static_cast<const T*>(column.data) + column.first + start;
  for (int64_t r = 0; r < m; ++r) {
    if (!is_valid(column.valid, column.first + start + r)) {
      out.ids[r] = column.missing;
    } else {
      const uint64_t code = static_cast<uint64_t>(codes[r]);  // a negative one becomes huge
      if (code >= static_cast<uint64_t>(column.n_ids)) return r;
      out.ids[r] = column.ids[code];
    }
    out.values[r] = 1.0f;
  }
  return m;
}

int64_t encode_code_types(const pm_column& column, int64_t start, int64_t m, Slots out) {
  switch (column.type) {
    case PM_INT8: return encode_codes<int8_t>(column, start, m, out);
    case PM_INT16: return encode_codes<int16_t>(column, start, m, out);
    case PM_INT32: return encode_codes<int32_t>(column, start, m, out);
    case PM_INT64: return encode_codes<int64_t>(column, start, m, out);
    case PM_UINT8: return encode_codes<uint8_t>(column, start, m, out);
    case PM_UINT16: return encode_codes<uint16_t>(column, start, m, out);
    case PM_UINT32: return encode_codes<uint32_t>(column, start, m, out);
    case PM_UINT64: return encode_codes<uint64_t>(column, start, m, out);
    default: return 0;
  }
}

template <class T>
int64_t encode_strings(const pm_column& column, int64_t start, int64_t m, Slots out) {
  const T* offsets = static_cast<const T*>(column.offsets) + column.first + start;
  const char* data = static_cast<const char*>(column.data);
  for (int64_t r = 0; r < m; ++r) {
    const T begin = offsets[r], end = offsets[r + 1];
    const bool valid = is_valid(column.valid, column.first + start + r);
    if (valid && (begin < 0 || end < begin || end > column.n_bytes)) return r;
    out.ids[r] = valid && end > begin ? pm::hash_bytes(data + begin, static_cast<size_t>(end - begin), column.seed)
                                    : column.missing;
    out.values[r] = 1.0f;
  }
  return m;
}

// Rows encoded: fewer than m when row number `result` is bad.
int64_t encode_block(const pm_column& column, int64_t start, int64_t m, Slots out) {
  switch (column.kind) {
    case PM_COLUMN_CODES: return encode_code_types(column, start, m, out);
    case PM_COLUMN_STRINGS:
      return column.type == PM_INT32 ? encode_strings<int32_t>(column, start, m, out)
                                     : encode_strings<int64_t>(column, start, m, out);
    default: return encode_numbers(column, start, m, out);
  }
}

// Whether the arrays of a column are long enough for its kind.
bool is_sound(const pm_column& column) {
  switch (column.kind) {
    case PM_COLUMN_RAW:
    case PM_COLUMN_RAMP: return column.n_points == 2 && column.n_ids == 1;
    case PM_COLUMN_HAT: return column.n_points >= 2 && column.n_ids == column.n_points;
    case PM_COLUMN_BINS: return column.n_points >= 0 && column.n_ids == column.n_points + 1;
    case PM_COLUMN_CODES: return true;
    case PM_COLUMN_STRINGS: return column.type == PM_INT32 || column.type == PM_INT64;
    case PM_COLUMN_ROWS: return true;
    default: return false;
  }
}

struct Output {
  uint64_t* ids;
  float* values;
  uint16_t* fields;
  int64_t count;
};

// One row out of the slots, without its zeros.
void copy_slots(const uint64_t* ids, const float* values, const uint16_t* fields, int64_t width, Output& out) {
  int64_t k = out.count;
  for (int64_t s = 0; s < width; ++s) {
    const float value = values[s * kStride];
    out.ids[k] = ids[s * kStride];
    out.values[k] = value;
    out.fields[k] = fields[s];
    k += value != 0;
  }
  out.count = k;
}

// The field of each slot.
void fill_fields(const pm_column* columns, int64_t n_columns, uint16_t* fields) {
  for (int64_t c = 0; c < n_columns; ++c)
    for (int32_t s = pm_column_width(columns[c].kind); s > 0; --s) *fields++ = static_cast<uint16_t>(columns[c].field);
}

void copy_rows(const pm_column* columns, int64_t n_columns, int64_t row, Output& out) {
  for (int64_t c = 0; c < n_columns; ++c) {
    if (columns[c].kind != PM_COLUMN_ROWS) continue;
    const int64_t* offsets = static_cast<const int64_t*>(columns[c].offsets);
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      out.ids[out.count] = columns[c].ids[i];
      out.values[out.count] = columns[c].values[i];
      out.fields[out.count++] = static_cast<uint16_t>(columns[c].field);
    }
  }
}

}  // namespace

int32_t pm_column_width(int32_t kind) { return kind == PM_COLUMN_ROWS ? 0 : kind == PM_COLUMN_HAT ? 2 : 1; }

int32_t pm_encode(const pm_column* columns, int64_t n_columns, int64_t n, int64_t* indptr, uint64_t* ids,
                  float* values, uint16_t* fields, int64_t capacity, int64_t* bad) {
  int64_t width = 0, extra = 0;
  for (int64_t c = 0; c < n_columns; ++c) {
    bad[0] = 0, bad[1] = c;
    if (!is_sound(columns[c])) return PM_BAD_INPUT;
    width += pm_column_width(columns[c].kind);
    if (columns[c].kind == PM_COLUMN_ROWS) extra += static_cast<const int64_t*>(columns[c].offsets)[n];
  }
  if (capacity < width * (n + kStride) + extra) return PM_FULL;
  const int64_t scratch = capacity - width * kStride;
  fill_fields(columns, n_columns, fields + scratch);
  Output out{ids, values, fields, 0};
  indptr[0] = 0;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t m = n - start < kBlock ? n - start : kBlock;
    Slots slots{ids + scratch, values + scratch};
    for (int64_t c = 0; c < n_columns; ++c) {
      if (columns[c].kind == PM_COLUMN_ROWS) continue;
      const int64_t done = encode_block(columns[c], start, m, slots);
      if (done < m) {
        bad[0] = start + done, bad[1] = c;
        return PM_BAD_INPUT;
      }
      const int64_t step = kStride * pm_column_width(columns[c].kind);
      slots.ids += step, slots.values += step;
    }
    for (int64_t r = 0; r < m; ++r) {
      copy_slots(ids + scratch + r, values + scratch + r, fields + scratch, width, out);
      if (extra) copy_rows(columns, n_columns, start + r, out);
      indptr[start + r + 1] = out.count;
    }
  }
  return PM_OK;
}
