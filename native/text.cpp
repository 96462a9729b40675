#include "text.h"

#include <algorithm>
#include <cstdio>

namespace pm {
namespace {

constexpr int kQuoted = 40;  // bytes of a token that a message shows

bool ends_token(char c) { return is_blank(c) || c == '\n' || c == '|'; }

// Writes [p, end) in quotes, cut to kQuoted bytes, with what is not printable escaped; returns the end.
char* quote(char* out, const char* p, const char* end) {
  *out++ = '\'';
  const bool cut = end - p > kQuoted;
  if (cut) {
    end = p + kQuoted;
    while (end > p && (static_cast<unsigned char>(*end) & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
  }
  for (; p < end; ++p) {
    const unsigned char c = static_cast<unsigned char>(*p);
    if (c < 0x20 || c == 0x7f)
      out += std::snprintf(out, 5, "\\x%02x", c);
    else
      *out++ = *p;
  }
  if (cut) {
    std::memcpy(out, "…", 3);
    out += 3;
  }
  *out++ = '\'';
  *out = 0;
  return out;
}

void place(pm_text_rows* rows, const Line& line, const char* at) {
  rows->error.line_start = line.start - line.text;
  rows->error.line_number = rows->n_lines;
  rows->error.column = at - line.start;
}

// Whether a number that double cannot hold is too large (otherwise it is too small). It has a digit that is not 0.
bool is_huge(const char* p, const char* end) {
  int64_t magnitude = 0, exponent = 0;  // power of ten of the first digit that is not 0
  bool point = false, found = false;
  for (; p < end && (*p | 0x20) != 'e'; ++p) {
    if (*p == '.') {
      point = true;
    } else if (is_digit(*p)) {
      found = found || *p != '0';
      if (found && !point) ++magnitude;
      if (!found && point) --magnitude;
    }
  }
  if (p < end) {
    const bool down = *++p == '-';
    p += *p == '-' || *p == '+';
    for (; p < end && exponent < PM_MAX_TEXT; ++p) exponent = exponent * 10 + (*p - '0');
    if (down) exponent = -exponent;
  }
  return magnitude + exponent > 0;
}

}  // namespace

bool read_double_slowly(const char* p, const char* stop, double& value) {
  const bool negative = *p == '-';
  p += *p == '-' || *p == '+';
  if (!is_digit(*p) && !(*p == '.' && is_digit(p[1]))) return false;  // from_chars takes "inf" and "nan"
  const std::from_chars_result result = std::from_chars(p, stop, value);
  if (result.ec == std::errc::invalid_argument || result.ptr != stop) return false;
  if (result.ec == std::errc::result_out_of_range) value = is_huge(p, stop) ? HUGE_VAL : 0.0;
  if (negative) value = -value;
  return true;
}

int32_t fail(pm_text_rows* rows, const Line& line, const char* at, const char* rule, const char* name,
             const char* name_end) {
  if (rows->n_bad) return PM_BAD_INPUT;
  place(rows, line, at);
  const char* token_end = at;
  while (!ends_token(*token_end)) ++token_end;
  char quoted_name[4 * kQuoted + 8] = "", token[4 * kQuoted + 8] = "nothing";
  if (name) quote(quoted_name, name, name_end);
  if (token_end > at) quote(token, at, token_end);
  char text[2 * sizeof(quoted_name) + 128] = "";
  int n = std::snprintf(text, sizeof(text), rule, quoted_name);
  std::snprintf(text + n, sizeof(text) - static_cast<size_t>(n), ", got %s", token);
  constexpr size_t room = sizeof(rows->error.message) - 1;
  std::memcpy(rows->error.message, text, room);
  rows->error.message[room] = 0;
  return PM_BAD_INPUT;
}

int32_t fail_number(pm_text_rows* rows, const Line& line, const char* at, const char* role, const char* name,
                    const char* name_end) {
  const char* stop = at;
  while (!ends_token(*stop)) ++stop;
  double value;
  char rule[96];
  const char* kind = "a number";
  if (read_double_slowly(at, stop, value)) {
    kind = "a number in range";
  } else {
    const char* word = at + (*at == '-' || *at == '+');
    const auto is = [word](const char* other) {
      for (int i = 0; i < 3; ++i)
        if ((word[i] | 0x20) != other[i]) return false;
      return true;
    };
    if (line.end - word > 3 && (is("inf") || is("nan"))) kind = "a finite number";
  }
  std::snprintf(rule, sizeof(rule), "expected %s %s", kind, role);
  return fail(rows, line, at, rule, name, name_end);
}

int32_t fail_plainly(pm_text_rows* rows, const Line& line, const char* at, const char* message) {
  if (rows->n_bad) return PM_BAD_INPUT;
  place(rows, line, at);
  std::snprintf(rows->error.message, sizeof(rows->error.message), "%s", message);
  return PM_BAD_INPUT;
}

bool Repeats::may_be(const pm_text_rows& rows, int64_t row_start) {
  const int64_t stop = rows.n_features;
  const uint64_t* const ids = rows.ids;
  // The features of the row before, which has no duplicates any more: so it is in dense data.
  const int64_t before = rows.n_rows ? rows.indptr[rows.n_rows - 1] : row_start;
  if (row_start - before == stop - row_start &&
      std::memcmp(ids + before, ids + row_start, sizeof(uint64_t) * static_cast<size_t>(stop - row_start)) == 0)
    return false;
  mark_ = mark_ == 255 ? 1 : static_cast<uint8_t>(mark_ + 1);
  const uint8_t now = mark_;
  constexpr uint64_t kFew = 4;
  int64_t again[kFew];  // features whose mark was made before
  uint64_t n_again = 0;
  for (int64_t i = row_start; i < stop; ++i) {
    uint8_t& mark = marks_[ids[i] % sizeof marks_];
    again[n_again % kFew] = i;
    n_again += mark == now;
    mark = now;
  }
  if (n_again >= kFew) return true;
  for (uint64_t k = 0; k < n_again; ++k) {  // most often another feature has the same mark
    const uint64_t id = ids[again[k]];
    bool same = false;
    for (int64_t i = row_start; i < again[k]; ++i) same |= ids[i] == id;
    if (same) return true;
  }
  return false;
}

// feature_slots holds positions + 1. Those below the row's start are leftovers of earlier rows and count as empty, so
// the table is cleared once a text, as far as its largest row needs it.
bool merge_duplicates(pm_text_rows* rows, int64_t row_start) {
  const int64_t stop = rows->n_features;
  uint64_t* const ids = rows->ids;
  uint32_t* const slots = rows->feature_slots;
  // Few collisions matter more than a small table, while it fits the first cache.
  int64_t size = 16;
  while (size < rows->n_feature_slots && size < (size < 4096 ? 32 : 2) * (stop - row_start)) size *= 2;
  size = std::min(size, rows->n_feature_slots);
  if (size > rows->n_cleared) {
    std::fill(slots + rows->n_cleared, slots + size, 0u);
    rows->n_cleared = size;
  }
  const uint64_t mask = static_cast<uint64_t>(size) - 1;
  const uint32_t first = static_cast<uint32_t>(row_start);
  const auto find = [=](uint64_t id) {
    uint64_t slot = id & mask;
    while (slots[slot] > first && ids[slots[slot] - 1] != id) slot = (slot + 1) & mask;
    return slot;
  };
  int64_t i = row_start;
  for (; i < stop; ++i) {  // most rows have no duplicate and end here
    const uint64_t slot = find(ids[i]);
    if (slots[slot] > first) break;
    slots[slot] = static_cast<uint32_t>(i + 1);
  }
  int64_t out = i;
  for (; i < stop; ++i) {
    const uint64_t id = ids[i];
    const uint64_t slot = find(id);
    if (slots[slot] > first) {
      float& sum = rows->values[slots[slot] - 1];
      sum += rows->values[i];
      if (!std::isfinite(sum)) return false;
      continue;
    }
    slots[slot] = static_cast<uint32_t>(out + 1);
    ids[out] = id;
    rows->values[out] = rows->values[i];
    if (rows->fields) rows->fields[out] = rows->fields[i];
    if (rows->starts) rows->starts[out] = rows->starts[i];
    if (rows->grams) rows->grams[out] = rows->grams[i];
    ++out;
  }
  rows->n_features = out;
  return true;
}

}  // namespace pm
