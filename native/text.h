// What the text parsers share: numbers, errors and the merging of duplicate features.
//
// All scanning relies on the text ending in '\n', which is a delimiter everywhere: no loop needs to look for the end
// of the text. Loads of 8 or 16 bytes at once are made only where that many bytes are left.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "pomona.h"

namespace pm {

constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
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

// A decimal number as sign · mantissa · 10^exponent, where the mantissa has at most 19 digits.
struct Decimal {
  uint64_t mantissa = 0;
  int exponent = 0;
  bool negative = false;
};

enum class Number { kFine, kLong, kBad };

// Splits a number into a Decimal and moves p behind it. kLong: it has too many digits, or too large an exponent, or
// stands too near the end of the text: the general way must be taken, and p did not move.
inline Number read_decimal(const char*& p, const char* text_end, Decimal& d) {
  const char* q = p;
  d.negative = *q == '-';
  q += *q == '-' || *q == '+';
  if (text_end - q < 48) return Number::kLong;
  uint64_t m = 0;
  int whole = read_digits(q, m), fraction = 0;
  if (whole == 8) {
    whole += read_digits(q + 8, m);
    if (whole > 11) return Number::kLong;
  }
  q += whole;
  if (*q == '.') {
    ++q;
    fraction = read_digits(q, m);
    if (fraction == 8 && whole <= 3) fraction += read_digits(q + 8, m);
    q += fraction;
    for (; fraction >= 8 && whole + fraction < 19 && is_digit(*q); ++q, ++fraction)
      m = m * 10 + static_cast<uint64_t>(*q - '0');
  }
  if (whole + fraction == 0) return Number::kBad;
  d.mantissa = m;
  d.exponent = -fraction;
  if (is_digit(*q)) return Number::kLong;
  if ((*q | 0x20) == 'e') {
    const bool down = q[1] == '-';
    const char* e = q + 1 + (down || q[1] == '+');
    if (!is_digit(*e)) return Number::kBad;
    int power = *e++ - '0';
    if (is_digit(*e)) power = power * 10 + (*e++ - '0');
    d.exponent += down ? -power : power;
    if (is_digit(*e) || d.exponent > 22 || d.exponent < -22) return Number::kLong;
    q = e;
  }
  p = q;
  return Number::kFine;
}

inline double scaled(const Decimal& d) {
  const double m = static_cast<double>(d.mantissa);
  const double v = d.exponent > 0 ? m * kPowers[d.exponent] : m / kPowers[-d.exponent];
  return d.negative ? -v : v;
}

// The general, exact way; defined in text.cpp. False: no number here, and p did not move. Too large gives infinity.
bool read_double_slowly(const char*& p, const char* text_end, double& value);

// One rounding alone, hence exact, while the mantissa fits the 53 bits of a double.
constexpr uint64_t kExactMantissa = 1ull << 53;

inline bool read_double(const char*& p, const char* text_end, double& value) {
  Decimal d;
  const char* q = p;
  const Number kind = read_decimal(q, text_end, d);
  if (kind == Number::kFine && d.mantissa <= kExactMantissa) {
    value = scaled(d);
    p = q;
    return true;
  }
  return kind != Number::kBad && read_double_slowly(p, text_end, value);
}

// The number as a double, rounded to a float. Infinity where it is too large.
inline bool read_float(const char*& p, const char* text_end, float& value) {
  Decimal d;
  const char* q = p;
  const Number kind = read_decimal(q, text_end, d);
  if (kind == Number::kFine) {
    const double v = scaled(d);
    // A longer mantissa leaves the double off by two units in its last place; that decides a float all the same
    // unless the boundary between two floats lies so near.
    constexpr double kSlack = 4.0 / static_cast<double>(kExactMantissa);
    value = static_cast<float>(v);
    if (d.mantissa <= kExactMantissa ||
        static_cast<float>(v * (1 - kSlack)) == static_cast<float>(v * (1 + kSlack))) {
      p = q;
      return true;
    }
  }
  double exact;
  if (kind == Number::kBad || !read_double_slowly(p, text_end, exact)) return false;
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
  rows->n_rows = rows->n_features = rows->n_namespaces = rows->n_lines = rows->n_bad = rows->first_line = 0;
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
