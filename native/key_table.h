// Products found by key: each slot holds a tag of its product, and a product stands in the first free slot after its home.
// One number of a slot that learning leaves alone is the tag; 0: the slot is free. Nothing is ever taken out.
#pragma once
#include <cstdint>
#include <cstring>

#include "lanes.h"
#include "pomona.h"

namespace pm {
namespace PM_ISA {

class KeyTable {
 public:
  KeyTable(const pm_region& region, int64_t slot_bytes, int64_t tag_byte)
      : tags_(static_cast<char*>(region.slots) + tag_byte), mask_(region.n_slots - 1),
        slot_bytes_(static_cast<uint64_t>(slot_bytes)), in_lines_(slot_bytes == 16 && tag_byte == 12 && mask_ >= 3) {}

  static KeyTable of(const pm_online& m) {
    const int64_t tag = m.n_outputs == 1 ? 3 : 1;
    return KeyTable(m.regions[1], int64_t{m.stride} * m.real_bytes, tag * m.real_bytes);
  }

  // Four slots of 16 bytes are a cache line and looked at together, so homes are starts of lines.
  uint64_t home(uint64_t id) const { return id & mask_ & ~static_cast<uint64_t>(in_lines_ ? 3 : 0); }
  static uint32_t tag_of(uint64_t id) { return static_cast<uint32_t>(id >> 32) | 1; }

  uint32_t tag_at(uint64_t slot) const {
    uint32_t tag;
    std::memcpy(&tag, tags_ + slot * slot_bytes_, sizeof tag);
    return tag;
  }
  void take(uint64_t slot, uint64_t id) const {
    const uint32_t tag = tag_of(id);
    std::memcpy(tags_ + slot * slot_bytes_, &tag, sizeof tag);
  }
  void ask(uint64_t id) const { __builtin_prefetch(tags_ + home(id) * slot_bytes_, 1); }

  struct Place {
    uint64_t slot;
    bool found;  // otherwise the slot is the free one where the product would stand
  };
  inline __attribute__((always_inline)) Place find(uint64_t id) const {
    const uint32_t tag = tag_of(id);
    uint64_t slot = home(id);
#if defined(__SSE2__)
    if (in_lines_) {
      const __m128i wanted = _mm_set1_epi32(static_cast<int32_t>(tag));
      for (;; slot = (slot + 4) & mask_) {
        const __m128i* const line = reinterpret_cast<const __m128i*>(tags_ - 12) + slot;
        const __m128i low = _mm_unpackhi_epi32(_mm_loadu_si128(line), _mm_loadu_si128(line + 1));
        const __m128i high = _mm_unpackhi_epi32(_mm_loadu_si128(line + 2), _mm_loadu_si128(line + 3));
        const __m128i tags = _mm_unpackhi_epi64(low, high);
        const int same = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(tags, wanted)));
        const int free = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(tags, _mm_setzero_si128())));
        const int stops = same ? same : free;
        if (stops) return {slot + static_cast<uint64_t>(__builtin_ctz(static_cast<unsigned>(stops))), same != 0};
      }
    }
#endif
    for (;; slot = (slot + 1) & mask_) {
      const uint32_t there = tag_at(slot);
      if (there == tag || !there) return {slot, there == tag};
    }
  }

 private:
  char* tags_;
  uint64_t mask_, slot_bytes_;
  bool in_lines_;
};

}  // namespace PM_ISA
}  // namespace pm
