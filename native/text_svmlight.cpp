// label[,label…] [qid:n] index:value … # comment
#include <limits>

#include "hash.h"
#include "text.h"

namespace {

using pm::fail;
using pm::fail_number;
using pm::is_blank;
using pm::is_digit;
using pm::Line;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

inline bool ends_item(char c) { return is_blank(c) || c == '\n' || c == '#'; }

// A whole number below 2^64; false leaves p at some place inside the token.
inline bool read_whole(const char*& p, const char* text_end, uint64_t& number) {
  number = 0;
  if (text_end - p >= 16) {
    const int n = pm::read_digits(p, number);
    p += n;
    if (n < 8) return n > 0;
  } else if (!is_digit(*p)) {
    return false;
  }
  for (; is_digit(*p); ++p) {
    const uint64_t digit = static_cast<uint64_t>(*p - '0');
    if (number > (UINT64_MAX - digit) / 10) return false;
    number = number * 10 + digit;
  }
  return true;
}

class SvmlightParser {
 public:
  explicit SvmlightParser(pm_text_rows* rows) : rows_(rows) {}

  int32_t operator()(const Line& line, const char*& p, bool& is_row) {
    const int64_t row_start = rows_->n_features;
    while (is_blank(*p)) ++p;
    is_row = *p != '#';
    bool sorted = true;
    if (is_row) {
      int32_t status = p == line.start ? read_label(line, p) : no_label();
      if (status == PM_OK) status = read_features(line, p, sorted);
      if (status != PM_OK) return status;
    }
    if (*p == '#') p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(line.end - p)));
    if (!sorted && !pm::merge_duplicates(rows_, row_start))
      return pm::fail_plainly(rows_, line, line.start,
                              "the values of a feature that is repeated must add up to a number that fits 32 bits");
    return PM_OK;
  }

 private:
  int32_t no_label() {
    rows_->labels[rows_->n_rows] = kMissing;
    rows_->spans[2 * rows_->n_rows] = rows_->spans[2 * rows_->n_rows + 1] = 0;
    return PM_OK;
  }

  // A line may begin with a blank or with its first feature: then it has no label.
  int32_t read_label(const Line& line, const char*& p) {
    const int64_t row = rows_->n_rows;
    const char* q = p;
    for (int count = 0;; ++count) {
      double number;
      const char* const at = q;
      const bool read = pm::read_double(q, line.end, number);
      if (read && *q == ':' && count == 0) return no_label();
      const bool ends = ends_item(*q) || *q == ',';
      if (!read && count == 0 && starts_qid(q, line.end)) return no_label();
      if (!read || !ends || !std::isfinite(number)) return fail_number(rows_, line, at, "as the label");
      if (count == 0) rows_->labels[row] = number;
      if (*q != ',') {
        rows_->has_label_lists |= count > 0;
        break;
      }
      ++q;
    }
    rows_->spans[2 * row] = static_cast<uint32_t>(p - line.text);
    rows_->spans[2 * row + 1] = static_cast<uint32_t>(q - p);
    p = q;
    return PM_OK;
  }

  static bool starts_qid(const char* p, const char* text_end) {
    return text_end - p > 4 && std::memcmp(p, "qid:", 4) == 0;
  }

  int32_t read_features(const Line& line, const char*& p, bool& sorted) {
    uint64_t* const ids = rows_->ids;
    float* const values = rows_->values;
    int64_t n = rows_->n_features;
    uint64_t index, last = 0;
    bool rises = true, any = false;
    const char* q = p;
    for (;;) {
      while (is_blank(*q)) ++q;
      if (*q == '\n' || *q == '#') break;
      const char* const start = q;
      if (!read_whole(q, line.end, index)) {
        if (starts_qid(start, line.end) && !any) {
          q = start + 4;
          if (!read_whole(q, line.end, index) || !ends_item(*q))
            return fail(rows_, line, start + 4, "expected a whole number after 'qid:'");
          continue;
        }
        return fail(rows_, line, start, "expected an index, a whole number from 0 to 2^64 - 1, before ':'");
      }
      if (*q != ':') return fail(rows_, line, start, "expected 'index:value'");
      if (n == rows_->max_features) return PM_FULL;
      const char* const at = ++q;
      float value;
      if (!pm::read_float(q, line.end, value) || !ends_item(*q) || !std::isfinite(value))
        return fail_number(rows_, line, at, "after %s", start, at);
      rises &= !any || index > last;
      any = true;
      last = index;
      ids[n] = pm::mix(index);
      values[n] = value;
      n += value != 0.0f;
    }
    sorted = rises;
    rows_->n_features = n;
    p = q;
    return PM_OK;
  }

  pm_text_rows* const rows_;
};

}  // namespace

int32_t pm_parse_svmlight(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows) {
  return pm::parse_lines(text, size, options, rows, SvmlightParser(rows));
}
