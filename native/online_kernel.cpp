// Entry points of the online learner for one instruction set.
#include "kernels.h"

#include <limits>
#include <vector>

#include "online_multi.h"
#include "online_single.h"

namespace pm {
namespace PM_ISA {
namespace {

constexpr int64_t kGuess = 1 << 20;  // room for fewer features than this is guessed rather than counted

struct Sizes {
  int64_t features = 0, expanded = 0;  // of the largest example, before and after expansion
  int64_t keys = 0;                    // of all examples
};

Sizes largest(const pm_online& model, const pm_chunk& c) {
  Sizes sizes;
  for (int64_t e = 0; e < c.n; ++e) sizes.features = std::max(sizes.features, c.indptr[e + 1] - c.indptr[e]);
  const int64_t n = sizes.features;
  sizes.keys = model.real_bytes == 4 ? Example<float>::n_keys(model, c) : 0;
  sizes.expanded = n * (1 + (model.parents ? model.parents->n : 0));
  bool by_field = model.parents && sizes.expanded > kGuess;
  for (int64_t p = 0; p < model.n_products; ++p) {
    const int32_t* const fields = model.products + 3 * p;
    if (fields[0] == PM_ALL_FIELDS)
      sizes.expanded += fields[2] == PM_NO_FIELD ? n * (n + 1) / 2 : n * (n + 1) / 2 * (n + 2) / 3;
    else
      by_field = true;
  }
  if (!by_field) return sizes;
  // Products of chosen fields and of parents are far fewer than all: they are counted.
  const int64_t room = model.parents ? 0 : sizes.expanded;
  std::vector<char> memory(static_cast<size_t>(Example<float>::bytes(model, n, room)));
  Example<float> example(model, memory.data(), n, room);
  if (model.parents) sizes.expanded = n;
  for (int64_t e = 0; e < c.n; ++e) sizes.expanded = std::max(sizes.expanded, example.size_of(c, e));
  return sizes;
}

// How many examples ahead slots are asked for: about kFeaturesAhead features.
int64_t examples_ahead(const pm_chunk& c) {
  const int64_t mean = c.n ? (c.indptr[c.n] - c.indptr[0]) / c.n : 0;
  return 1 + kFeaturesAhead / std::max<int64_t>(mean, 1);
}

template <class Way>
double clipped(const Way& way, const pm_online& m, double p) {
  if (way.loss() == kLogistic || way.loss() == kPoisson || (way.loss() == kHinge && !way.peer_order()))
    return std::min(kMarginLimit, std::max(-kMarginLimit, p));
  return m.bounded && m.lowest <= m.highest ? std::min(m.highest, std::max(m.lowest, p)) : p;
}

void see_label(pm_online& m, double y) {
  m.lowest = std::min(m.lowest, y);
  m.highest = std::max(m.highest, y);
}

template <class Real, class Way>
int32_t learn_single(const Way& way, pm_online& m, const pm_chunk& c, const int64_t* order, int64_t n_order,
                     Single<Real, Way>& machine, double* predictions, int64_t* done) {
  const int64_t ahead = machine.prefetches() ? examples_ahead(c) : n_order;
  LossSum losses(m.loss_sum);
  for (int64_t i = *done; i < n_order; ++i) {
    const int64_t e = order ? order[i] : i;
    *done = i;
    machine.prefetch_announced();  // what a short example left of the one announced before
    if (i + ahead < n_order) machine.announce(c, order ? order[i + ahead] : i + ahead);
    if (!machine.example().load(c, e, true)) return PM_FULL;
    const double y = c.labels[e], h = c.weights ? c.weights[e] : 1.0;
    const bool learning = h > 0 && y == y;
    if (learning && way.peer_order()) see_label(m, y);
    const double offset = c.offsets ? c.offsets[e] : 0.0;
    const double whole = way.peer_order() ? machine.peer_dot() : machine.dot(learning);
    const double raw = machine.weighed(whole) + offset;
    const double p = clipped(way, m, raw);
    predictions[e] = p;
    if (!std::isfinite(raw)) return PM_NOT_FINITE;
    if (!learning) continue;
    const Point point = at(way.loss(), p, y, m.quantile);
    if (way.peer_order()) machine.dot(peer_learns(point));
    m.features += static_cast<uint64_t>(machine.expanded());
    m.nonzeros += static_cast<uint64_t>(machine.example().n_partners());
    losses.add(point, h);
    m.loss_weight += h;
    m.mistakes += (p > 0) != (y > 0) ? h : 0.0;  // no branch: mistakes cannot be foreseen
    if (way.residual()) {
      const double base = machine.base_dot() + offset, half = whole + offset;
      const auto point_at = [&](double score) { return at(way.loss(), clipped(way, m, score), y, m.quantile); };
      const Point without = point_at(base), with = point_at(in_full(base, half));
      if (machine.has_products() && weighs_products(m))
        weigh_products(m, h, value(without), value(point_at(half)), value(with));
      machine.update_apart(without, with, point, h);
    } else if (!way.peer_order() || peer_learns(point)) {
      way.ftrl() ? machine.update_ftrl(point, h) : machine.update(point, h);
    }
    machine.example().sign(machine.new_products());
    see_label(m, y);
    m.examples += 1;
    if (m.examples == m.pause_at) return *done = i + 1, PM_PAUSE;
  }
  *done = n_order;
  return PM_OK;
}

template <class Real>
int32_t learn_multi(pm_online& m, const pm_chunk& c, const int64_t* order, int64_t n_order, Multi<Real>& machine,
                    double* predictions, int64_t* done) {
  for (int64_t i = *done; i < n_order; ++i) {
    const int64_t e = order ? order[i] : i;
    *done = i;
    if (!machine.example().load(c, e, true)) return PM_FULL;
    const double y = c.labels[e], h = c.weights ? c.weights[e] : 1.0;
    const bool learning = h > 0 && y == y;
    if (learning && !(y >= 0)) return PM_BAD_INPUT;
    if (learning && y >= m.n_outputs) return PM_FULL;
    machine.dot(learning);
    double total = 0;
    double* const scores = predictions + e * m.n_outputs;
    for (int64_t k = 0; k < m.n_outputs; ++k) total += scores[k] = machine.score(k);
    if (!std::isfinite(total)) return PM_NOT_FINITE;
    if (!learning) continue;
    m.features += static_cast<uint64_t>(machine.expanded());
    m.nonzeros += static_cast<uint64_t>(machine.example().n_partners());
    m.loss_sum += h * machine.loss(static_cast<int64_t>(y));
    m.loss_weight += h;
    if (std::max_element(scores, scores + m.n_outputs) - scores != static_cast<int64_t>(y)) m.mistakes += h;
    machine.update(static_cast<int64_t>(y), h);
    machine.example().sign(machine.new_products());
    m.examples += 1;
    if (m.examples == m.pause_at) return *done = i + 1, PM_PAUSE;
  }
  *done = n_order;
  return PM_OK;
}

template <class Real>
int64_t scratch(const pm_online& m, const Sizes& s) {
  return m.n_outputs == 1 ? Single<Real, AnyWay>::bytes(m, s.features, s.expanded)
                          : Multi<Real>::bytes(m, s.features, s.expanded);
}

int64_t scratch_bytes(const pm_online& m, const Sizes& s) {
  return (m.real_bytes == 4 ? scratch<float>(m, s) : scratch<double>(m, s)) + taken<uint32_t>(s.keys);
}

template <class Real>
int32_t learn_as(pm_online& m, const pm_chunk& c, const Sizes& s, const int64_t* order, int64_t n_order, char* memory,
                 double* predictions, int64_t* done) {
  uint32_t* const keys = take<uint32_t>(memory, s.keys);
  const int64_t first = order ? 0 : *done;
  if (m.n_outputs == 1) {
    const auto learn = [&](const auto& way) {
      Single<Real, std::decay_t<decltype(way)>> machine(m, memory, s.features, s.expanded);
      machine.example().look_at(c, first, keys);
      return learn_single(way, m, c, order, n_order, machine, predictions, done);
    };
    const AnyWay way{m};
    if constexpr (sizeof(Real) == sizeof(float)) {
      if (UsualWay<kLogistic>::is_of(way)) return learn(UsualWay<kLogistic>(way));
      if (UsualWay<kSquared>::is_of(way)) return learn(UsualWay<kSquared>(way));
    }
    return learn(way);
  }
  Multi<Real> machine(m, memory, s.features, s.expanded);
  machine.example().look_at(c, first, keys);
  return learn_multi(m, c, order, n_order, machine, predictions, done);
}

template <class Real>
int32_t predict_as(pm_online& m, const pm_chunk& c, const Sizes& s, char* memory, double* predictions) {
  uint32_t* const keys = take<uint32_t>(memory, s.keys);
  if (m.n_outputs == 1) {
    const AnyWay way{m};
    Single<Real, AnyWay> machine(m, memory, s.features, s.expanded);
    machine.example().look_at(c, 0, keys);
    for (int64_t e = 0; e < c.n; ++e) {
      machine.example().load(c, e, false);
      predictions[e] = clipped(way, m, machine.weighed(machine.dot(false)) + (c.offsets ? c.offsets[e] : 0.0));
    }
    return PM_OK;
  }
  Multi<Real> machine(m, memory, s.features, s.expanded);
  machine.example().look_at(c, 0, keys);
  for (int64_t e = 0; e < c.n; ++e) {
    machine.example().load(c, e, false);
    machine.dot(false);
    for (int64_t k = 0; k < m.n_outputs; ++k) predictions[e * m.n_outputs + k] = machine.score(k);
  }
  return PM_OK;
}

template <class Real>
int32_t expand_as(const pm_online& m, const pm_chunk& c, const Sizes& s, char* memory, int64_t* indptr, uint32_t* columns,
                  float* values, int64_t capacity, int64_t* done) {
  uint32_t* const keys = take<uint32_t>(memory, s.keys);
  Example<Real> example(m, memory, s.features, s.expanded);
  example.look_at(c, 0, keys);
  uint64_t first[3] = {0, 0, 0};
  for (int i = 1; i < 3; ++i) first[i] = first[i - 1] + m.regions[i - 1].n_slots;
  for (int64_t e = *done; e < c.n; ++e) {
    *done = e;
    example.load(c, e, false);
    int64_t at = indptr[e];
    if (at + example.expanded_size() > capacity) return PM_FULL;
    example.each_run([&](const Run<Real>& run) {
      for (int64_t j = 0; j < run.count; ++j) {
        const Real x = run.a * run.x[j];
        if (x == 0) continue;
        columns[at] = static_cast<uint32_t>(first[run.degree - 1] + example.place_of(run, j));
        values[at++] = static_cast<float>(x);
      }
    });
    indptr[e + 1] = at;
  }
  *done = c.n;
  return PM_OK;
}

}  // namespace

int32_t online_expand(const pm_online& m, const pm_chunk& c, void* memory, int64_t memory_bytes, int64_t* indptr,
                      uint32_t* columns, float* values, int64_t capacity, int64_t* done) {
  const Sizes s = largest(m, c);
  char* const start = static_cast<char*>(memory);
  if (memory_bytes < scratch_bytes(m, s)) return PM_BAD_INPUT;
  return m.real_bytes == 4 ? expand_as<float>(m, c, s, start, indptr, columns, values, capacity, done)
                           : expand_as<double>(m, c, s, start, indptr, columns, values, capacity, done);
}

int64_t online_scratch_bytes(const pm_online& m, const pm_chunk& c) { return scratch_bytes(m, largest(m, c)); }

int32_t online_learn(pm_online& m, const pm_chunk& c, const int64_t* order, int64_t n_order, void* memory,
                     int64_t memory_bytes, double* predictions, int64_t* done) {
  const Sizes s = largest(m, c);
  char* const start = static_cast<char*>(memory);
  if (memory_bytes < scratch_bytes(m, s)) return PM_BAD_INPUT;
  return m.real_bytes == 4 ? learn_as<float>(m, c, s, order, n_order, start, predictions, done)
                           : learn_as<double>(m, c, s, order, n_order, start, predictions, done);
}

int32_t online_predict(const pm_online& model, const pm_chunk& c, void* memory, int64_t memory_bytes,
                       double* predictions) {
  pm_online m = model;  // predicting writes to nothing but scratch and predictions
  const Sizes s = largest(m, c);
  char* const start = static_cast<char*>(memory);
  if (memory_bytes < scratch_bytes(m, s)) return PM_BAD_INPUT;
  return m.real_bytes == 4 ? predict_as<float>(m, c, s, start, predictions)
                           : predict_as<double>(m, c, s, start, predictions);
}

int32_t move_products(const pm_region& from, const pm_parents& parents, const int64_t* used, int64_t n,
                      int64_t slot_bytes, int64_t tag_byte, const pm_region& to, pm_product* owners, uint32_t* places) {
  if (to.n_slots == 0 || (to.n_slots & (to.n_slots - 1))) return PM_BAD_INPUT;
  if (!to.hashed && static_cast<uint64_t>(n) >= to.n_slots) return PM_BAD_INPUT;
  const KeyTable table(to, slot_bytes, tag_byte);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t slot = used[i];
    const pm_product owner = parents.block ? pm_product{static_cast<uint32_t>(slot / parents.block),
                                                        static_cast<uint32_t>(slot % parents.block)}
                                           : parents.owners[slot];
    const uint64_t id = to.hashed ? 0 : parents.keys[owner.parent] + mix(owner.row);
    const uint32_t place = start_of_products(owner.parent) + (owner.row << 2);
    const uint64_t at = to.hashed ? place & (to.n_slots - 1) : table.find(id).slot;
    std::memcpy(static_cast<char*>(to.slots) + at * static_cast<uint64_t>(slot_bytes),
                static_cast<const char*>(from.slots) + slot * slot_bytes, static_cast<size_t>(slot_bytes));
    table.take(at, id);
    owners[at] = owner;
    places[i] = static_cast<uint32_t>(at);
  }
  return PM_OK;
}

int32_t find_products(const pm_region& region, int64_t slot_bytes, int64_t tag_byte, const uint64_t* keys, int64_t n,
                      int64_t* places) {
  const KeyTable table(region, slot_bytes, tag_byte);
  for (int64_t i = 0; i < n; ++i) {
    const KeyTable::Place place = table.find(keys[i]);
    places[i] = place.found ? static_cast<int64_t>(place.slot) : -1;
  }
  return PM_OK;
}

}  // namespace PM_ISA
}  // namespace pm
