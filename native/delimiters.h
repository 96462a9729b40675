// Finds delimiters 64 bytes at a time. What limits a parser that looks for the end of each token in turn is the wait
// for one search before the next can start; here the places of coming delimiters are known ahead, as bits.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pm {
namespace PM_ISA {

// Delimiters are blanks, '\n', ':' and one more that the format has.
template <char kMark>
class Delimiters {
 public:
  explicit Delimiters(const char* text_end) : text_end_(text_end) {}

  static bool is(char c) { return c == ' ' || c == ':' || c == '\n' || c == kMark || c == '\t' || c == '\r'; }

  // Go on from p, which is not before the last place returned.
  void seek(const char* p) {
    if (base_ && p >= base_ && p - base_ < 64)
      bits_ &= ~0ull << (p - base_);
    else
      load(p);
  }

  // The next delimiter. There must be one: the text ends in '\n', and the caller stops there.
  const char* next() {
    while (bits_ == 0) load(base_ + 64);
    const char* const place = base_ + __builtin_ctzll(bits_);
    bits_ &= bits_ - 1;
    return place;
  }

 private:
  void load(const char* p) {
    base_ = p;
    if (text_end_ - p >= 64) {
      bits_ = find(p);
      return;
    }
    char rest[64];
    std::memset(rest, '\n', sizeof(rest));
    if (text_end_ > p) std::memcpy(rest, p, static_cast<size_t>(text_end_ - p));
    bits_ = find(rest);
  }

#if defined(__AVX2__)
  // By its lower four bits each byte finds the one delimiter that it can be, but ':' and '\n' share theirs.
  static uint64_t find(const char* p) {
    static_assert((kMark & 15) != 0 && (kMark & 15) != 9 && (kMark & 15) != 10 && (kMark & 15) != 13 && kMark > 0);
    alignas(32) static constexpr Candidates kCandidates;
    const __m256i candidates = _mm256_load_si256(reinterpret_cast<const __m256i*>(kCandidates.bytes));
    uint64_t bits = 0;
    for (int i = 0; i < 2; ++i) {
      const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * i));
      const __m256i found = _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(candidates, c), c),
                                            _mm256_cmpeq_epi8(c, _mm256_set1_epi8('\n')));
      bits |= static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(found))) << (32 * i);
    }
    return bits;
  }
  struct Candidates {
    char bytes[32] = {};
    constexpr Candidates() {
      for (int half = 0; half < 32; half += 16)
        for (char c : {' ', ':', kMark, '\t', '\r'}) bytes[half + (c & 15)] = c;
    }
  };
#elif defined(__SSE2__)
  static uint64_t find(const char* p) {
    uint64_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
      const auto equal = [c](char mark) { return _mm_cmpeq_epi8(c, _mm_set1_epi8(mark)); };
      const __m128i found =
          _mm_or_si128(_mm_or_si128(_mm_or_si128(equal(' '), equal(':')), _mm_or_si128(equal('\n'), equal(kMark))),
                       _mm_or_si128(equal('\t'), equal('\r')));
      bits |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(found))) << (16 * i);
    }
    return bits;
  }
#else
  static uint64_t find(const char* p) {
    uint64_t bits = 0;
    for (int i = 0; i < 64; ++i) bits |= static_cast<uint64_t>(is(p[i])) << i;
    return bits;
  }
#endif

  const char* text_end_;
  const char* base_ = nullptr;
  uint64_t bits_ = 0;
};

}  // namespace PM_ISA
}  // namespace pm
