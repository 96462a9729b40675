// Fayyad and Irani (1993): an interval is cut where the class entropy of its two sides is least, and each side again, as
// long as the gain pays for the description of the cut.
#include <cmath>
#include <cstring>

#include "pomona.h"

namespace {

// n log2 n.
double nlogn(double n) { return n > 0 ? n * std::log2(n) : 0; }

// Bits an example by which a cut must be better than one before it: rounding does not decide between equal ones.
constexpr double kTie = 1e-12;

struct Interval {
  int64_t first, last;  // values
};

// One class alone in both neighbours: no cut between them can be the best (Fayyad and Irani 1992, theorem 1).
bool inside_run(const uint32_t* a, const uint32_t* b, int32_t n_classes) {
  int32_t only = -1;
  for (int32_t k = 0; k < n_classes; ++k) {
    if (!a[k] && !b[k]) continue;
    if (only >= 0) return false;
    only = k;
  }
  return true;
}

class Cutter {
 public:
  Cutter(const uint32_t* counts, int32_t n_classes, double* memory)
      : counts_(counts), C_(n_classes), total_(memory), left_(memory + n_classes) {}

  // The best cut of an interval, or -1 where none pays.
  int64_t best(const Interval& in) {
    std::memset(total_, 0, sizeof(double) * static_cast<size_t>(C_));
    std::memset(left_, 0, sizeof(double) * static_cast<size_t>(C_));
    double N = 0;
    for (int64_t v = in.first; v <= in.last; ++v)
      for (int32_t k = 0; k < C_; ++k) total_[k] += row(v)[k];
    for (int32_t k = 0; k < C_; ++k) N += total_[k];
    double least = 1e300, n_left = 0, left_information = 0;
    int64_t cut = -1;
    for (int64_t v = in.first; v < in.last; ++v) {
      for (int32_t k = 0; k < C_; ++k) left_[k] += row(v)[k], n_left += row(v)[k];
      if (inside_run(row(v), row(v + 1), C_)) continue;
      double first = nlogn(n_left), second = nlogn(N - n_left);
      for (int32_t k = 0; k < C_; ++k) first -= nlogn(left_[k]), second -= nlogn(total_[k] - left_[k]);
      if (first + second < least - kTie * N) least = first + second, cut = v, left_information = first;
    }
    return cut >= 0 && pays(in, cut, N, least, left_information) ? cut : -1;
  }

 private:
  const uint32_t* row(int64_t v) const { return counts_ + v * C_; }

  // Gain > (log2(N - 1) + Delta) / N, with information in bits times N.
  bool pays(const Interval& in, int64_t cut, double N, double both, double first) {
    double whole = nlogn(N), n_left = 0;
    int32_t k0 = 0, k1 = 0, k2 = 0;
    std::memset(left_, 0, sizeof(double) * static_cast<size_t>(C_));
    for (int64_t v = in.first; v <= cut; ++v)
      for (int32_t k = 0; k < C_; ++k) left_[k] += row(v)[k], n_left += row(v)[k];
    for (int32_t k = 0; k < C_; ++k) {
      whole -= nlogn(total_[k]);
      k0 += total_[k] > 0, k1 += left_[k] > 0, k2 += total_[k] > left_[k];
    }
    const double entropy = whole / N, entropy1 = first / n_left, entropy2 = (both - first) / (N - n_left);
    // For many classes the 2 is lost in rounding, and the power would overflow.
    const double ways = k0 > 40 ? k0 * std::log2(3.0) : std::log2(std::pow(3.0, k0) - 2);
    const double delta = ways - (k0 * entropy - k1 * entropy1 - k2 * entropy2);
    return entropy - both / N > (std::log2(N - 1) + delta) / N;
  }

  const uint32_t* counts_;
  int32_t C_;
  double* total_;
  double* left_;
};

}  // namespace

int64_t pm_mdl_scratch_bytes(int64_t n_values, int32_t n_classes) {
  return static_cast<int64_t>(sizeof(double)) * 2 * n_classes + static_cast<int64_t>(sizeof(Interval)) * (n_values + 1);
}

int64_t pm_mdl_cuts(const uint32_t* counts, int64_t n_values, int32_t n_classes, int64_t* cuts, void* scratch) {
  if (n_values < 0 || n_classes < 1) return -1;
  if (n_values < 2) return 0;
  double* const memory = static_cast<double*>(scratch);
  Interval* const stack = reinterpret_cast<Interval*>(memory + 2 * n_classes);
  Cutter cutter(counts, n_classes, memory);
  int64_t depth = 0, found = 0;
  stack[depth++] = {0, n_values - 1};
  // Left before right, so that what comes off the stack without a cut ends intervals in rising order.
  while (depth > 0) {
    const Interval in = stack[--depth];
    const int64_t cut = in.first < in.last ? cutter.best(in) : -1;
    if (cut < 0) {
      if (in.last < n_values - 1) cuts[found++] = in.last;
      continue;
    }
    stack[depth++] = {cut + 1, in.last};
    stack[depth++] = {in.first, cut};
  }
  return found;
}

void pm_bin_codes(const double* values, int64_t n, const double* cuts, int64_t n_cuts, uint32_t* codes,
                  int64_t stride) {
  for (int64_t i = 0; i < n; ++i) {
    const double x = values[i];
    if (x != x) {
      codes[i * stride] = static_cast<uint32_t>(n_cuts + 1);
      continue;
    }
    int64_t low = 0, count = n_cuts;
    while (count > 0) {
      const int64_t half = count / 2;
      const bool right = cuts[low + half] < x;
      low = right ? low + half + 1 : low;
      count = right ? count - half - 1 : half;
    }
    codes[i * stride] = static_cast<uint32_t>(low);
  }
}
