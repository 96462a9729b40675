// Words and n-grams of text columns.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "hash.h"
#include "ngrams.h"
#include "pomona.h"

namespace {

enum class Letter { separator, word, alone };

struct Range {
  uint32_t first, last;
};

// Punctuation and symbols outside ASCII.
constexpr Range kSeparators[] = {{0x80, 0xa9},     {0xab, 0xb4},     {0xb6, 0xb9},     {0xbb, 0xbf},
                                 {0xd7, 0xd7},     {0xf7, 0xf7},     {0x2000, 0x206f}, {0x2190, 0x2bff},
                                 {0x3000, 0x3004}, {0x3008, 0x3020}, {0xfe30, 0xfe4f}, {0xff00, 0xff0f},
                                 {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff65}};
// Scripts written without spaces: every sign is a word.
constexpr Range kAlone[] = {{0x3040, 0x30ff}, {0x3400, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x3ffff}};

template <size_t N>
bool is_in(const Range (&ranges)[N], uint32_t point) {
  return std::any_of(ranges, ranges + N, [point](Range r) { return point >= r.first && point <= r.last; });
}

// Code point at p and its length; a byte that is not UTF-8 stands for itself and counts as a letter.
uint32_t decode(const char* p, const char* end, int64_t* length) {
  const uint8_t lead = static_cast<uint8_t>(*p);
  const int64_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  *length = 1;
  if (wanted == 1 || end - p < wanted) return 0xfffd;
  uint32_t point = lead & (0xff >> (wanted + 1));
  for (int64_t i = 1; i < wanted; ++i) {
    const uint8_t next = static_cast<uint8_t>(p[i]);
    if ((next & 0xc0) != 0x80) return 0xfffd;
    point = point << 6 | (next & 0x3f);
  }
  *length = wanted;
  return point;
}

Letter classify(const char* p, const char* end, int64_t* length) {
  const uint8_t byte = static_cast<uint8_t>(*p);
  if (byte < 0x80) {
    *length = 1;
    const bool letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
    return letter || (byte >= '0' && byte <= '9') || byte == '_' ? Letter::word : Letter::separator;
  }
  const uint32_t point = decode(p, end, length);
  if (is_in(kSeparators, point)) return Letter::separator;
  return is_in(kAlone, point) ? Letter::alone : Letter::word;
}

// The next word from p on; false at the end of the text.
bool next_word(const char*& p, const char* end, const char** start, const char** stop) {
  int64_t length;
  for (; p < end; p += length) {
    const Letter letter = classify(p, end, &length);
    if (letter == Letter::separator) continue;
    *start = p;
    p += length;
    while (letter == Letter::word && p < end && classify(p, end, &length) == Letter::word) p += length;
    *stop = p;
    return true;
  }
  return false;
}

// Sorts, merges equal ids and weighs: returns the entries left.
int64_t weigh(uint64_t* ids, float* values, int64_t n) {
  std::sort(ids, ids + n);
  int64_t kept = 0;
  double squares = 0;
  for (int64_t i = 0; i < n;) {
    int64_t next = i + 1;
    while (next < n && ids[next] == ids[i]) ++next;
    const double weight = std::log1p(static_cast<double>(next - i));
    squares += weight * weight;
    ids[kept] = ids[i];
    values[kept++] = static_cast<float>(weight);
    i = next;
  }
  const float scale = kept ? static_cast<float>(1 / std::sqrt(squares)) : 0.0f;
  for (int64_t i = 0; i < kept; ++i) values[i] *= scale;
  return kept;
}

bool is_inside(const int64_t* offsets, int64_t i, int64_t n_bytes) {
  return offsets[i] >= 0 && offsets[i] <= offsets[i + 1] && offsets[i + 1] <= n_bytes;
}

}  // namespace

int32_t pm_words(const char* data, int64_t n_bytes, const int64_t* offsets, int64_t n, uint64_t seed,
                 int64_t* word_rows, int64_t* starts, int64_t* ends, uint64_t* ids, int64_t capacity) {
  int64_t count = 0;
  word_rows[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!is_inside(offsets, i, n_bytes)) return PM_BAD_INPUT;
    const char *p = data + offsets[i], *end = data + offsets[i + 1], *start, *stop;
    while (next_word(p, end, &start, &stop)) {
      if (count == capacity) return PM_FULL;
      starts[count] = start - data;
      ids[count] = pm::hash_bytes(start, static_cast<size_t>(stop - start), seed);
      ends[count++] = stop - data;
    }
    word_rows[i + 1] = count;
  }
  return PM_OK;
}

int32_t pm_word_rows(const char* data, int64_t n_bytes, const int64_t* offsets, int64_t n, uint64_t seed,
                     int32_t n_gram, int32_t skips, int64_t* rows, uint64_t* ids, float* values, int64_t capacity,
                     int64_t* done) {
  if (*done == 0) rows[0] = 0;
  for (int64_t i = *done; i < n; ++i) {
    if (!is_inside(offsets, i, n_bytes)) return PM_BAD_INPUT;
    *done = i;
    const int64_t first = rows[i];
    int64_t words = 0;
    const char *p = data + offsets[i], *end = data + offsets[i + 1], *start, *stop;
    while (next_word(p, end, &start, &stop)) {
      if (first + words == capacity) return PM_FULL;
      values[first + words] = 1.0f;
      ids[first + words++] = pm::hash_bytes(start, static_cast<size_t>(stop - start), seed);
    }
    int64_t count = words;
    const auto add = [&](uint64_t gram, double, int64_t, uint32_t) {
      if (first + count == capacity) return false;
      ids[first + count++] = gram;
      return true;
    };
    if (!pm::for_each_gram(ids + first, values + first, words, n_gram, skips, add)) return PM_FULL;
    rows[i + 1] = first + weigh(ids + first, values + first, count);
  }
  *done = n;
  return PM_OK;
}
