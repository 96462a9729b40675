// One example made ready for a kernel, and the runs of features that its expansion consists of.
//
// A run is a stretch of features whose slots are base + keys[j] and whose values are a * x[j]. The linear part is one
// run; each product x_i * (x_j, j <= i) is one run; so is each x_i * x_j * (x_k, k <= j). The keys of the last factor are
// rows, hashed or not: so partners that are neighbours have slots that are. All products of an example in which no row is
// missing are one run: in the combinatorial number system they are neighbours.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "hash.h"
#include "parents.h"
#include "pomona.h"
#include "run.h"

namespace pm {
namespace PM_ISA {

inline uint64_t pairs_below(uint64_t row) { return row * (row + 1) / 2; }                     // C(row + 1, 2)
inline uint64_t triples_below(uint64_t row) { return row * (row + 1) * (row + 2) / 6; }       // C(row + 2, 3)
inline uint64_t slots_needed(int degree, uint64_t rows) {
  return degree == 1 ? rows : degree == 2 ? pairs_below(rows) : triples_below(rows);
}

// Calls visit(k, key) with the key that feature first + k has in a hashed region. (The test of `wide` stays outside of
// the loop: inside, the compiler makes both kinds of keys for every feature.)
template <class Visit>
inline void each_hashed_key(const pm_chunk& c, int64_t first, int64_t n, Visit&& visit) {
  if (c.wide) {
    const uint64_t* const ids = static_cast<const uint64_t*>(c.indices) + first;
    for (int64_t k = 0; k < n; ++k) visit(k, static_cast<uint32_t>(ids[k]));
  } else {
    const uint32_t* const columns = static_cast<const uint32_t*>(c.indices) + first;
    for (int64_t k = 0; k < n; ++k) visit(k, static_cast<uint32_t>(mix(columns[k])));
  }
}

template <class Real>
class Example {
 public:
  // Whether features are read from the chunk, without a copy.
  static bool as_they_are(const pm_online& model) {
    return sizeof(Real) == sizeof(float) && model.n_products == 0 && !model.parents;
  }
  // How many keys look_at() makes: columns of a hashed table are hashed once a chunk, for asking ahead and for use.
  static int64_t n_keys(const pm_online& model, const pm_chunk& c) {
    return as_they_are(model) && model.regions[0].hashed && !c.wide && !c.keys ? c.indptr[c.n] - c.indptr[0] : 0;
  }

  // Bytes for examples of at most n features, which the expansion makes `expanded`.
  static int64_t bytes(const pm_online& model, int64_t n, int64_t expanded) {
    return (model.parents ? Parents<Real>::bytes(model, n, expanded) : 0) + 9 * 64 + (n + 1) * static_cast<int64_t>(4 * sizeof(uint32_t) + sizeof(uint16_t) + 2 * sizeof(Real) + 8) +
           (expanded + 1 + 3 * kLanes) * static_cast<int64_t>(sizeof(Real));
  }

  Example(const pm_online& model, char* memory, int64_t n, int64_t expanded)
      : model_(model), row_(take<uint32_t>(memory, n)), key_(take<uint32_t>(memory, n)),
        last_row_(take<uint32_t>(memory, n)), below_(take<uint32_t>(memory, n)),
        field_(take<uint16_t>(memory, n)), x_(take<Real>(memory, n + kLanes)), last_x_(take<Real>(memory, n)),
        sort_(take<uint64_t>(memory, n)), product_x_(take<Real>(memory, expanded + 2 * kLanes)) {
    for (int64_t p = 0; p < 3 * model.n_products; ++p) by_field_ |= model.products[p] >= 0;
    if (model.parents) parents_.emplace(model, memory, n, expanded);
    as_they_are_ = as_they_are(model);
  }

