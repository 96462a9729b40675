// What the text parsers share: numbers, errors and the merging of duplicate features.
//
// All scanning relies on the text ending in '\n', which is a delimiter everywhere: no loop needs to look for the end
// of the text. Loads of 8 or 16 bytes at once are made only where that many bytes are left.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

#include "pomona.h"

namespace pm {

// 10^0 … 10^22 are exact in a double, the inverses are not.
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr float kFloatPowers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
constexpr double kInverses[] = {1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8, 1e-9,
                                1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18};
constexpr double kSigns[] = {1.0, -1.0};
constexpr float kFloatSigns[] = {1.0f, -1.0f};
constexpr uint64_t kWholePowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads up to 8 digits at once and appends them to `number`; returns how many. Without a branch on their count, since
// that is what a branch predictor cannot guess.
inline int read_digits(const char* p, uint64_t& number) {
  uint64_t word;
  std::memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  const uint64_t digits = word - 0x3030303030303030ull;
  const uint64_t other = ((word + 0x4646464646464646ull) | digits | word) & 0x8080808080808080ull;
  const int count = other ? __builtin_ctzll(other) >> 3 : 8;
  if (count == 0) return 0;
  uint64_t v = digits << (8 * (8 - count));
  v = (v * 10) + (v >> 8);
  v = (((v & 0x000000ff000000ffull) * 0x000f424000000064ull) +
       (((v >> 16) & 0x000000ff000000ffull) * 0x0000271000000001ull)) >> 32;
  number = number * kWholePowers[count] + static_cast<uint32_t>(v);
  return count;
}

// A decimal number as sign · mantissa / 10^fraction, with at most 18 digits.
struct Decimal {
  int64_t mantissa;
  int fraction;
  bool negative;
};

// Whether [p, stop) is a number of the usual form. Others, among them those with an exponent and those near the end of
// the text, are left to the general way. At `stop` there is a delimiter, so no digit is taken from behind it.
inline bool read_decimal(const char* p, const char* stop, const char* text_end, Decimal& d) {
  d.negative = *p == '-';
  p += *p == '-' || *p == '+';
  if (text_end - p < 32) return false;
  uint64_t m;
  int whole = 1, fraction = 0;
  if (p[1] == '.' && is_digit(*p)) {
    m = static_cast<uint64_t>(*p++ - '0');
  } else {
    m = 0;
    whole = read_digits(p, m);
    p += whole;
    if (whole == 0 || whole == 8) return false;
  }
  if (*p == '.') {
    fraction = read_digits(++p, m);
    p += fraction;
    if (fraction == 8) {
      if (whole <= 2) {
        const int more = read_digits(p, m);
        p += more;
        fraction += more;
      }
      for (; whole + fraction < 18 && is_digit(*p); ++fraction) m = m * 10 + static_cast<uint64_t>(*p++ - '0');
    }
  }
  d.mantissa = static_cast<int64_t>(m);
  d.fraction = fraction;
  return p == stop;
}

// The general, exact way: whether [p, stop) is a number. One that is too large gives infinity.
bool read_double_slowly(const char* p, const char* stop, double& value);

inline bool read_double(const char* p, const char* stop, const char* text_end, double& value) {
  const bool negative = *p == '-';
  if (stop - p - negative == 1 && is_digit(stop[-1])) {  // as labels are
    value = (stop[-1] - '0') * kSigns[negative];
    return true;
  }
  Decimal d;
  // One rounding alone, hence exact, while the mantissa fits the 53 bits of a double.
  if (!read_decimal(p, stop, text_end, d) || d.mantissa > 1ll << 53) return read_double_slowly(p, stop, value);
  value = static_cast<double>(d.mantissa) / kPowers[d.fraction] * kSigns[d.negative];
  return true;
}

#if defined(__SSE4_1__)
// The bytes of `text` at eight places, the first the most significant, as a number, the lowest of four; false where one is
// no digit. A place of -1 stands for zero.
inline bool digits_to_number(const char* text, const int8_t* places, __m128i& number) {
  const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(text));
  const __m128i d = _mm_shuffle_epi8(_mm_sub_epi8(eight, _mm_set1_epi8('0')),
                                     _mm_load_si128(reinterpret_cast<const __m128i*>(places)));
  const __m128i pairs = _mm_maddubs_epi16(d, _mm_set1_epi16(1 << 8 | 10));
  const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
  const __m128i all = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10000));
  number = all;
  return _mm_movemask_epi8(_mm_adds_epu8(d, _mm_set1_epi8(118))) == 0;  // more than nine becomes negative
}
// By count: the last digits of eight bytes; and those around the point of d.ddd…
alignas(16) constexpr int8_t kLastDigits[9][16] = {
    {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, -1, -1, -1, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, -1, -1, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, -1, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1}};
