// Columns of a table made of arbitrary bytes: numbers of every type with and without a bitmap, codes, strings whose
// offsets may be wrong.
#include <algorithm>
#include <cstring>

#include "text.h"

const char* const kFuzzSeeds[] = {
    "\x01\x09\x05 some bytes that stand for doubles, four of them or more, who knows",
    "\x02\x08\x07 0.5 floats and a bitmap \xff\x0f\xff\x0f\x01\x02\x03\x04\x05\x06\x07\x08",
    "\x04\x02\x03 codes \x01\x02\x03\x04 of a dictionary \x7f\x80\xff",
    "\x05\x02\x09 strings \x01\x01\x01\x01\x02\x02\x02\x02 and what they are cut from",
    "\x05\x03\x02 wide offsets \x01\x01\x01\x01\x01\x01\x01\x01 \x02\x02",
    nullptr,
};

namespace {

constexpr int64_t kBytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 1};  // of the number types

// Bytes of the input as an array of its own, repeated where there are too few.
std::unique_ptr<char[]> bytes_of(const uint8_t* data, size_t size, int64_t n) {
  auto found = pm_fuzz::array<char>(n);
  for (int64_t i = 0; i < n; ++i) found[i] = static_cast<char>(data[static_cast<size_t>(i) % size]);
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using pm_fuzz::array;
  using pm_fuzz::require;
  if (size < 4) return 0;
  pm_column column{};
  column.kind = data[0] % PM_COLUMN_ROWS;
  column.type = data[1] % (PM_BITS + 1);
  const int64_t n = data[2] % 2 ? data[2] / 2 : 4 * data[2];
  column.first = data[3] % 8;
  column.marks_missing = data[3] >> 3 & 1;
  column.missing = 7;
  column.seed = 11;
  const int64_t rows = column.first + n;
  const bool strings = column.kind == PM_COLUMN_STRINGS;
  if (strings) column.type = data[1] % 2 ? PM_INT32 : PM_INT64;

  const auto numbers = bytes_of(data, size, strings ? 0 : rows * kBytes[column.type] + 1);
  const auto valid = bytes_of(data + 1, size - 1, rows / 8 + 1);
  const auto text = bytes_of(data, size, static_cast<int64_t>(size));
  const auto offsets = bytes_of(data + 3, size - 3, (rows + 1) * 8);
  column.data = strings ? static_cast<const void*>(text.get()) : numbers.get();
  column.n_bytes = static_cast<int64_t>(size);
  if (data[3] >> 4 & 1) column.valid = reinterpret_cast<const uint8_t*>(valid.get());
  const auto narrow = array<int32_t>(rows + 1);
  const auto wide = array<int64_t>(rows + 1);
  for (int64_t i = 0; i <= rows; ++i) {
    int64_t offset;
    std::memcpy(&offset, offsets.get() + 8 * i, 8);
    const bool tame = data[3] >> 5 & 1;
    wide[i] = tame ? std::min(i, column.n_bytes) : offset;
    narrow[i] = static_cast<int32_t>(wide[i]);
  }
  column.offsets = column.type == PM_INT32 ? static_cast<const void*>(narrow.get()) : wide.get();

  column.n_points = column.kind == PM_COLUMN_RAW || column.kind == PM_COLUMN_RAMP ? 2 : 2 + data[1] % 20;
  column.n_ids = column.kind == PM_COLUMN_HAT || column.kind == PM_COLUMN_CODES ? column.n_points
                 : column.kind == PM_COLUMN_BINS                               ? column.n_points + 1
                                                                               : 1;
  const auto points = array<double>(column.n_points);
  for (int64_t i = 0; i < column.n_points; ++i) points[i] = data[static_cast<size_t>(i) % size] + 256.0 * static_cast<double>(i);
  const auto ids = array<uint64_t>(column.n_ids);
  for (int64_t i = 0; i < column.n_ids; ++i) ids[i] = static_cast<uint64_t>(i) + 100;
  column.points = points.get();
  column.ids = ids.get();

  const int64_t capacity = pm_column_width(column.kind) * (n + PM_ENCODE_SCRATCH);
  const auto indptr = array<int64_t>(n + 1);
  const auto out_ids = array<uint64_t>(capacity);
  const auto values = array<float>(capacity);
  const auto fields = array<uint16_t>(capacity);
  int64_t bad[2];
  const int32_t status =
      pm_encode(&column, 1, n, indptr.get(), out_ids.get(), values.get(), fields.get(), capacity, bad);
  if (status == PM_BAD_INPUT) {
    require(0 <= bad[0] && bad[0] <= n && bad[1] == 0);
    return 0;
  }
  require(status == PM_OK && indptr[0] == 0 && indptr[n] <= capacity);
  for (int64_t i = 0; i < n; ++i) require(indptr[i] <= indptr[i + 1]);
  for (int64_t i = 0; i < indptr[n]; ++i) require(std::isfinite(values[i]) && values[i] != 0);
  return 0;
}