  // What load() relies on for the examples of a chunk, from e on: the keys of columns, for which there is room at `keys`.
  void look_at(const pm_chunk& c, int64_t e, uint32_t* keys) {
    looked_until_ = looked_from_;
    if (!as_they_are_ || !model_.regions[0].hashed) return;
    const int64_t first = c.indptr[e], n = c.indptr[c.n] - first;
    if (c.keys) {
      keys_ = c.keys;
    } else if (!c.wide) {
      each_hashed_key(c, first, n, [&](int64_t k, uint32_t key) { keys[k] = key; });
      keys_ = keys - first;
    }
  }
  // By which the slots of the linear part are found: as uint64_t, if the chunk is wide, or as uint32_t.
  const void* places(const pm_chunk& c) const { return keys_ ? keys_ : c.indices; }
  bool keyed() const { return keys_; }

  // Loads example e. Features outside the table are left out, unless it may grow: then the answer is false.
  inline __attribute__((always_inline)) bool load(const pm_chunk& c, int64_t e, bool grow) {
    return parents_ ? load_rows(c, e, grow) && look_up(grow) : load_plain(c, e, grow);
  }

  // Calls visit(run) for every run of the expansion.
  template <class Visit>
  void each_run(Visit&& visit) const {
    visit(linear_);
    each_product(visit);
  }
  const Run<Real>& linear() const { return linear_; }
  bool has_products() const { return parents_ ? parents_->n_places() != 0 : model_.n_products != 0; }
  template <class Visit>
  inline __attribute__((always_inline)) void each_product(Visit&& visit) const {
    if (parents_) visit(products_);
    for (int64_t p = 0; p < model_.n_products; ++p) {
      const int32_t* const fields = model_.products + 3 * p;
      const int degree = degree_of(fields);
      if (as_one_run(fields, degree))
        visit(all_products(degree));
      else
        degree == 2 ? pair_runs(fields, visit) : triple_runs(fields, visit);
    }
  }

  // Base features that may be multiplied.
  int64_t n_partners() const { return n_partners_; }

  // Features of example e after expansion, or somewhat more; nothing is looked up.
  int64_t size_of(const pm_chunk& c, int64_t e) {
    if (!parents_) return load(c, e, false) ? expanded_size() : 0;
    load_rows(c, e, false);
    return n_ + parents_->most();
  }

  // apple, hashed products: says in their slots whose they are, in new ones and now and then in all, so that most slots
  // name the most frequent of those that share them.
  inline __attribute__((always_inline)) void sign(const NewProducts& fresh) {
    if (!parents_ || !model_.regions[1].hashed) return;
    const bool all = static_cast<int64_t>(model_.examples) % kSignedEvery == 0;
    if (all || fresh.any || model_.parents->joined) parents_->sign(all, fresh);
  }

  // The slot of feature j of a run.
  uint64_t place_of(const Run<Real>& run, int64_t j) const {
    const pm_region& r = model_.regions[run.degree - 1];
    const uint64_t key = run.key(j);
    return r.hashed ? key & (r.n_slots - 1) : key;
  }

  // Adds the example to the moments of its features, those on trial included. slope[k]: derivative by output k.
  void add_moments(const Real* slope, int64_t K, double h) const {
    double squares = 0;
    for (int64_t k = 0; k < K; ++k) squares += static_cast<double>(slope[k]) * slope[k];
    const auto add = [&](int region, uint64_t place, double m) {
      if (m == 0) return;
      double* const sums = model_.moments[region] + place * static_cast<uint64_t>(3 + K);
      sums[0] += h * m * m, sums[1] += h * squares * m * m, sums[2] += 1;
      for (int64_t k = 0; k < K; ++k) sums[3 + k] += h * static_cast<double>(slope[k]) * m;
    };
    each_run([&](const Run<Real>& run) {
      for (int64_t j = 0; j < run.count; ++j)
        add(run.degree - 1, place_of(run, j), static_cast<double>(run.a * run.x[j]));
    });
    for (int64_t j = 0; j < parents_->n_trials(); ++j)
      add(1, parents_->trials()[j], static_cast<double>(parents_->trial_products()[j]));
  }

