// What the online learner does to its tables outside the hot loops.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "hash.h"
#include "pomona.h"

namespace {

// Copies one slot; of two features that meet in a slot the one with more evidence (sum of squared gradients) stays.
void move_slot(const pm_online& m, const char* from, char* to, bool taken) {
  const size_t bytes = static_cast<size_t>(m.stride) * static_cast<size_t>(m.real_bytes);
  const auto evidence = [&](const char* slot) {
    const int64_t at = m.n_outputs == 1 ? 1 : m.shared ? 2 : 4 + (m.n_outputs + 3) / 4 * 4;
    if (m.real_bytes == 8) return reinterpret_cast<const double*>(slot)[at];
    return static_cast<double>(reinterpret_cast<const float*>(slot)[at]);
  };
  if (!taken || evidence(from) > evidence(to)) std::memcpy(to, from, bytes);
}

// The score of a feature by the sums of |w| and of G over its outputs and by its inverse scale; 0 if it did not appear.
template <int kind>
float score_of(const pm_online& m, double w, double G, double s) {
  if (kind == PM_SCORE_WEIGHT && m.normalized) w *= s;
  if (kind == PM_SCORE_EVIDENCE && m.adaptive) w *= std::sqrt(G);  // plain steps keep no sums
  return static_cast<float>(w);
}

// The sum of |v|, in four parts that do not wait for each other.
template <class Real>
double sum_of_sizes(const Real* v, int64_t n) {
  double part[4] = {};
  int64_t k = 0;
  for (; k + 4 <= n; k += 4)
    for (int64_t j = 0; j < 4; ++j) part[j] += std::fabs(static_cast<double>(v[k + j]));
  for (; k < n; ++k) part[0] += std::fabs(static_cast<double>(v[k]));
  return (part[0] + part[1]) + (part[2] + part[3]);
}

template <class Real, int kind>
void score_slots(const pm_online& m, const Real* slot, int64_t n, float* scores) {
  const int64_t K = m.n_outputs, sums = 4 + (K + 3) / 4 * 4;
  if (K == 1 && kind != PM_SCORE_EVIDENCE && sizeof(Real) == sizeof(float)) {  // as below, to the bit: one rounding
    const bool scales = kind == PM_SCORE_WEIGHT && m.normalized;
    for (int64_t i = 0; i < n; ++i, slot += 4)
      scores[i] = static_cast<float>(scales ? std::fabs(slot[0]) * slot[2] : std::fabs(slot[0]));
    return;
  }
  if (K == 1) {
    for (int64_t i = 0; i < n; ++i, slot += 4)
      scores[i] = score_of<kind>(m, std::fabs(static_cast<double>(slot[0])), static_cast<double>(slot[1]),
                                 static_cast<double>(slot[2]));
    return;
  }
  for (int64_t i = 0; i < n; ++i, slot += m.stride) {
    scores[i] = 0;
    if (m.normalized && slot[0] == 0) continue;  // it did not appear: nothing more of it is looked at
    const double w = sum_of_sizes(slot + 4, K);
    const double G = m.shared ? static_cast<double>(K) * static_cast<double>(slot[2]) : sum_of_sizes(slot + sums, K);
    scores[i] = score_of<kind>(m, w, G, static_cast<double>(slot[0]));
  }
}

template <class Real>
void score_slots(const pm_online& m, int32_t kind, const void* slots, int64_t first, int64_t n, float* scores) {
  const Real* const slot = static_cast<const Real*>(slots) + first * m.stride;
  if (kind == PM_SCORE_WEIGHT) return score_slots<Real, PM_SCORE_WEIGHT>(m, slot, n, scores);
  if (kind == PM_SCORE_SCALED) return score_slots<Real, PM_SCORE_SCALED>(m, slot, n, scores);
  score_slots<Real, PM_SCORE_EVIDENCE>(m, slot, n, scores);
}

// The highest scores of a stream, with their places.
class Best {
 public:
  explicit Best(int64_t wanted) : wanted_(static_cast<size_t>(wanted)) {}

  // No score below is among them.
  float least() const { return least_; }
  void add(int64_t slot, float score) {
    found_.push_back({slot, score});
    highest_.push(score);
    if (highest_.size() > wanted_) highest_.pop();
    if (highest_.size() == wanted_) least_ = highest_.top();
    if (found_.size() >= 4 * wanted_ + 1024 && found_.size() >= 2 * kept_) drop();
  }
  const std::vector<std::pair<int64_t, float>>& finish() { return drop(), found_; }

 private:
  void drop() {
    const auto low = [this](const std::pair<int64_t, float>& one) { return one.second < least_; };
    found_.erase(std::remove_if(found_.begin(), found_.end(), low), found_.end());
    kept_ = found_.size();  // ties may be many
  }

