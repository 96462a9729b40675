// The whole interface of the compiled core.
//
// Rules: plain structs and arrays; the caller owns all memory; nothing is thrown, printed or kept between calls.
// Every function returns a status. Python calls through src/pomona/_native, which checks types and sizes.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PM_INTERFACE_VERSION 14
#define PM_API __attribute__((visibility("default")))

typedef enum {
  PM_OK = 0,
  PM_FULL = 1,       // an output array or a table is full: grow it and call again from where the call stopped
  PM_BAD_INPUT = 2,  // malformed data: see pm_error
  PM_NOT_FINITE = 3, // a number that is not finite came out of learning
  PM_PAUSE = 4       // as many examples were learnt as was asked for
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
// Copies some of the strings, one after the other: copy i ends at ends[i].
PM_API void pm_take_strings(const char* data, const int64_t* offsets, const uint32_t* numbers, int64_t n, char* out,
                            int64_t* ends);
// Bijective mixing of column numbers into ids, and back.
PM_API void pm_mix(const uint64_t* columns, int64_t n, uint64_t* ids);
PM_API void pm_unmix(const uint64_t* ids, int64_t n, uint64_t* columns);
// Lower halves of the ids of columns.
PM_API void pm_column_keys(const uint32_t* columns, int64_t n, uint32_t* keys);

// ---- ids to rows: an open-addressing map that numbers ids in order of first appearance ----
typedef struct {
  uint64_t id;
  uint64_t row_plus_one;  // 0: the entry is empty
} pm_map_entry;
typedef struct {
  pm_map_entry* entries;
  uint64_t capacity;  // a power of two
  uint64_t count;     // rows handed out so far
  uint64_t limit;     // no more rows than this
  uint64_t kept;      // the bits of an id that count
} pm_map;
#define PM_NO_ROW 0xffffffffu

// Rows of ids[0 … n); new ids get the next row and their position is appended to fresh (n entries). With `found`, rows
// other than PM_NO_ROW were found before and stay.
// PM_FULL: *done ids are mapped, and the map must grow before the rest. At `limit` new ids share old rows.
PM_API int32_t pm_map_insert(pm_map* map, const uint64_t* ids, int64_t n, int32_t found, uint32_t* rows, int64_t* fresh,
                             int64_t* n_fresh, int64_t* done);
// Rows of ids, PM_NO_ROW for those never inserted; the map does not change. Another thread may insert meanwhile: its ids
// are found or not.
PM_API int32_t pm_map_find(const pm_map* map, const uint64_t* ids, int64_t n, uint32_t* rows);
// Puts all entries of `from` into the empty map `to`.
PM_API int32_t pm_map_rehash(const pm_map* from, pm_map* to);

// ---- columns to rows: the same for the columns of a wide matrix, by a table instead of a map ----
typedef struct {
  uint32_t* row_plus_one;  // by column; 0: it has no row yet
  uint64_t n_columns;
  uint64_t count;  // rows handed out so far
  uint64_t limit;  // no more rows than this
} pm_columns;
// Rows of columns[*done … n); new columns get the next row and their position is appended to fresh (n entries).
// PM_FULL: column *done is beyond the table. At `limit` new columns share old rows.
PM_API int32_t pm_columns_insert(pm_columns* table, const uint32_t* columns, int64_t n, uint32_t* rows, int64_t* fresh,
                                 int64_t* n_fresh, int64_t* done);
// Rows of columns, PM_NO_ROW for those never inserted; nothing changes.
PM_API int32_t pm_columns_find(const pm_columns* table, const uint32_t* columns, int64_t n, uint32_t* rows);

// Positions of indices (uint64 ids if wide, else uint32 columns) whose place modulo n_seen (a power of two) had no bit set
// in `seen`; sets them. Returns how many.
PM_API int64_t pm_mark_new(uint64_t* seen, uint64_t n_seen, const void* indices, int32_t wide, int64_t n, int64_t* fresh);

// ---- labels ----
// codes[i] = first + step * (number of the class that labels[i] is), up to the first label that is none of them; returns
// how many labels have a code.
PM_API int64_t pm_label_codes(const double* labels, int64_t n, const double* classes, int64_t n_classes, double first,
                              double step, double* codes);

// ---- chunks ----
typedef struct {
  int64_t n;              // examples
  const int64_t* indptr;  // n + 1 positions in indices and values
  const void* indices;    // uint64 ids, or uint32 rows
  const float* values;
  const double* labels;    // NULL when predicting
  const double* weights;   // NULL: all 1
  const double* offsets;   // NULL: all 0
  const uint16_t* fields;  // NULL: one field, or with column_fields each column is its own
  int32_t wide;            // whether indices are uint64
  int32_t column_fields;
  const uint32_t* keys;  // of the indices, if they are columns (pm_column_keys); NULL: made where a table is hashed
} pm_chunk;

// ---- the online learner ----
// A slot belongs to one feature (monomial). With one output it is {w, G, s, z}: weight of the feature scaled to
// [-1, 1], sum of squared gradients, 1 / (largest |x| seen), and the dual variable of FTRL. With K outputs it is
// {s, 3 unused, w[P], G[P]} and z[P] for FTRL, where P is K rounded up to a multiple of four; or, where the classes share
// their evidence, {s, unused, G, unused, w[P]}.
typedef struct {
  void* slots;
  double* touched;   // value of `clock` when the slot was last regularised; NULL without l1 and l2
  uint64_t n_slots;  // a power of two when hashed
  int64_t hashed;    // slot = key modulo n_slots, the key of a product being the sum of its smallest row and the mixed
                     // others; otherwise slot = place of the (multi-)set of rows in the combinatorial number system
} pm_region;

// apple: the products of parents with base features stand in region 1. Parents are numbered in the order in which they were
// chosen; factors are the rows of the base features that occur in them, numbered by rising row.
typedef struct {
  uint32_t parent, row;
} pm_product;

#define PM_NEAR_ROWS 8192
typedef struct {
  int64_t n, n_rows, n_factors;
  uint32_t* factor_of_row;  // n_rows + 1: number of the factor, from 1; 0: no factor, as for all rows from the last on
  uint64_t* near_rows;      // PM_NEAR_ROWS bits; bit row % PM_NEAR_ROWS is set where that row is a factor
  uint32_t* single;         // n_factors: the parent that is this factor alone, from 1; 0: none
  int64_t* children;        // n + 1 positions in the next two: the parents that are parent i times a factor
  uint32_t* child_factor;
  uint32_t* child;
  uint64_t* excluded;  // n x words; bit f: the product with factor f belongs to another parent
  int64_t words;
  int64_t block;          // slot of a product: parent * block + row; 0: found by its key, the slot holding a tag, or, in a
                          // hashed region, at start_of_products (hash.h) + 4 row modulo n_slots
  const uint64_t* keys;   // n: sums of the mixed rows of the factors
  pm_product* owners;     // what stands in each slot that has a tag
  uint64_t used, limit;   // slots taken, and how many may be
  uint64_t room;          // PM_FULL when more would be taken; nothing is at the limit
  const uint8_t* joined;  // one a slot; 0: on trial, only its moments are taken. NULL: none is
  const uint8_t* fields;  // one a field; 0: its features are not multiplied. NULL: all are
  int64_t n_fields;
} pm_parents;

// Residual learning: how much products count. Learnt from what the base features leave they fit noise as well, and the mean
// of the predictions with them and without is better than either, on text and on clicks.
#define PM_PRODUCT_SHARE 0.5

typedef enum { PM_SQUARED, PM_LOGISTIC, PM_HINGE, PM_QUANTILE, PM_POISSON, PM_SOFTMAX } pm_loss;

typedef struct {
  pm_region regions[3];     // features of degree 1, 2 and 3; the first is hashed only where there are no products
  void* intercept;          // one slot, or NULL
  const int32_t* products;  // n_products x 3 fields to multiply; PM_ALL_FIELDS, PM_NO_FIELD (degree 2)
  int64_t n_products;
  pm_parents* parents;  // NULL: not apple
  double* moments[2];   // by slot of regions 0 and 1: sums of h m^2, h r^2 m^2, 1 and, by output, h r m, where m is the
                        // feature and r the derivative of the loss. NULL: not wanted
  int32_t squares;    // whether a feature may be multiplied with itself
  int32_t n_outputs;  // 1, or the number of classes
  int32_t shared;     // whether the classes of a feature share one sum of squared gradients (softmax, adaptive updates)
  int32_t stride;     // numbers in a slot
  int32_t real_bytes; // 4 or 8
  int32_t loss;
  int32_t adaptive, normalized, invariant, ftrl;
  int32_t peer_order;       // rescale after predicting, as Vowpal Wabbit does (for comparison only)
  int32_t bounded;          // clip predictions to the range of the labels seen
  int32_t gentle;           // weights follow the scales of their features half of the way (adaptive updates)
  int32_t residual;         // apple: base features learn as if alone, products what these leave
  int32_t fresh;            // residual: whether the examples were not learnt before, so that they can judge products
  double learning_rate, l1, l2, quantile, ftrl_beta;
  double pause_at;  // number of examples, over all calls, after which to stop; 0: none
  // What learning changes:
  double examples, weight_sum, scale_sum, clock, lowest, highest;
  double product_weight_sum, product_scale_sum;  // residual: those of products, the others being of base features
  double product_gain;     // residual: how much products count, as a multiple of PM_PRODUCT_SHARE
  double without, halved, with;  // residual: sums of the losses of predictions without products, half of them, and all
  double loss_sum, loss_weight;
  double mistakes;    // importance of the examples whose class was predicted wrongly
  uint64_t features;  // generated features so far
  uint64_t nonzeros;  // apple: base features of all examples, of the fields that take part
} pm_online;
#define PM_ALL_FIELDS (-1)
#define PM_NO_FIELD (-2)

// Bytes of scratch that the largest example of the chunk needs.
PM_API int64_t pm_online_scratch_bytes(const pm_online* model, const pm_chunk* chunk);
// Learns examples order[*done … n_order) (all, in order, when order is NULL; n_order = n then). predictions: n x n_outputs,
// made just before learning. PM_FULL: a table is too small for example order[*done], or its class is new. PM_NOT_FINITE: its
// prediction is not a finite number. PM_PAUSE: `pause_at` is reached, and example order[*done] comes next.
PM_API int32_t pm_online_learn(pm_online* model, const pm_chunk* chunk, const int64_t* order, int64_t n_order,
                               void* scratch, int64_t scratch_bytes, double* predictions, int64_t* done);
PM_API int32_t pm_online_predict(const pm_online* model, const pm_chunk* chunk, void* scratch, int64_t scratch_bytes,
                                 double* predictions);
// The features of examples *done …, expanded, one example after the other: indptr[e + 1] is where those of example e end.
// Columns are slots; those of a region come after those of the regions before it. PM_FULL: `capacity` features are not
// enough for example *done.
PM_API int32_t pm_online_expand(const pm_online* model, const pm_chunk* chunk, void* scratch, int64_t scratch_bytes,
                                int64_t* indptr, uint32_t* columns, float* values, int64_t capacity, int64_t* done);
// Which features deserve to be parents of apple: by the weight of the feature as it is in the data, by that of the scaled
// feature, or by this times the root of its evidence. Products that count less are scored as if they counted in full.
// (Shrinking that is still to come, l1 and l2, is not made up for.)
typedef enum { PM_SCORE_WEIGHT, PM_SCORE_SCALED, PM_SCORE_EVIDENCE } pm_score;
// Slots of a region, rising, with the `wanted` best scores above zero, and all that tie with the last. Left out are the
// `excluded` slots, which rise, and the products of parents that are `complete` (one a parent; NULL: none is). Returns how
// many there are; only the first `capacity` are written.
PM_API int64_t pm_best_slots(const pm_online* model, int32_t region, int32_t score, int64_t wanted,
                             const int64_t* excluded, int64_t n_excluded, const uint8_t* complete, int64_t* slots,
                             float* scores, int64_t capacity);
// Moves the slots of a combinatorial region of this degree over n_rows rows into a hashed one (both of `stride`).
PM_API int32_t pm_online_rehash(const pm_online* model, int32_t degree, int64_t n_rows, pm_region* to);

// Fills factor_of_row … excluded of `parents`, which are zero, from the links of all parents: pairs of a parent, -1 for none,
// and a row whose product it is. factors: n_factors rows, rising. barred: n_barred parents, then as many rows of factors,
// whose products belong to other parents.
PM_API int32_t pm_link_parents(const int64_t* links, const int64_t* factors, const int64_t* barred, int64_t n_barred,
                               pm_parents* parents);
// Moves the products in these slots of a region, found as `parents` says, to an empty region where they are found by key or
// hashed (n_slots: a power of two); of those that share a slot the last stays. Slots have `slot_bytes`, at `tag_byte` the
// tag. owners: what stands in each new slot, places: where each product stands now.
PM_API int32_t pm_move_products(const pm_region* from, const pm_parents* parents, const int64_t* used, int64_t n,
                                int64_t slot_bytes, int64_t tag_byte, const pm_region* to, pm_product* owners,
                                uint32_t* places);
// Where the products with these keys stand in a region where they are found by key; -1: nowhere.
PM_API int32_t pm_find_products(const pm_region* region, int64_t slot_bytes, int64_t tag_byte, const uint64_t* keys,
                                int64_t n, int64_t* places);

// ---- text to rows: VW and svmlight ----
// Offsets into the text are 32 bits wide: a text is at most PM_MAX_TEXT bytes. It is whole lines: its last byte is '\n'.
#define PM_MAX_TEXT (1ll << 31)
#define PM_MAX_NAMESPACES 65536

typedef struct {
  int32_t skip_bad;               // go on after a malformed line: count it, keep the first error
  int32_t ngrams;                 // VW: 1 is words alone
  int32_t skips;                  // VW: words an n-gram may leave out; ngrams + skips ≤ 16
  int32_t n_gram_namespaces;      // VW: namespaces that the n-grams apply to; 0: all
  const uint64_t* gram_namespaces;  // hashes of their names (pm_hash with seed 0)
} pm_text_options;

typedef struct {
  // Sizes of the arrays below, set by the caller.
  int64_t max_rows, max_features, max_namespaces;
  int64_t n_feature_slots, n_namespace_slots;  // powers of two, above max_features and max_namespaces
  // One entry a row (indptr: one more).
  int64_t* indptr;
  double* labels;        // NaN where there is none
  double* weights;       // VW importance, 1 where there is none
  double* offsets;       // VW base, 0 where there is none
  uint32_t* spans;       // start and size in the text: of the tag (VW), of the label (svmlight); 2 a row
  // One entry a feature.
  uint64_t* ids;
  float* values;
  uint16_t* fields;      // VW: number of the namespace in this text; not written where there is only one
  uint32_t* starts;      // VW: where the name begins in the text
  uint16_t* grams;       // VW: bit i for each word after the name's first that belongs to it; null without n-grams
  // VW: one entry a namespace, in order of first appearance.
  uint64_t* namespace_hashes;
  uint32_t* namespace_spans;  // start and size of the name; 2 a namespace
  // Scratch. feature_slots may hold anything (the parser clears what it uses), namespace_slots only zeros.
  uint32_t* feature_slots;
  uint32_t* namespace_slots;
  // What came out.
  int64_t n_rows, n_features, n_namespaces, n_lines, n_bad;
  int32_t has_weights, has_offsets, has_tags, has_label_lists;
  int64_t first_line;    // lines before the first row
  int64_t n_cleared;     // feature_slots in use
  pm_error error;        // of the first malformed line
} pm_text_rows;

// Upper bounds for one text: lines, features without n-grams, namespaces named.
PM_API void pm_text_bounds(const char* text, int64_t size, int64_t* lines, int64_t* features, int64_t* bars);
// PM_BAD_INPUT: rows->error says where and why. PM_FULL: an array is smaller than the bounds above ask for.
PM_API int32_t pm_parse_vw(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows);
PM_API int32_t pm_parse_svmlight(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows);

// Labels of the first lines of a text that ends in a newline, at most max_rows. Returns how many; -1 where a line does
// not simply begin with a number and a blank, so that a parser must tell.
PM_API int64_t pm_text_labels(const char* text, int64_t size, int64_t max_rows, double* labels);

// Names of n features as "namespace:name", the words of an n-gram joined by blanks, one after the other: ends[i] is where
// the i-th ends in `out`. The arrays are those of pm_text_rows. Returns the bytes needed; nothing beyond `capacity` is
// written.
PM_API int64_t pm_vw_names(const char* text, int64_t size, const uint32_t* starts, const uint16_t* fields,
                           const uint16_t* grams, const uint32_t* namespace_spans, const int64_t* positions, int64_t n,
                           char* out, int64_t capacity, int64_t* ends);

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

#define PM_ENCODE_SCRATCH 264

// Features a column may give in each row (rows: not counted).
PM_API int32_t pm_column_width(int32_t kind);
// CSR rows of n examples; zero values are left out. `capacity` counts entries of ids, values and fields: the widths
// of all columns times n, plus the entries of the `rows` columns, plus PM_ENCODE_SCRATCH times the widths.
// PM_BAD_INPUT: bad[0] is the row and bad[1] the column with a value that is not finite or not in its dictionary.
PM_API int32_t pm_encode(const pm_column* columns, int64_t n_columns, int64_t n, int64_t* indptr, uint64_t* ids,
                         float* values, uint16_t* fields, int64_t capacity, int64_t* bad);

// ---- text to words (tokens.cpp) ----
// Words of each string: starts and ends are offsets into data, ids the hashes, word_rows[i] … word_rows[i + 1) the
// words of string i. Strings are laid out as in Arrow and lower case already.
PM_API int32_t pm_words(const char* data, int64_t n_bytes, const int64_t* offsets, int64_t n, uint64_t seed,
                        int64_t* word_rows, int64_t* starts, int64_t* ends, uint64_t* ids, int64_t capacity);
// Words and n-grams (up to n_gram words, passing over up to `skips` words in all) of each string as CSR rows without
// duplicates, sorted by id; the value is log(1 + count), each row scaled to length 1.
// PM_FULL: capacity is too small and rows[0 … *done) are complete.
PM_API int32_t pm_word_rows(const char* data, int64_t n_bytes, const int64_t* offsets, int64_t n, uint64_t seed,
                            int32_t n_gram, int32_t skips, int64_t* rows, uint64_t* ids, float* values,
                            int64_t capacity, int64_t* done);

// ---- fingerprints and order of examples (rows.cpp) ----
// Hash of the features of each example and of its label, where there are labels. It does not depend on the order of
// the features, and zero values count as absent.
PM_API int32_t pm_hash_rows(const pm_chunk* chunk, uint64_t* hashes);
// Whether the indices of every example, 32 bits wide, rise.
PM_API int32_t pm_rows_rise(const pm_chunk* chunk);
// Whether the n + 1 starts of examples begin at 0 or more and never fall.
PM_API int32_t pm_starts_rise(const int64_t* indptr, int64_t n);
// Copies the features of all examples, those of each by rising index (of equal ones in their order), to arrays as long as
// those of the chunk between the first of them and the last.
PM_API int32_t pm_sort_rows(const pm_chunk* chunk, uint32_t* indices, float* values, uint16_t* fields);
// Copies examples order[0 … n), with labels and with weights and fields where there are any, one after the other. The
// caller has checked the order and made the arrays large enough.
PM_API int32_t pm_gather_rows(const pm_chunk* chunk, const int64_t* order, int64_t n, int64_t* indptr, void* indices,
                              float* values, uint16_t* fields, double* labels, double* weights);

// ---- tuples of coded attributes: counting and learning (tuples.cpp, tuples_kernel.cpp) ----
// A row of codes has one code an attribute. A tuple is up to `order` attributes; its value combinations are cells,
// numbered by mixed radix: cell = starts[t] + sum over positions p of code[columns[p][t]] * strides[p][t]. The first
// stride is 1, and shorter tuples have strides of 0. Cells that occur are features; a feature has a row of parameters, 1 … n_rows, and row 0 stands for
// all cells that do not occur.
#define PM_MAX_ORDER 8
typedef enum {
  PM_TUPLES_CELLS = 0,   // row = cell + 1
  PM_TUPLES_RANKED = 1,  // row = rank of the cell's bit (eq. 3.1), 0 where it is not set
  PM_TUPLES_HASHED = 2   // row = 1 + hash(cell) mod n_rows (a power of two): collides, for comparison
} pm_tuple_index;

typedef struct {
  uint64_t bits;
  uint64_t rank;  // bits set in the words before
} pm_rank_word;

typedef struct {
  int32_t order;
  int32_t n_columns;
  int32_t index;            // pm_tuple_index
  int32_t reserved;
  int64_t n_tuples;
  const int32_t* columns;   // order x n_tuples
  const uint32_t* strides;  // order x n_tuples
  const uint64_t* starts;   // n_tuples + 1; a tuple has less than 2^32 cells
  const uint32_t* sizes;    // n_columns: codes are less than these
  pm_rank_word* words;      // one for 64 cells
  uint64_t n_words;
  uint64_t n_rows;
} pm_tuples;

// Parameters of one feature: for all outputs side by side (`padded` of them, a multiple of four) w as float, then the
// upper halves of G and of L in 32 bits; with one output {w, G, L, unused}, all float. L of row 0 is 0.
typedef struct {
  float* slots;             // n_rows + 1 rows
  float* bias;              // one more row: the intercept
  int32_t n_classes;
  int32_t n_outputs;        // 1 (two classes) or n_classes
  int32_t padded;           // 1, 4, or a multiple of eight
  float eta, l2;
  float reserved;
  uint64_t examples;        // learnt so far: fixes the random rounding
  double loss_sum;          // progressive: each example is predicted before it is learnt
  double errors;
} pm_tuple_model;

// All functions check tuples and codes first: PM_BAD_INPUT.
// Bytes of scratch for one call.
PM_API int64_t pm_tuples_scratch_bytes(const pm_tuples* tuples, int32_t padded);
// Counts bits into ranks; sets n_rows.
PM_API int32_t pm_tuples_rank(pm_tuples* tuples);
// Sets the bits of the cells that occur. With parents, a cell counts only if all its parts do in the tuples one order
// lower: parents[p][t] is the number of the part without position p, or -1.
PM_API int32_t pm_tuples_explore(pm_tuples* tuples, const uint32_t* codes, int64_t n, const pm_tuples* lower,
                                 const int32_t* parents, void* scratch);
// Rows of all tuples: n x n_tuples.
PM_API int32_t pm_tuples_rows(const pm_tuples* tuples, const uint32_t* codes, int64_t n, uint32_t* rows);
// counts[row * n_classes + label] += 1, row 0 included.
PM_API int32_t pm_tuples_count(const pm_tuples* tuples, const uint32_t* codes, const int32_t* labels, int64_t n,
                               int32_t n_classes, uint32_t* counts);
// One step of AdaGrad on the softmax loss for each example, in order. PM_NOT_FINITE: a score is not a finite number.
PM_API int32_t pm_tuples_learn(const pm_tuples* tuples, pm_tuple_model* model, const uint32_t* codes,
                               const int32_t* labels, int64_t n, void* scratch);
// Scores n x n_outputs: bias[k] + sum over tuples of weights[row * stride + k].
PM_API int32_t pm_tuples_predict(const pm_tuples* tuples, const float* weights, int64_t stride, const float* bias,
                                 int32_t n_outputs, const uint32_t* codes, int64_t n, float* scores);
// drops[t] += loss without tuple t minus loss with all, summed over the examples.
PM_API int32_t pm_tuples_drop(const pm_tuples* tuples, const float* weights, int64_t stride, const float* bias,
                              int32_t n_outputs, const uint32_t* codes, const int32_t* labels, int64_t n,
                              double* drops, void* scratch);

// ---- supervised cuts of a numeric attribute (discretize.cpp) ----
// Fayyad and Irani's entropy cuts with their MDL stop. counts: n_values x n_classes, one row a distinct value, rising.
// cuts[i]: the cut lies between values cuts[i] and cuts[i] + 1; rising. At most n_values - 1 of them; returns how many, or
// -1 for bad sizes. scratch: pm_mdl_scratch_bytes.
PM_API int64_t pm_mdl_scratch_bytes(int64_t n_values, int32_t n_classes);
PM_API int64_t pm_mdl_cuts(const uint32_t* counts, int64_t n_values, int32_t n_classes, int64_t* cuts, void* scratch);
// The bin of each value: how many cuts are less than it; n_cuts + 1 for NaN.
PM_API void pm_bin_codes(const double* values, int64_t n, const double* cuts, int64_t n_cuts, uint32_t* codes,
                         int64_t stride);

#ifdef __cplusplus
}
#endif