  int64_t expanded_size() const {
    int64_t total = 0;
    each_run([&](const Run<Real>& run) { total += run.count; });
    return total;
  }

 private:
  static constexpr int64_t kSignedEvery = 64, kLookedAt = 64;  // examples
  static constexpr int64_t kBehindRows = 8;  // rows and values that apple may read behind those of an example

  // apple: rows that there is room for. In a hashed table rows beyond its end share the slots of others.
  uint64_t rows_known() const {
    const uint64_t room = model_.regions[0].hashed ? PM_NO_ROW : model_.regions[0].n_slots;
    const uint64_t block = static_cast<uint64_t>(model_.parents->block);
    return block && model_.parents->n ? std::min(room, block) : room;
  }

  // apple: whether the rows and values of example e serve as they are: there is room for all rows, and no value is zero.
  // sorted_: whether they rise. Examples are looked at many at once: one by one, short ones would take far longer.
  inline __attribute__((always_inline)) bool clean(const pm_chunk& c, int64_t e) {
    if (e < looked_from_ || e >= looked_until_) look_ahead(c, e);
    if (!(all_clean_ && all_rise_)) return clean_alone(c, e);
    return sorted_ = true;
  }
  __attribute__((noinline)) void look_ahead(const pm_chunk& c, int64_t e) {
    looked_from_ = e, looked_until_ = std::min(e + kLookedAt, c.n);
    all_clean_ = in_place(c, looked_until_) && serves(c, c.indptr[e], c.indptr[looked_until_]);
    all_rise_ = falls(c, e, e + 1) == 0 && falls(c, e, looked_until_) == 0;  // where one falls, others do
  }
  __attribute__((noinline)) bool clean_alone(const pm_chunk& c, int64_t e) {
    sorted_ = all_rise_ || falls(c, e, e + 1) == 0;
    return all_clean_ || (in_place(c, e + 1) && serves(c, c.indptr[e], c.indptr[e + 1]));
  }
  // Whether features up to those of example end - 1 may be read where they are.
  bool in_place(const pm_chunk& c, int64_t end) const {
    return sizeof(Real) == sizeof(float) && !model_.parents->fields && c.indptr[end] + kBehindRows <= c.indptr[c.n];
  }
  // Whether there is room for the rows of these features, and none is zero.
  bool serves(const pm_chunk& c, int64_t first, int64_t stop) const {
    const uint32_t* const rows = static_cast<const uint32_t*>(c.indices);
    uint32_t top = 0, zeros = 0;
    for (int64_t k = first; k < stop; ++k) {
      top = std::max(top, rows[k]);
      zeros |= c.values[k] == 0;
    }
    return !zeros && (top < rows_known() || first == stop);
  }
  // How often, in examples e … end - 1, a row is not above the one before. From one example to the next it may be.
  static int32_t falls(const pm_chunk& c, int64_t e, int64_t end) {
    const uint32_t* const rows = static_cast<const uint32_t*>(c.indices);
    const int64_t first = c.indptr[e], stop = c.indptr[end];
    int32_t count = 0;  // as wide as rows are, for vectors of both
    for (int64_t k = first + 1; k < stop; ++k) count += rows[k] <= rows[k - 1];
    for (++e; e < end; ++e)
      if (const int64_t k = c.indptr[e]; k > first && k < c.indptr[e + 1]) count -= rows[k] <= rows[k - 1];
    return count;
  }

