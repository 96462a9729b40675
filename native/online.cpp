// What the online learner does to its tables outside the hot loops.
#include <cstring>
#include <vector>

#include "hash.h"
#include "pomona.h"

namespace {

// Copies one slot; of two features that meet in a slot the one with more evidence (sum of squared gradients) stays.
void move_slot(const pm_online& m, const char* from, char* to, bool taken) {
  const size_t bytes = static_cast<size_t>(m.stride) * static_cast<size_t>(m.real_bytes);
  const auto evidence = [&](const char* slot) {
    const int64_t at = m.n_outputs == 1 ? 1 : 4 + (m.n_outputs + 3) / 4 * 4;
    if (m.real_bytes == 8) return reinterpret_cast<const double*>(slot)[at];
    return static_cast<double>(reinterpret_cast<const float*>(slot)[at]);
  };
  if (!taken || evidence(from) > evidence(to)) std::memcpy(to, from, bytes);
}

}  // namespace

int32_t pm_online_rehash(const pm_online* model, int32_t degree, int64_t n_rows, pm_region* to) {
  if (degree < 2 || degree > 3 || !to->hashed) return PM_BAD_INPUT;
  const pm_region& from = model->regions[degree - 1];
  const size_t bytes = static_cast<size_t>(model->stride) * static_cast<size_t>(model->real_bytes);
  const uint64_t mask = to->n_slots - 1;
  std::vector<char> empty(bytes, 0);
  uint64_t at = 0;
  const auto move = [&](uint32_t key) {
    const char* const source = static_cast<const char*>(from.slots) + at * bytes;
    if (std::memcmp(source, empty.data(), bytes) != 0) {
      char* const target = static_cast<char*>(to->slots) + (key & mask) * bytes;
      move_slot(*model, source, target, std::memcmp(target, empty.data(), bytes) != 0);
      if (from.touched) to->touched[key & mask] = from.touched[at];
    }
    ++at;
  };
  for (int64_t i = 0; i < n_rows; ++i) {
    const uint32_t first = static_cast<uint32_t>(pm::mix(static_cast<uint64_t>(i)));
    for (int64_t j = 0; j <= i; ++j) {
      if (degree == 2) {
        if (at < from.n_slots) move(first + static_cast<uint32_t>(j));
        continue;
      }
      const uint32_t second = first + static_cast<uint32_t>(pm::mix(static_cast<uint64_t>(j)));
      for (int64_t k = 0; k <= j && at < from.n_slots; ++k) move(second + static_cast<uint32_t>(k));
    }
  }
  return PM_OK;
}
