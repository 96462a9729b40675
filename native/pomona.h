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

#ifdef __cplusplus
}
#endif
