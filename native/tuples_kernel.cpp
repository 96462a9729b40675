// Counting and learning over the tuples of coded rows, a chunk at a time.
#include "tuples_learn.h"

#include "kernels.h"

namespace pm {
namespace PM_ISA {

namespace {

bool labels_fit(const int32_t* labels, int64_t n, int32_t n_classes) {
  for (int64_t i = 0; i < n; ++i)
    if (labels[i] < 0 || labels[i] >= n_classes) return false;
  return true;
}

constexpr int64_t kBlock = 256;

// Rows of blocks of cells, for loops that visit each tuple on its own.
template <class Visit>
void each_cell_block(const pm_tuples& t, const uint32_t* code, Visit&& visit) {
  uint32_t cells[kBlock], rows[kBlock];
  pm_tuples part = t;
  // Columns and strides lie position after position, so a part of the tuples is found by hand.
  for (int64_t first = 0; first < t.n_tuples; first += kBlock) {
    const int64_t count = t.n_tuples - first < kBlock ? t.n_tuples - first : kBlock;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t cell = 0;
      for (int64_t p = 0; p < t.order; ++p)
        cell += code[t.columns[p * t.n_tuples + first + i]] * t.strides[p * t.n_tuples + first + i];
      cells[i] = cell;
    }
    part.starts = t.starts + first, part.n_tuples = count;
    visit(first, count, cells, rows, part);
  }
}

template <class Learner, bool Decayed>
int32_t learn_classes(const pm_tuples& t, pm_tuple_model& m, const uint32_t* codes, const int32_t* labels, int64_t n,
                      char* memory) {
  const Learner learner(m, t.n_tuples);
  const int64_t stride = 2 * m.padded;
  float* const s = reinterpret_cast<float*>(memory);
  float* const r = s + m.padded;
  RowStream stream(t, codes, n, r + m.padded, m.slots, stride);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t* const rows = stream.next();
    learner.scores(m.slots, stride, m.bias, rows, s);
    bool right;
    const double loss = residuals<typename Learner::Lane>(s, m.n_outputs, m.padded, labels[i], r, &right);
    if (!(loss < 1e30)) return PM_NOT_FINITE;
    m.loss_sum += loss;
    m.errors += !right;
    learner.template step<Decayed>(m, rows, r);
    ++m.examples;
  }
  return PM_OK;
}

template <bool Decayed>
int32_t learn_logit(const pm_tuples& t, pm_tuple_model& m, const uint32_t* codes, const int32_t* labels, int64_t n,
                    char* memory) {
  const Logit learner(t.n_tuples);
  RowStream stream(t, codes, n, memory, m.slots, 4);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t* const rows = stream.next();
    const double s = learner.score(m.slots, 4, m.bias, rows);
    if (!(std::fabs(s) < 1e30)) return PM_NOT_FINITE;
    const double sign = labels[i] ? 1 : -1, margin = sign * s;
    const double wrong = 1 / (1 + std::exp(margin));  // P(other class | x)
    m.loss_sum += margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
    m.errors += margin < 0 || (margin == 0 && labels[i]);
    learner.step<Decayed>(m, rows, wrong < 1e-18 ? 0.0f : static_cast<float>(sign * wrong));
    ++m.examples;
  }
  return PM_OK;
}

template <bool Decayed>
int32_t learn(const pm_tuples& t, pm_tuple_model& m, const uint32_t* codes, const int32_t* labels, int64_t n,
              char* memory) {
  switch (m.padded) {
    case 1: return learn_logit<Decayed>(t, m, codes, labels, n, memory);
    case 4: return learn_classes<Classes<Quads, 1>, Decayed>(t, m, codes, labels, n, memory);
    case 8: return learn_classes<Classes<Eight, 1>, Decayed>(t, m, codes, labels, n, memory);
    case 16: return learn_classes<Classes<Eight, 2>, Decayed>(t, m, codes, labels, n, memory);
    case 24: return learn_classes<Classes<Eight, 3>, Decayed>(t, m, codes, labels, n, memory);
    case 32: return learn_classes<Classes<Eight, 4>, Decayed>(t, m, codes, labels, n, memory);
    default: return learn_classes<Classes<Eight, 0>, Decayed>(t, m, codes, labels, n, memory);
  }
}

