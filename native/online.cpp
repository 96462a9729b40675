// What the online learner does to its tables outside the hot loops.
#include <cmath>
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

// The score of a feature by the sums of |w| and of G over its outputs and by its inverse scale, or -1: from its weight as
// it is in the data, from that of the scaled feature, or from this times the root of its evidence.
template <int kind>
float score_of(const pm_online& m, double w, double G, double s) {
  if (m.normalized ? s == 0 : w == 0 && G == 0) return -1;  // it did not appear
  if (kind == PM_SCORE_WEIGHT && m.normalized) w *= s;
  if (kind == PM_SCORE_EVIDENCE && m.adaptive) w *= std::sqrt(G);  // plain steps keep no sums
  return static_cast<float>(w);
}

template <class Real, int kind>
void score_slots(const pm_online& m, const Real* slot, int64_t n, float* scores) {
  const int64_t K = m.n_outputs, sums = 4 + (K + 3) / 4 * 4;
  if (K == 1) {
    for (int64_t i = 0; i < n; ++i, slot += 4)
      scores[i] = score_of<kind>(m, std::fabs(static_cast<double>(slot[0])), static_cast<double>(slot[1]),
                                 static_cast<double>(slot[2]));
    return;
  }
  for (int64_t i = 0; i < n; ++i, slot += m.stride) {
    double w = 0, G = 0;
    for (int64_t k = 0; k < K; ++k)
      w += std::fabs(static_cast<double>(slot[4 + k])), G += static_cast<double>(slot[sums + k]);
    scores[i] = score_of<kind>(m, w, G, static_cast<double>(slot[0]));
  }
}

template <class Real>
int32_t score_slots(const pm_online& m, int32_t kind, const Real* slots, int64_t n, float* scores) {
  switch (kind) {
    case PM_SCORE_WEIGHT: return score_slots<Real, PM_SCORE_WEIGHT>(m, slots, n, scores), PM_OK;
    case PM_SCORE_SCALED: return score_slots<Real, PM_SCORE_SCALED>(m, slots, n, scores), PM_OK;
    case PM_SCORE_EVIDENCE: return score_slots<Real, PM_SCORE_EVIDENCE>(m, slots, n, scores), PM_OK;
    default: return PM_BAD_INPUT;
  }
}

}  // namespace

int32_t pm_online_scores(const pm_online* model, int32_t region, int32_t score, int64_t first, int64_t n, float* scores) {
  const pm_region& r = model->regions[region];
  if (first < 0 || n < 0 || static_cast<uint64_t>(first + n) > r.n_slots) return PM_BAD_INPUT;
  if (model->real_bytes == 4)
    return score_slots(*model, score, static_cast<const float*>(r.slots) + first * model->stride, n, scores);
  return score_slots(*model, score, static_cast<const double*>(r.slots) + first * model->stride, n, scores);
}

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