  size_t wanted_, kept_ = 0;
  float least_ = std::numeric_limits<float>::denorm_min();
  std::priority_queue<float, std::vector<float>, std::greater<float>> highest_;
  std::vector<std::pair<int64_t, float>> found_;
};

constexpr int64_t kPiece = 1 << 12;  // slots that are scored together

// From where on, at multiples of eight, one of the scores may be at least so high: most are far below.
int64_t next_high(const float* scores, int64_t i, int64_t n, float least) {
  for (; i + 8 <= n; i += 8) {
    int32_t high = 0;
    for (int64_t k = i; k < i + 8; ++k) high |= scores[k] >= least;
    if (high) break;
  }
  return i;
}

}  // namespace

int64_t pm_best_slots(const pm_online* model, int32_t region, int32_t score, int64_t wanted, const int64_t* excluded,
                      int64_t n_excluded, const uint8_t* complete, int64_t* slots, float* scores, int64_t capacity) {
  if (wanted <= 0) return 0;
  const pm_region& r = model->regions[region];
  const int64_t n = static_cast<int64_t>(r.n_slots), block = model->parents->block;
  const auto is_complete = [&](int64_t slot) {
    return complete && complete[block ? slot / block : model->parents->owners[slot].parent];
  };
  Best best(wanted);
  std::vector<float> piece(static_cast<size_t>(std::min(n, kPiece)));
  for (int64_t first = 0; first < n; first += kPiece) {
    const int64_t size = std::min(kPiece, n - first);
    if (model->real_bytes == 4) score_slots<float>(*model, score, r.slots, first, size, piece.data());
    else score_slots<double>(*model, score, r.slots, first, size, piece.data());
    if (region == 1 && model->residual)
      for (float& one : piece) one *= static_cast<float>(1 / PM_PRODUCT_SHARE);
    for (; n_excluded && *excluded < first + size; ++excluded, --n_excluded)
      if (*excluded >= first) piece[static_cast<size_t>(*excluded - first)] = 0;
    for (int64_t i = 0; i < size;) {
      i = next_high(piece.data(), i, size, best.least());
      for (const int64_t stop = std::min((i | 7) + 1, size); i < stop; ++i)
        if (const float found = piece[static_cast<size_t>(i)]; found >= best.least() && !is_complete(first + i))
          best.add(first + i, found);
    }
  }
  const auto& found = best.finish();
  for (size_t i = 0; i < found.size() && static_cast<int64_t>(i) < capacity; ++i)
    slots[i] = found[i].first, scores[i] = found[i].second;
  return static_cast<int64_t>(found.size());
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

int32_t pm_link_parents(const int64_t* links, const int64_t* factors, const int64_t* barred, int64_t n_barred,
                        pm_parents* parents) {
  pm_parents& p = *parents;
  for (int64_t f = 0; f < p.n_factors; ++f) {
    if (factors[f] < 0 || factors[f] >= p.n_rows) return PM_BAD_INPUT;
    p.factor_of_row[factors[f]] = static_cast<uint32_t>(f + 1);
    const uint64_t near = static_cast<uint64_t>(factors[f]) % PM_NEAR_ROWS;
    p.near_rows[near >> 6] |= uint64_t{1} << (near & 63);
  }
  const auto factor_of = [&](int64_t row) { return row < 0 || row >= p.n_rows ? 0 : p.factor_of_row[row]; };
  for (int64_t i = 0; i < p.n; ++i) {  // children[k + 1]: how many parents grow from parent k
    const int64_t from = links[2 * i];
    if (from < -1 || from >= i || factor_of(links[2 * i + 1]) == 0) return PM_BAD_INPUT;
    if (from < 0) p.single[factor_of(links[2 * i + 1]) - 1] = static_cast<uint32_t>(i + 1);
    else ++p.children[from + 1];
  }
  for (int64_t i = 0; i < p.n; ++i) p.children[i + 1] += p.children[i];
  std::vector<int64_t> next(p.children, p.children + p.n);
  for (int64_t i = 0; i < p.n; ++i) {
    const int64_t from = links[2 * i];
    if (from < 0) continue;
    p.child[next[static_cast<size_t>(from)]] = static_cast<uint32_t>(i);
    p.child_factor[next[static_cast<size_t>(from)]++] = factor_of(links[2 * i + 1]) - 1;
  }
  for (int64_t i = 0; i < n_barred; ++i) {
    const uint32_t f = factor_of(barred[n_barred + i]);
    if (barred[i] < 0 || barred[i] >= p.n || f == 0) return PM_BAD_INPUT;
    p.excluded[barred[i] * p.words + (f - 1) / 64] |= uint64_t{1} << ((f - 1) & 63);
  }
  return PM_OK;
}