bool model_fits(const pm_tuple_model& m) {
  if (m.n_classes < 2 || m.n_outputs != (m.n_classes == 2 ? 1 : m.n_classes)) return false;
  if (m.n_outputs == 1) return m.padded == 1;
  return m.padded >= m.n_outputs && (m.padded == 4 || m.padded % 8 == 0);
}

// -log P(y|x) of scores minus the weights of one tuple.
double loss_without(const double* s, const float* w, int64_t n_outputs, int32_t y) {
  if (n_outputs == 1) {
    const double margin = (y ? 1 : -1) * (s[0] - (w ? w[0] : 0.0f));
    return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
  }
  double top = -1e300, sum = 0;
  for (int64_t k = 0; k < n_outputs; ++k) {
    const double one = s[k] - (w ? w[k] : 0.0f);
    top = one > top ? one : top;
  }
  for (int64_t k = 0; k < n_outputs; ++k) sum += std::exp(static_cast<float>(s[k] - (w ? w[k] : 0.0f) - top));
  return top + std::log(sum) - (s[y] - (w ? w[y] : 0.0f));
}

}  // namespace

int32_t tuples_explore(pm_tuples& t, const uint32_t* codes, int64_t n, const pm_tuples* lower, const int32_t* parents,
                       void* memory) {
  if (t.index != PM_TUPLES_RANKED || !fits(t) || !codes_fit(t, codes, n)) return PM_BAD_INPUT;
  uint32_t* const below = static_cast<uint32_t*>(memory);
  if (lower) {
    if (!parents || lower->n_columns != t.n_columns || !fits(*lower) || !codes_fit(*lower, codes, n)) return PM_BAD_INPUT;
    for (int64_t i = 0; i < t.n_tuples * t.order; ++i)
      if (parents[i] < -1 || parents[i] >= lower->n_tuples) return PM_BAD_INPUT;
  }
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t* const code = codes + i * t.n_columns;
    if (lower) {
      uint32_t* const cells = below + lower->n_tuples;
      cells_of(*lower, code, cells);
      rows_of(*lower, cells, below);
    }
    each_cell_block(t, code, [&](int64_t first, int64_t count, uint32_t* cells, uint32_t*, const pm_tuples& part) {
      for (int64_t k = 0; k < count; ++k) {
        bool wanted = true;
        for (int64_t p = 0; lower && p < t.order; ++p) {
          const int32_t parent = parents[p * t.n_tuples + first + k];
          wanted = wanted && (parent < 0 || below[parent] != 0);
        }
        const uint64_t cell = part.starts[k] + cells[k];
        if (wanted) t.words[cell >> 6].bits |= uint64_t{1} << (cell & 63);
      }
    });
  }
  return PM_OK;
}

int32_t tuples_rows(const pm_tuples& t, const uint32_t* codes, int64_t n, uint32_t* rows) {
  if (!fits(t) || !codes_fit(t, codes, n)) return PM_BAD_INPUT;
  for (int64_t i = 0; i < n; ++i)
    each_cell_block(t, codes + i * t.n_columns,
                    [&](int64_t first, int64_t, uint32_t* cells, uint32_t*, const pm_tuples& part) {
                      rows_of(part, cells, rows + i * t.n_tuples + first);
                    });
  return PM_OK;
}