  // Without parents.
  bool load_plain(const pm_chunk& c, int64_t e, bool grow) {
    const int64_t first = c.indptr[e], stop = c.indptr[e + 1];
    n_ = stop - first;
    if (model_.regions[0].hashed && as_they_are_ && c.wide) {
      const uint64_t* const ids = static_cast<const uint64_t*>(c.indices) + first;
      linear_ = {1, 0, nullptr, reinterpret_cast<const Real*>(c.values + first), n_, Real(1), false, 0, 0, ids};
      return true;
    }
    if (keys_) {
      linear_ = {1, 0, keys_ + first, reinterpret_cast<const Real*>(c.values + first), n_, Real(1), false};
      return true;
    }
    if (model_.regions[0].hashed) {
      each_hashed_key(c, first, n_, [&](int64_t k, uint32_t key) { key_[k] = key; });
      for (int64_t k = 0; k < n_; ++k) x_[k] = static_cast<Real>(c.values[first + k]);
      linear_ = {1, 0, key_, x_, n_, Real(1), false};
      return true;
    }
    const uint32_t* const rows = static_cast<const uint32_t*>(c.indices);
    const uint64_t room = model_.regions[0].n_slots;
    if (as_they_are_) {
      const uint32_t n = static_cast<uint32_t>(n_);
      uint32_t apart = n == 0 || rows[stop - 1] - rows[first] != n - 1, top = n ? rows[stop - 1] : 0;
      if (!apart)
        for (uint32_t k = 0; k < n; ++k) apart |= rows[first + k] - rows[first] - k;
      if (apart)
        for (uint32_t k = 0; k < n; ++k) top = std::max(top, rows[first + k]);
      if (top < room) {
        linear_ = {1, 0, rows + first, reinterpret_cast<const Real*>(c.values + first), n_, Real(1), apart == 0};
        return true;
      }
    }
    sorted_ = true;
    n_ = 0;
    for (int64_t k = first; k < stop; ++k) {
      if (rows[k] >= room) {
        if (grow) return false;
        continue;
      }
      sorted_ &= n_ == 0 || rows[k] > row_[n_ - 1];
      row_[n_] = rows[k];
      if (by_field_) field_[n_] = field_of(c, k);
      x_[n_++] = static_cast<Real>(c.values[k]);
    }
    if (model_.n_products) {
      if (!sorted_) sort_by_row();
      if (!prepare_products(grow)) return false;
      multiply_all();
    }
    linear_ = {1, 0, row_, x_, n_, Real(1), sorted_};
    return true;
  }

  // apple: rows and values without zeros, and the parents that the example has.
  inline __attribute__((always_inline)) bool load_rows(const pm_chunk& c, int64_t e, bool grow) {
    if (clean(c, e)) {
      const int64_t first = c.indptr[e];
      n_ = n_partners_ = c.indptr[e + 1] - first;
      partner_row_ = static_cast<const uint32_t*>(c.indices) + first;
      partner_x_ = reinterpret_cast<const Real*>(c.values + first);
      linear_ = {1, 0, partner_row_, partner_x_, n_, Real(1), sorted_};
    } else if (!copy_rows(c, e, grow)) {
      return false;
    }
    parents_->find(partner_row_, partner_x_, n_partners_, sorted_);
    return true;
  }

  // Those that do not serve as they are.
  __attribute__((noinline)) bool copy_rows(const pm_chunk& c, int64_t e, bool grow) {
    const pm_parents& p = *model_.parents;
    const uint32_t* const rows = static_cast<const uint32_t*>(c.indices);
    const uint64_t room = rows_known();
    sorted_ = true;
    n_ = 0;
    for (int64_t k = c.indptr[e]; k < c.indptr[e + 1]; ++k) {
      if (c.values[k] == 0) continue;
      if (rows[k] >= room) {
        if (grow) return false;
        continue;
      }
      sorted_ &= n_ == 0 || rows[k] > row_[n_ - 1];
      row_[n_] = rows[k];
      if (p.fields) field_[n_] = field_of(c, k);
      x_[n_++] = static_cast<Real>(c.values[k]);
    }
    linear_ = {1, 0, row_, x_, n_, Real(1), sorted_};
    partner_row_ = row_, partner_x_ = x_, n_partners_ = n_;
    if (p.fields) choose_partners(p);
    return true;
  }

  void choose_partners(const pm_parents& p) {
    n_partners_ = 0;
    for (int64_t i = 0; i < n_; ++i) {
      if (field_[i] >= p.n_fields || !p.fields[field_[i]]) continue;
      last_row_[n_partners_] = row_[i];
      last_x_[n_partners_++] = x_[i];
    }
    partner_row_ = last_row_, partner_x_ = last_x_;
  }

