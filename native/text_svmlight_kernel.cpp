// label[,label…] [qid:n] index:value … # comment
#include <limits>

#include "delimiters.h"
#include "hash.h"
#include "kernels.h"
#include "text.h"

namespace {

using pm::fail;
using pm::fail_number;
using pm::is_blank;
using pm::is_digit;
using pm::Line;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Whether [p, stop) is a whole number below 2^64.
inline bool read_whole(const char* p, const char* stop, const char* text, uint64_t& number) {
  const char* const start = p;
  if (stop - p == 1 && is_digit(*p)) {  // the usual lengths where columns are few
    number = static_cast<uint64_t>(*p - '0');
    return true;
  }
  if (stop - p == 2 && is_digit(p[0]) && is_digit(p[1])) {
    number = static_cast<uint64_t>(10 * (p[0] - '0') + (p[1] - '0'));
    return true;
  }
  uint32_t digits;
  if (stop - p <= 8 && stop > p && stop - text >= 8 && pm::read_digits_before(stop, stop - p, digits)) {
    number = digits;
    return true;
  }
  number = 0;
  for (; is_digit(*p); ++p) {
    const uint64_t digit = static_cast<uint64_t>(*p - '0');
    if (number > (UINT64_MAX - digit) / 10) return false;
    number = number * 10 + digit;
  }
  return p == stop && p != start;
}

class SvmlightParser {
 public:
  SvmlightParser(pm_text_rows* rows, const char* text_end) : rows_(rows), delimiters_(text_end) {}

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
    if (!sorted && repeats_.may_be(*rows_, row_start) && !pm::merge_duplicates(rows_, row_start))
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
    const char* start = p;
    for (int count = 0;; ++count) {
      const char* stop = start;
      while (!is_blank(*stop) && *stop != ',' && *stop != '\n' && *stop != '#' && *stop != ':') ++stop;
      if (*stop == ':' && count == 0) return no_label();
      double number;
      if (!pm::read_double(start, stop, line.end, number) || *stop == ':' || !std::isfinite(number))
        return fail_number(rows_, line, start, "as the label");
      if (count == 0) rows_->labels[row] = number;
      start = stop + 1;
      if (*stop == ',') continue;
      rows_->has_label_lists |= count > 0;
      rows_->spans[2 * row] = static_cast<uint32_t>(p - line.text);
      rows_->spans[2 * row + 1] = static_cast<uint32_t>(stop - p);
      p = stop;
      return PM_OK;
    }
  }

  int32_t read_features(const Line& line, const char*& p, bool& sorted) {
    uint64_t* const ids = rows_->ids;
    float* const values = rows_->values;
    int64_t n = rows_->n_features;
    uint64_t index, last = 0;
    bool rises = true, any = false;
    const int64_t room = rows_->max_features;
    auto delimiters = delimiters_;  // in registers: what is written below might change it otherwise
    delimiters.seek(p);
    const char* start = p;
    const char* q = delimiters.next();
    for (;; start = q + 1, q = delimiters.next()) {
      const char* const stop = q;
      if (start == stop && *q != ':') {  // one blank after another
        if (*q == '\n' || *q == '#') break;
        continue;
      }
      if (!read_whole(start, stop, line.text, index)) {
        if (*q != ':' || stop - start != 3 || std::memcmp(start, "qid", 3) != 0 || any)
          return fail(rows_, line, start, "expected an index, a whole number from 0 to 2^64 - 1");
        q = delimiters.next();
        if (!read_whole(stop + 1, q, line.text, index) || *q == ':')
          return fail(rows_, line, stop + 1, "expected a whole number after 'qid:'");
      } else {
        if (*q != ':') return fail(rows_, line, start, "expected 'index:value'");
        if (n == room) return PM_FULL;
        q = delimiters.next();
        float value;
        if (*q == ':' || ((q - line.text < 8 || !pm::read_short_float(stop + 1, q, value)) &&
                          (!pm::read_float(stop + 1, q, line.end, value) || !std::isfinite(value))))
          return fail_number(rows_, line, stop + 1, "after %s", start, stop + 1);
        rises &= !any || index > last;
        any = true;
        last = index;
        ids[n] = pm::mix(index);
        values[n] = value;
        ++n;
        if (__builtin_expect(value == 0.0f, 0)) --n;  // a branch, so that the next feature need not wait for this value
      }
      if (*q == '\n' || *q == '#') break;
    }
    sorted = rises;
    rows_->n_features = n;
    delimiters_ = delimiters;
    p = q;
    return PM_OK;
  }

  pm_text_rows* const rows_;
  pm::PM_ISA::Delimiters<'#'> delimiters_;
  pm::Repeats repeats_;
};

}  // namespace

namespace pm {
namespace PM_ISA {

int32_t parse_svmlight(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows) {
  return pm::parse_lines(text, size, options, rows, SvmlightParser(rows, text + size));
}

}  // namespace PM_ISA
}  // namespace pm