int32_t tuples_count(const pm_tuples& t, const uint32_t* codes, const int32_t* labels, int64_t n, int32_t n_classes,
                     uint32_t* counts) {
  if (n_classes < 1 || !fits(t) || !codes_fit(t, codes, n) || !labels_fit(labels, n, n_classes)) return PM_BAD_INPUT;
  for (int64_t i = 0; i < n; ++i)
    each_cell_block(t, codes + i * t.n_columns,
                    [&](int64_t, int64_t count, uint32_t* cells, uint32_t* rows, const pm_tuples& part) {
                      rows_of(part, cells, rows);
                      for (int64_t k = 0; k < count; ++k) __builtin_prefetch(counts + uint64_t{rows[k]} * static_cast<uint64_t>(n_classes), 1);
                      for (int64_t k = 0; k < count; ++k) ++counts[uint64_t{rows[k]} * static_cast<uint64_t>(n_classes) + static_cast<uint64_t>(labels[i])];
                    });
  return PM_OK;
}

int32_t tuples_learn(const pm_tuples& t, pm_tuple_model& m, const uint32_t* codes, const int32_t* labels, int64_t n,
                     void* memory) {
  if (!fits(t) || !model_fits(m) || !codes_fit(t, codes, n) || !labels_fit(labels, n, m.n_classes)) return PM_BAD_INPUT;
  char* const scratch = static_cast<char*>(memory);
  return m.l2 > 0 ? learn<true>(t, m, codes, labels, n, scratch) : learn<false>(t, m, codes, labels, n, scratch);
}

int32_t tuples_predict(const pm_tuples& t, const float* weights, int64_t stride, const float* bias, int32_t n_outputs,
                       const uint32_t* codes, int64_t n, float* scores) {
  if (n_outputs < 1 || stride < n_outputs || !fits(t) || !codes_fit(t, codes, n)) return PM_BAD_INPUT;
  for (int64_t i = 0; i < n; ++i) {
    float* const s = scores + i * n_outputs;
    for (int64_t k = 0; k < n_outputs; ++k) s[k] = bias[k];
    each_cell_block(t, codes + i * t.n_columns,
                    [&](int64_t, int64_t count, uint32_t* cells, uint32_t* rows, const pm_tuples& part) {
                      rows_of(part, cells, rows);
                      for (int64_t j = 0; j < count; ++j) __builtin_prefetch(weights + int64_t{rows[j]} * stride);
                      for (int64_t j = 0; j < count; ++j) {
                        const float* const w = weights + int64_t{rows[j]} * stride;
                        for (int64_t k = 0; k < n_outputs; ++k) s[k] += w[k];
                      }
                    });
  }
  return PM_OK;
}

int32_t tuples_drop(const pm_tuples& t, const float* weights, int64_t stride, const float* bias, int32_t n_outputs,
                    const uint32_t* codes, const int32_t* labels, int64_t n, double* drops, void* memory) {
  const int32_t n_classes = n_outputs == 1 ? 2 : n_outputs;
  if (n_outputs < 1 || stride < n_outputs || !fits(t) || !codes_fit(t, codes, n) || !labels_fit(labels, n, n_classes))
    return PM_BAD_INPUT;
  double* const s = static_cast<double*>(memory);
  uint32_t* const rows = reinterpret_cast<uint32_t*>(s + n_outputs);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n_outputs; ++k) s[k] = bias[k];
    each_cell_block(t, codes + i * t.n_columns,
                    [&](int64_t first, int64_t count, uint32_t* cells, uint32_t*, const pm_tuples& part) {
                      rows_of(part, cells, rows + first);
                      for (int64_t j = 0; j < count; ++j)
                        for (int64_t k = 0; k < n_outputs; ++k) s[k] += weights[int64_t{rows[first + j]} * stride + k];
                    });
    const double whole = loss_without(s, nullptr, n_outputs, labels[i]);
    for (int64_t j = 0; j < t.n_tuples; ++j)
      drops[j] += loss_without(s, weights + int64_t{rows[j]} * stride, n_outputs, labels[i]) - whole;
  }
  return PM_OK;
}

}  // namespace PM_ISA
}  // namespace pm