  inline __attribute__((always_inline)) bool look_up(bool learning) {
    const bool asked = parents_->looked_up();
    if (asked && !look_up_each(learning)) return false;
    if (!asked) parents_->lay_out(), parents_->ask_for_first();
    products_ = {2, 0, parents_->places(), parents_->products(), parents_->n_places(), Real(1), false};
    products_.ahead = asked ? 0 : kPlacesAhead;
    return true;
  }
  __attribute__((noinline)) bool look_up_each(bool learning) {
    const pm_parents& p = *model_.parents;
    if (learning && Parents<Real>::keyed(model_) && p.room < p.limit &&
        p.used + static_cast<uint64_t>(parents_->count()) > p.room)
      return false;
    parents_->look_up(learning);
    return true;
  }

  static uint16_t field_of(const pm_chunk& c, int64_t k) {
    if (c.fields) return c.fields[k];
    return c.column_fields && !c.wide ? static_cast<uint16_t>(static_cast<const uint32_t*>(c.indices)[k]) : 0;
  }

  static int degree_of(const int32_t* fields) { return fields[2] == PM_NO_FIELD ? 2 : 3; }

  // Slots of products are numbered by falling rows, so rows must rise.
  void sort_by_row() {
    for (int64_t i = 0; i < n_; ++i) sort_[i] = static_cast<uint64_t>(row_[i]) << 32 | static_cast<uint32_t>(i);
    std::sort(sort_, sort_ + n_);
    for (int64_t i = 0; i < n_; ++i) {
      row_[i] = static_cast<uint32_t>(sort_[i] >> 32);
      last_x_[i] = x_[static_cast<uint32_t>(sort_[i])];
      key_[i] = field_[static_cast<uint32_t>(sort_[i])];
    }
    for (int64_t i = 0; i < n_; ++i) x_[i] = last_x_[i];
    for (int64_t i = 0; i < n_; ++i) field_[i] = static_cast<uint16_t>(key_[i]);
    sorted_ = true;
  }

  bool prepare_products(bool grow) {
    bool any_hashed = false;
    for (int degree = 2; degree <= 3; ++degree) {
      const pm_region& region = model_.regions[degree - 1];
      if (!region.slots) continue;
      any_hashed |= region.hashed != 0;
      if (region.hashed || n_ == 0 || slots_needed(degree, uint64_t{row_[n_ - 1]} + 1) <= region.n_slots) continue;
      if (grow) return false;
      while (n_ && slots_needed(degree, uint64_t{row_[n_ - 1]} + 1) > region.n_slots) --n_;
    }
    if (any_hashed)
      for (int64_t i = 0; i < n_; ++i) key_[i] = static_cast<uint32_t>(mix(row_[i]));
    return true;
  }

  // Whether the rows are 0, 1 … n - 1, so that the slots of all products are neighbours.
  bool complete() const { return sorted_ && n_ && row_[n_ - 1] == n_ - 1 && model_.squares; }

  bool as_one_run(const int32_t* fields, int degree) const {
    return complete() && !model_.regions[degree - 1].hashed && fields[0] == PM_ALL_FIELDS;
  }
  // All products as one run. Their values follow the order of slots: x_i x_j for j <= i, and so on for three.
  Run<Real> all_products(int degree) const {
    return Run<Real>{degree, 0, nullptr, products_of(degree), static_cast<int64_t>(slots_needed(degree, n_)), Real(1), true};
  }
  Real* products_of(int degree) const { return product_x_ + (degree == 3 ? n_ * (n_ + 1) / 2 + kLanes : 0); }