alignas(16) constexpr int8_t kAroundPoint[7][16] = {
    {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, -1, -1, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, -1, 4, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, 3, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, 2, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, 1, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1},
    {-1, 0, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1}};
#endif

// The `count` bytes (1 to 8) before `stop` as a whole number; false where one is no digit. There are 8 bytes before it.
inline bool read_digits_before(const char* stop, int64_t count, uint32_t& number) {
#if defined(__SSE4_1__)
  __m128i all;
  const bool read = digits_to_number(stop - 8, kLastDigits[count], all);
  number = static_cast<uint32_t>(_mm_cvtsi128_si32(all));
  return read;
#else
  uint64_t word;
  std::memcpy(&word, stop - 8, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  const int shift = static_cast<int>(8 * (8 - count));  // what stands before the digits is cleared
  const uint64_t text = (word >> shift) << shift;
  const uint64_t d = text - ((0x3030303030303030ull >> shift) << shift);
  const uint64_t bad = ((text + ((0x4646464646464646ull >> shift) << shift)) | d | text) & 0x8080808080808080ull;
  uint64_t v = (d * 10) + (d >> 8);
  v = (((v & 0x000000ff000000ffull) * 0x000f424000000064ull) +
       (((v >> 16) & 0x000000ff000000ffull) * 0x0000271000000001ull)) >> 32;
  number = static_cast<uint32_t>(v);
  return bad == 0;
#endif
}

// d.ddd… with `count` (1 to 6) digits after the point, which end before `stop`, as a whole number in which the point is
// left out; false where one is no digit, or all are zero. There are 8 bytes before `stop`.
inline bool read_decimal_before(const char* stop, int64_t count, double& number) {
#if defined(__SSE4_1__)
  __m128i all;
  const bool read = digits_to_number(stop - 8, kAroundPoint[count], all);
  number = _mm_cvtsd_f64(_mm_cvtepi32_pd(all));
  return read && _mm_cvtsi128_si32(all) != 0;
#else
  uint32_t fraction;
  const uint32_t whole = static_cast<uint32_t>(static_cast<unsigned char>(stop[-count - 2])) - '0';
  if (!read_digits_before(stop, count, fraction) || whole > 9) return false;
  number = static_cast<double>(static_cast<int32_t>(fraction + whole * static_cast<uint32_t>(kWholePowers[count])));
  return number != 0;
#endif
}

// ± 10^-k, for the fast way below.
constexpr double kSignedInverses[2][8] = {{1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6},
                                          {-1e0, -1e-1, -1e-2, -1e-3, -1e-4, -1e-5, -1e-6}};

// The most common forms: one digit, and [-]d.ddd… with up to 6 digits after the point, of which the last 8 bytes before
// `stop`, which must be there, hold all. It is always finite, and never zero, so that nothing else need be asked. The
// product is off by less than one part in 2^52; no quotient of seven digits and a power of ten up to 10^6 comes as near to
// the middle between two floats, or is one, so that it is rounded as the quotient would be.
inline bool read_short_float(const char* p, const char* stop, float& value) {
  const int64_t negative = *p == '-';
  const int64_t digits = stop - p - negative - 2;  // after the point
  // The length is tested first: an empty number at the very end of the text has no next byte.
  if (static_cast<uint64_t>(digits - 1) > 5 || p[negative + 1] != '.') {
    value = static_cast<float>(*p - '0');  // one digit, as counts and flags have it
    return stop - p == 1 && static_cast<unsigned char>(*p - '1') < 9;
  }
  double number;
  if (!read_decimal_before(stop, digits, number)) return false;
  value = static_cast<float>(number * kSignedInverses[negative][digits]);
  return true;
}

// The number as a double, rounded to a float. Infinity where it is too large.
inline bool read_float(const char* p, const char* stop, const char* text_end, float& value) {
  Decimal d;
  if (read_decimal(p, stop, text_end, d)) {
    // Both numbers are exact as floats, so the quotient is rounded once.
    if (d.mantissa < 1 << 24 && d.fraction <= 10) {
      value = static_cast<float>(static_cast<int32_t>(d.mantissa)) / kFloatPowers[d.fraction] * kFloatSigns[d.negative];
      return true;
    }
    // This product is off by less than 4 units in its last place, which decides the float, unless it lies so near to
    // the middle between two floats: between them there are 2^29 doubles.
    const double v = static_cast<double>(d.mantissa) * kInverses[d.fraction] * kSigns[d.negative];
    uint64_t bits;
    std::memcpy(&bits, &v, 8);
    if ((bits + 8 - (1ull << 28)) % (1ull << 29) > 16) {
      value = static_cast<float>(v);
      return true;
    }
  }
  double exact;
  if (!read_double_slowly(p, stop, exact)) return false;
  value = static_cast<float>(exact);
  return true;
}

// Where a line is parsed: the text around it, for errors and for safe wide loads.
struct Line {
  const char* text;   // of the whole block
  const char* end;    // of the whole block
  const char* start;  // of this line
};

// Each of these writes rows->error, if it is the first, and returns PM_BAD_INPUT: `return fail(…)`.
// The message is "`rule`, got 'token'", where the token begins at `at`; `rule` may hold one %s for the quoted `name`.
int32_t fail(pm_text_rows* rows, const Line& line, const char* at, const char* rule, const char* name = nullptr,
             const char* name_end = nullptr);
// For a number that is none, is not finite, or does not fit: "expected a number `role`, got …".
int32_t fail_number(pm_text_rows* rows, const Line& line, const char* at, const char* role, const char* name = nullptr,
                    const char* name_end = nullptr);
int32_t fail_plainly(pm_text_rows* rows, const Line& line, const char* at, const char* message);

// Tells rows in which no feature is repeated, without a branch for each feature: a mark for every one met, made again by
// another of the row. Marks of earlier rows differ, but for every 255th.
class Repeats {
 public:
  // Whether a feature stands in the row more than once; now and then also where none does. rows.n_features is the end of
  // the row.
  bool may_be(const pm_text_rows& rows, int64_t row_start);

 private:
  uint8_t mark_ = 0;
  uint8_t marks_[1 << 13] = {};
};

// Sums the values of features that stand in the row more than once; false when a sum is not finite.
// rows->n_features is the end of the row, and is moved back when features were merged.
bool merge_duplicates(pm_text_rows* rows, int64_t row_start);

inline bool sizes_fit(const char* text, int64_t size, const pm_text_rows* rows) {
  const auto power_above = [](int64_t slots, int64_t n) { return slots > n && (slots & (slots - 1)) == 0; };
  return size >= 0 && size <= PM_MAX_TEXT && (size == 0 || text[size - 1] == '\n') &&
         rows->max_features <= PM_MAX_TEXT && power_above(rows->n_feature_slots, rows->max_features);
}

// Runs `parse_line(line, p, is_row)` over the lines that are not blank. It returns a status, after PM_OK with p at the
// '\n' of the line; it may clear is_row. The row is closed here.
template <class ParseLine>
int32_t parse_lines(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows,
                    ParseLine&& parse_line) {
  rows->n_rows = rows->n_features = rows->n_namespaces = rows->n_lines = rows->n_bad = rows->first_line = rows->n_cleared = 0;
  rows->has_weights = rows->has_offsets = rows->has_tags = rows->has_label_lists = 0;
  if (!sizes_fit(text, size, rows) || rows->max_rows < 0) return PM_FULL;
  rows->indptr[0] = 0;
  const char* const end = text + size;
  for (const char* p = text; p < end; ++p, ++rows->n_lines) {
    const Line line{text, end, p};
    while (is_blank(*p)) ++p;
    if (*p == '\n') continue;
    if (rows->n_rows == rows->max_rows) return PM_FULL;
    const int64_t row_start = rows->indptr[rows->n_rows];
    bool is_row = true;
    p = line.start;
    const int32_t status = parse_line(line, p, is_row);
    if (status == PM_FULL) return PM_FULL;
    if (status == PM_BAD_INPUT) {
      if (!options->skip_bad) return PM_BAD_INPUT;
      ++rows->n_bad;
      rows->n_features = row_start;
      p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
      continue;
    }
    if (!is_row) continue;
    if (rows->n_rows == 0) rows->first_line = rows->n_lines;
    rows->indptr[++rows->n_rows] = rows->n_features;
  }
  return PM_OK;
}

}  // namespace pm
