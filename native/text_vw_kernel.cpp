// [label [importance [base]]] ['tag] |namespace[:weight] name[:value] name … |namespace …
#include <algorithm>
#include <limits>

#include "delimiters.h"
#include "hash.h"
#include "ngrams.h"
#include "kernels.h"
#include "text.h"

namespace {

using pm::fail;
using pm::fail_number;
using pm::is_blank;
using pm::Line;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Hash of the name [p, end). Up to `wide_until` 16 bytes may be read.
inline uint64_t hash_name(const char* p, const char* end, const char* wide_until, uint64_t seed) {
  const size_t n = static_cast<size_t>(end - p);
#if defined(__BMI2__)
  if (n <= 16 && p <= wide_until) {  // no branch on the length
    uint64_t low, high;
    std::memcpy(&low, p, 8);
    std::memcpy(&high, p + 8, 8);
    return pm::hash_end(_bzhi_u64(low, static_cast<unsigned>(8 * n)),
                        _bzhi_u64(high, static_cast<unsigned>(n < 8 ? 0 : 8 * n - 64)), n, seed);
  }
#elif defined(__SSE2__)
  if (n <= 16 && p <= wide_until) {  // no branch on the length
    alignas(16) static const uint8_t kKeep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                                  255, 255, 255, 255, 255, 255, 255, 255};
    const __m128i keep = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kKeep + 16 - n));
    const __m128i name = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), keep);
    return pm::hash_end(static_cast<uint64_t>(_mm_cvtsi128_si64(name)),
                        static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(name, name))), n, seed);
  }
#else
  static_cast<void>(wide_until);
#endif
  return pm::hash_bytes(p, n, seed);
}

class VwParser {
 public:
  VwParser(const pm_text_options& options, pm_text_rows* rows, const char* text, int64_t size)
      : options_(options), rows_(rows), wide_until_(text + size - std::min<int64_t>(size, 16)), delimiters_(text + size) {}

  int32_t operator()(const Line& line, const char*& p, bool&) {
    const int64_t row_start = rows_->n_features;
    int32_t status = read_label(line, p);
    delimiters_.seek(p + 1);
    while (status == PM_OK && *p == '|') status = read_namespace(line, p);
    if (status != PM_OK) return status;
    if (repeats_.may_be(*rows_, row_start) && !pm::merge_duplicates(rows_, row_start))
      return pm::fail_plainly(rows_, line, line.start,
                              "the values of a feature that is repeated must add up to a number that fits 32 bits");
    return PM_OK;
  }

 private:
  // All before the first bar. As VW has it, the last word is a tag if it begins with ' or touches the bar.
  int32_t read_label(const Line& line, const char*& p) {
    const int64_t row = rows_->n_rows;
    double* const numbers[] = {rows_->labels + row, rows_->weights + row, rows_->offsets + row};
    static const char* const roles[] = {"as the label", "as the importance", "as the base"};
    *numbers[0] = kMissing;
    *numbers[1] = 1.0;
    *numbers[2] = 0.0;
    rows_->spans[2 * row] = rows_->spans[2 * row + 1] = 0;
    for (int i = 0;; ++i) {
      while (is_blank(*p)) ++p;
      if (*p == '|') break;
      if (*p == '\n') return pm::fail_plainly(rows_, line, p, "expected a '|' before the features, got the end of the line");
      const char* end = p;
      while (!is_blank(*end) && *end != '|' && *end != '\n') ++end;
      const char* next = end;
      while (is_blank(*next)) ++next;
      const bool is_tag = *next == '|' && (*p == '\'' || next == end);
      if (!is_tag) {
        if (i == 3)
          return fail(rows_, line, p, "expected at most a label, an importance and a base before the first '|'");
        if (!pm::read_double(p, end, line.end, *numbers[i]) || !std::isfinite(*numbers[i]))
          return fail_number(rows_, line, p, roles[i]);
        if (i == 1 && *numbers[1] < 0) return fail(rows_, line, p, "expected an importance of 0 or more");
        rows_->has_weights |= i == 1;
        rows_->has_offsets |= i == 2;
        p = end;
        continue;
      }
      p += *p == '\'';
      rows_->spans[2 * row] = static_cast<uint32_t>(p - line.text);
      rows_->spans[2 * row + 1] = static_cast<uint32_t>(end - p);
      rows_->has_tags |= end > p;
      p = next;
      break;
    }
    return PM_OK;
  }

  // From a bar to the next one or to the end of the line.
  int32_t read_namespace(const Line& line, const char*& p) {
    const char* const name = p + 1;
    const char* q = delimiters_.next();
    const uint64_t seed = hash_name(name, q, wide_until_, 0);
    int64_t number;
    if (const int32_t status = number_of(seed, name, q, line, number); status != PM_OK) return status;
    if (rows_->n_namespaces > 1 && !numbered_) {  // from the second on, features have the number of theirs
      std::fill(rows_->fields, rows_->fields + rows_->n_features, uint16_t{0});
      numbered_ = true;
    }
    double weight = 1.0;
    if (*q == ':') {
      const char* const at = q + 1;
      q = delimiters_.next();
      if (!pm::read_double(at, q, line.end, weight) || *q == ':' || !std::isfinite(static_cast<float>(weight)))
        return fail_number(rows_, line, at, "after %s", p, at);
    }
    const int64_t first = rows_->n_features;
    // The short way reads eight bytes before the end of a number.
    const bool plain = weight == 1.0 && line.start - line.text >= 8;
    const int32_t status = plain ? read_features<true>(line, q, seed, weight) : read_features<false>(line, q, seed, weight);
    if (status != PM_OK) return status;
    if (options_.ngrams > 1 && wants_grams(seed))
      if (const int32_t status = add_grams(line, first); status != PM_OK) return status;
    if (numbered_) std::fill(rows_->fields + first, rows_->fields + rows_->n_features, static_cast<uint16_t>(number));
    p = q;
    return PM_OK;
  }