  // Makes the values of such runs in whole vectors: what is written behind a row of products, the next row overwrites.
  void multiply_all() {
    for (int64_t p = 0; p < model_.n_products; ++p) {
      const int32_t* const fields = model_.products + 3 * p;
      const int degree = degree_of(fields);
      if (!as_one_run(fields, degree)) continue;
      Real* out = products_of(degree);
      const auto times_first = [&](Real a, int64_t count) __attribute__((always_inline)) {
        for (int64_t k = 0; k < count; k += kLanes) store(out + k, a * pm::PM_ISA::load(x_ + k));
        out += count;
      };
      for (int64_t i = 0; i < n_; ++i) {
        if (degree == 2) times_first(x_[i], i + 1);
        else for (int64_t j = 0; j <= i; ++j) times_first(x_[i] * x_[j], j + 1);
      }
    }
  }

  bool in(int32_t field, int64_t i) const { return field == PM_ALL_FIELDS || field == field_[i]; }

  // The features of the last factor's field, one after the other, and how many of them come before each feature.
  struct Last {
    const uint32_t* rows;
    const Real* x;
    bool all;
  };
  Last gather_last(int32_t field) const {
    if (field == PM_ALL_FIELDS) return {row_, x_, true};
    uint32_t count = 0;
    for (int64_t i = 0; i < n_; ++i) {
      below_[i] = count;
      if (!in(field, i)) continue;
      last_row_[count] = row_[i];
      last_x_[count++] = x_[i];
    }
    return {last_row_, last_x_, false};
  }
  // How many features of the last field stand below feature i, counting itself where squares are wanted.
  int64_t partners(const Last& last, int32_t field, int64_t i) const {
    return (last.all ? i : below_[i]) + (model_.squares && in(field, i) ? 1 : 0);
  }

  // Factors are taken with falling rank: i of the first field, j <= i of the second, k <= j of the third. The list of
  // products holds every order of its fields, so each set of features comes up exactly once.
  template <class Visit>
  void pair_runs(const int32_t* fields, Visit& visit) const {
    const bool hashed = model_.regions[1].hashed;
    const Last last = gather_last(fields[1]);
    OneBehind<Real, Visit> runs(visit);
    for (int64_t i = 0; i < n_; ++i) {
      if (!in(fields[0], i)) continue;
      const int64_t count = partners(last, fields[1], i);
      runs(Run<Real>{2, hashed ? key_[i] : pairs_below(row_[i]), last.rows, last.x, count, x_[i], true});
    }
    runs.finish();
  }

  template <class Visit>
  void triple_runs(const int32_t* fields, Visit& visit) const {
    const bool hashed = model_.regions[2].hashed;
    const Last last = gather_last(fields[2]);
    OneBehind<Real, Visit> runs(visit);
    for (int64_t i = 0; i < n_; ++i) {
      if (!in(fields[0], i)) continue;
      for (int64_t j = 0; j < i + (model_.squares ? 1 : 0); ++j) {
        if (!in(fields[1], j)) continue;
        const int64_t count = partners(last, fields[2], j);
        const uint64_t base = hashed ? uint64_t{key_[i]} + key_[j] : triples_below(row_[i]) + pairs_below(row_[j]);
        runs(Run<Real>{3, base, last.rows, last.x, count, x_[i] * x_[j], true});
      }
    }
    runs.finish();
  }

  const pm_online& model_;
  int64_t n_ = 0;
  bool by_field_ = false, sorted_ = false;
  bool as_they_are_ = false;
  const uint32_t* keys_ = nullptr;  // of the chunk's columns
  int64_t looked_from_ = 0, looked_until_ = 0;  // apple: examples that were looked at together,
  bool all_clean_ = false, all_rise_ = false;   // and what they have in common
  Run<Real> linear_{}, products_{};  // products_: of apple
  std::optional<Parents<Real>> parents_;
  const uint32_t* partner_row_ = nullptr;
  const Real* partner_x_ = nullptr;
  int64_t n_partners_ = 0;
  uint32_t *row_, *key_, *last_row_, *below_;
  uint16_t* field_;
  Real *x_, *last_x_;
  uint64_t* sort_;
  Real* product_x_;
};

}  // namespace PM_ISA
}  // namespace pm
