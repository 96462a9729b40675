// The whole interface of the compiled core.
//
// Rules: plain structs and arrays; the caller owns all memory; nothing is thrown, printed or kept between calls.
// Every function returns a status. Python calls through src/pomona/_native.py, which checks types and sizes.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PM_INTERFACE_VERSION 1
#define PM_API __attribute__((visibility("default")))

typedef enum {
  PM_OK = 0,
  PM_FULL = 1,       // an output array or a table is full: grow it and call again from where the call stopped
  PM_BAD_INPUT = 2,  // malformed data: see pm_error
  PM_NOT_FINITE = 3  // a number that is not finite came out of learning
} pm_status;

// Where and why malformed data was refused. Offsets are in bytes from the start of the text that was passed.
typedef struct {
  int64_t line_start;    // offset of the line
  int64_t line_number;   // lines before it in this text
  int64_t column;        // bytes into the line, from 0
  char message[240];     // "expected … , got …", UTF-8, ends in NUL
} pm_error;

PM_API int32_t pm_interface_version(void);
// The instruction set of the chosen kernels: "baseline" or "v3".
PM_API const char* pm_instruction_set(void);

// ---- names to ids ----
PM_API uint64_t pm_hash(const char* bytes, int64_t n, uint64_t seed);
// Strings laid out as in Arrow: string i is data[offsets[i] … offsets[i + 1]).
PM_API void pm_hash_strings(const char* data, const int64_t* offsets, int64_t n, uint64_t seed, uint64_t* ids);
// Bijective mixing of column numbers into ids, and back.
PM_API void pm_mix(const uint64_t* columns, int64_t n, uint64_t* ids);
PM_API void pm_unmix(const uint64_t* ids, int64_t n, uint64_t* columns);

// ---- ids to rows: an open-addressing map that numbers ids in order of first appearance ----
typedef struct {
  uint64_t* keys;     // capacity entries; meaningful where rows[i] != PM_NO_ROW
  uint32_t* rows;     // capacity entries, PM_NO_ROW where empty
  uint64_t capacity;  // a power of two
  uint64_t count;     // rows handed out so far
  uint64_t limit;     // no more rows than this
} pm_map;
#define PM_NO_ROW 0xffffffffu

// Rows of ids[0 … n); new ids get the next row and their position is appended to fresh (n entries).
// PM_FULL: *done ids are mapped, and the map must grow before the rest. At `limit` new ids share old rows.
PM_API int32_t pm_map_insert(pm_map* map, const uint64_t* ids, int64_t n, uint32_t* rows, int64_t* fresh,
                             int64_t* n_fresh, int64_t* done);
// Rows of ids, PM_NO_ROW for those never inserted; the map does not change.
PM_API int32_t pm_map_find(const pm_map* map, const uint64_t* ids, int64_t n, uint32_t* rows);
// Puts all entries of `from` into the empty map `to`.
PM_API int32_t pm_map_rehash(const pm_map* from, pm_map* to);

// ---- columns of a table to features (encode.cpp) ----
typedef enum {
  PM_COLUMN_RAW = 0,      // (x - points[0]) * points[1]
  PM_COLUMN_HAT = 1,      // shares of the two neighbouring knots in points, clamped outside
  PM_COLUMN_BINS = 2,     // the bin of x; bin i ends at points[i], which belongs to it
  PM_COLUMN_RAMP = 3,     // 0 at points[0], 1 at points[1], linear between, clamped outside
  PM_COLUMN_CODES = 4,    // a dictionary: ids[code]
  PM_COLUMN_STRINGS = 5,  // the hash of the text
  PM_COLUMN_ROWS = 6      // rows made before, as CSR: offsets, ids, values
} pm_column_kind;

typedef enum {
  PM_INT8 = 0, PM_INT16, PM_INT32, PM_INT64, PM_UINT8, PM_UINT16, PM_UINT32, PM_UINT64, PM_FLOAT32, PM_FLOAT64,
  PM_BITS
} pm_number_type;

// One column, its data laid out as in Arrow. Missing: not valid, NaN, an empty text.
typedef struct {
  int32_t kind;            // pm_column_kind
  int32_t type;            // numbers and codes: pm_number_type; strings: PM_INT32 or PM_INT64, the type of offsets
  int64_t first;           // elements to pass over before row 0
  int64_t n_bytes;         // strings: length of data
  int64_t n_points;        // entries of points
  int64_t n_ids;           // entries of ids
  const void* data;        // numbers, codes or characters
  const void* offsets;     // strings; rows: int64
  const uint8_t* valid;    // bitmap; null: all are
  const double* points;
  const uint64_t* ids;     // one a feature that the column can give
  const float* values;     // rows
  uint64_t missing;        // id of the feature "is missing"
  uint64_t seed;           // strings
  int32_t marks_missing;   // 0: a missing value gives nothing
  int32_t field;
} pm_column;

#define PM_ENCODE_BLOCK 256

// Slots a column takes in each row of the scratch part (rows: none).
PM_API int32_t pm_column_width(int32_t kind);
// CSR rows of n examples; zero values are left out. `capacity` counts entries of ids, values and fields: the widths
// of all columns times n, plus the entries of the `rows` columns, plus PM_ENCODE_BLOCK times the widths as scratch.
// PM_BAD_INPUT: bad[0] is the row and bad[1] the column with a value that is not finite or not in its dictionary.
PM_API int32_t pm_encode(const pm_column* columns, int64_t n_columns, int64_t n, int64_t* indptr, uint64_t* ids,
                         float* values, uint16_t* fields, int64_t capacity, int64_t* bad);

// ---- text to words (tokens.cpp) ----
// Bounds of the words of each string: starts and ends are offsets into data, word_rows[i] … word_rows[i + 1) are the
// words of string i. Strings are laid out as in Arrow and lower case already.
PM_API int32_t pm_words(const char* data, int64_t n_bytes, const int64_t* offsets, int64_t n, int64_t* word_rows,
                        int64_t* starts, int64_t* ends, int64_t capacity);
// Words and n-grams (up to n_gram words, passing over up to `skips` words in all) of each string as CSR rows without
// duplicates, sorted by id; the value is log(1 + count), each row scaled to length 1.
// PM_FULL: capacity is too small and rows[0 … *done) are complete.
PM_API int32_t pm_text_rows(const char* data, int64_t n_bytes, const int64_t* offsets, int64_t n, uint64_t seed,
                            int32_t n_gram, int32_t skips, int64_t* rows, uint64_t* ids, float* values,
                            int64_t capacity, int64_t* done);

#ifdef __cplusplus
}
#endif