  template <bool plain>
  int32_t read_features(const Line& line, const char*& p, uint64_t seed, double weight) {
    uint64_t* const ids = rows_->ids;
    float* const values = rows_->values;
    uint32_t* const starts = rows_->starts;
    int64_t n = rows_->n_features;
    const int64_t room = rows_->max_features;
    auto delimiters = delimiters_;  // in registers: what is written below might change it otherwise
    const char* q = p;  // a delimiter, always
    while (*q != '\n' && *q != '|') {
      const char* const name = q + 1;
      q = delimiters.next();
      if (q == name) {  // one blank after another
        if (*q == ':') return fail(rows_, line, name, "expected a name before the ':'");
        continue;
      }
      if (n == room) return PM_FULL;
      ids[n] = hash_name(name, q, wide_until_, seed);
      float value = plain ? 1.0f : static_cast<float>(weight);
      if (*q == ':') {
        const char* const at = q + 1;
        q = delimiters.next();
        if (!plain || *q == ':' || !pm::read_short_float(at, q, value)) {
          const bool read = pm::read_float(at, q, line.end, value);
          value = static_cast<float>(static_cast<double>(value) * weight);
          if (!read || *q == ':' || !std::isfinite(value)) return fail_number(rows_, line, at, "after %s", name, at);
          if (value == 0.0f) continue;
        }
      } else if (!plain && value == 0.0f) {
        continue;
      }
      values[n] = value;
      starts[n] = static_cast<uint32_t>(name - line.text);
      ++n;
    }
    if (rows_->grams) std::fill(rows_->grams + rows_->n_features, rows_->grams + n, uint16_t{0});
    rows_->n_features = n;
    delimiters_ = delimiters;
    p = q;
    return PM_OK;
  }

  int32_t add_grams(const Line& line, int64_t first) {
    bool finite = true;
    const auto add = [&](uint64_t id, double value, int64_t word, uint32_t words) {
      const int64_t n = rows_->n_features;
      if (n == rows_->max_features) return false;
      rows_->ids[n] = id;
      rows_->values[n] = static_cast<float>(value);
      rows_->starts[n] = rows_->starts[first + word];
      rows_->grams[n] = static_cast<uint16_t>(words);
      finite = std::isfinite(rows_->values[n]);
      rows_->n_features += rows_->values[n] != 0.0f;
      return finite;
    };
    if (pm::for_each_gram(rows_->ids + first, rows_->values + first, rows_->n_features - first, options_.ngrams,
                          options_.skips, add))
      return PM_OK;
    return finite ? PM_FULL
                  : pm::fail_plainly(rows_, line, line.start, "the product of the values of an n-gram must fit 32 bits");
  }

  bool wants_grams(uint64_t seed) const {
    const uint64_t* const end = options_.gram_namespaces + options_.n_gram_namespaces;
    return options_.n_gram_namespaces == 0 || std::find(options_.gram_namespaces, end, seed) != end;
  }

  // Number of a namespace in this text. namespace_slots holds numbers + 1.
  int32_t number_of(uint64_t hash, const char* name, const char* end, const Line& line, int64_t& number) {
    const uint64_t mask = static_cast<uint64_t>(rows_->n_namespace_slots) - 1;
    uint64_t slot = hash & mask;
    for (; rows_->namespace_slots[slot]; slot = (slot + 1) & mask) {
      number = rows_->namespace_slots[slot] - 1;
      if (rows_->namespace_hashes[number] == hash) return PM_OK;
    }
    number = rows_->n_namespaces;
    if (number == PM_MAX_NAMESPACES)
      return pm::fail_plainly(rows_, line, name, "expected at most 65536 namespaces in all");
    if (number == rows_->max_namespaces) return PM_FULL;
    rows_->namespace_slots[slot] = static_cast<uint32_t>(number + 1);
    rows_->namespace_hashes[number] = hash;
    rows_->namespace_spans[2 * number] = static_cast<uint32_t>(name - line.text);
    rows_->namespace_spans[2 * number + 1] = static_cast<uint32_t>(end - name);
    ++rows_->n_namespaces;
    return PM_OK;
  }

  const pm_text_options& options_;
  pm_text_rows* const rows_;
  const char* const wide_until_;  // names begin behind a bar, so it is before them all where the text is short
  pm::PM_ISA::Delimiters<'|'> delimiters_;
  pm::Repeats repeats_;
  bool numbered_ = false;
};

}  // namespace

namespace pm {
namespace PM_ISA {

int32_t parse_vw(const char* text, int64_t size, const pm_text_options* options, pm_text_rows* rows) {
  const bool grams_fit = options->ngrams <= 1 || (rows->grams && options->ngrams + options->skips <= 16);
  const int64_t slots = rows->n_namespace_slots;
  if (!grams_fit || options->skips < 0 || slots <= rows->max_namespaces || (slots & (slots - 1))) return PM_FULL;
  return pm::parse_lines(text, size, options, rows, VwParser(*options, rows, text, size));
}

}  // namespace PM_ISA
}  // namespace pm
