// Names of features, looked up in the text they were parsed from.
#include "text.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

bool ends_item(char c) { return pm::is_blank(c) || c == '|' || c == '\n'; }

const char* name_end(const char* p) {
  while (!ends_item(*p) && *p != ':') ++p;
  return p;
}

// The same, where 16 bytes may be looked at: most names are shorter.
inline const char* name_end(const char* p, const char* text_end) {
#if defined(__SSE2__)
  if (text_end - p >= 16) {
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto equal = [c](char mark) { return _mm_cmpeq_epi8(c, _mm_set1_epi8(mark)); };
    const __m128i found = _mm_or_si128(_mm_or_si128(_mm_or_si128(equal(' '), equal(':')), _mm_or_si128(equal('\n'), equal('|'))),
                                       _mm_or_si128(equal('\t'), equal('\r')));
    if (const int bits = _mm_movemask_epi8(found)) return p + __builtin_ctz(static_cast<unsigned>(bits));
  }
#endif
  static_cast<void>(text_end);
  return name_end(p);
}

const char* item_end(const char* p) {
  while (!ends_item(*p)) ++p;
  return p;
}

// The weight of the namespace that holds p.
double weight_at(const char* p, const char* text, const char* text_end) {
  while (p > text && *p != '|') --p;
  double weight = 1.0;
  const char* const colon = name_end(p + 1);
  if (*colon == ':') pm::read_double(colon + 1, item_end(colon), text_end, weight);
  return weight;
}

// Whether the parser left the word out, because its value is zero. `colon` is where its name ends.
bool is_zero(const char* colon, const char* text, const char* text_end) {
  if (*colon != ':') return false;
  float value = 1.0f;
  pm::read_float(colon + 1, item_end(colon), text_end, value);
  return static_cast<float>(static_cast<double>(value) * weight_at(colon, text, text_end)) == 0.0f;
}

}  // namespace

int64_t pm_vw_names(const char* text, int64_t size, const uint32_t* starts, const uint16_t* fields,
                    const uint16_t* grams, const uint32_t* namespace_spans, const int64_t* positions, int64_t n,
                    char* out, int64_t capacity, int64_t* ends) {
  if (size == 0 || text[size - 1] != '\n') return 0;
  const char* const text_end = text + size;
  int64_t written = 0;
  const auto append = [&](const char* from, int64_t count) {
    if (count <= 16 && written + 16 <= capacity && text_end - from >= 16)
      std::memcpy(out + written, from, 16);  // of a fixed size, so that nothing is called
    else if (written + count <= capacity)
      std::memcpy(out + written, from, static_cast<size_t>(count));
    written += count;
  };
  for (int64_t i = 0; i < n; ++i) {
    const int64_t feature = positions[i];
    const uint32_t* const span = namespace_spans + (fields ? 2 * fields[feature] : 0);
    if (span[1]) {
      append(text + span[0], span[1]);
      if (written < capacity) out[written] = ':';
      ++written;
    }
    const char* word = text + starts[feature];
    const char* end = name_end(word, text_end);
    append(word, end - word);
    for (uint32_t words = grams ? grams[feature] : 0; words;) {  // bit 0: the next word belongs to the n-gram
      word = item_end(end);
      while (pm::is_blank(*word)) ++word;
      if (ends_item(*word)) break;
      end = name_end(word);
      if (is_zero(end, text, text_end)) continue;
      if (words & 1) {
        if (written < capacity) out[written] = ' ';
        ++written;
        append(word, end - word);
      }
      words >>= 1;
    }
    ends[i] = written;
  }
  return written;
}
