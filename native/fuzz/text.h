// Runs a parser of text on bytes, in arrays of exactly the size that pm_text_bounds asks for.
#pragma once
#include <cmath>
#include <memory>

#include "../pomona.h"
#include "fuzz.h"

namespace pm_fuzz {

using Parser = int32_t (*)(const char*, int64_t, const pm_text_options*, pm_text_rows*);

inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

// Heap arrays, each by itself, so that AddressSanitizer sees a step beyond any of them.
template <class T>
std::unique_ptr<T[]> array(int64_t n) {
  return std::unique_ptr<T[]>(new T[static_cast<size_t>(n)]());
}

inline int64_t power_above(int64_t n) {
  int64_t power = 2;
  while (power <= n) power *= 2;
  return power;
}

inline void look_up_names(const char* text, int64_t size, const pm_text_rows& rows) {
  const auto positions = array<int64_t>(rows.n_features), ends = array<int64_t>(rows.n_features);
  for (int64_t i = 0; i < rows.n_features; ++i) positions[i] = i;
  const auto names = [&](char* out, int64_t capacity) {
    return pm_vw_names(text, size, rows.starts, rows.fields, rows.grams, rows.namespace_spans, positions.get(),
                       rows.n_features, out, capacity, ends.get());
  };
  const int64_t needed = names(nullptr, 0);
  const auto out = array<char>(needed);
  require(names(out.get(), needed) == needed);
  require(rows.n_features == 0 || ends[rows.n_features - 1] == needed);
}

inline int run(Parser parse, const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t choice = data[0];
  const int64_t n = static_cast<int64_t>(size);  // without the first byte, with a newline at the end
  const auto text = array<char>(n);
  for (int64_t i = 0; i + 1 < n; ++i) text[i] = static_cast<char>(data[i + 1]);
  text[n - 1] = '\n';
  const uint64_t chosen[] = {pm_hash("a", 1, 0)};
  pm_text_options options{};
  options.skip_bad = choice & 1;
  options.ngrams = 1 + (choice >> 1 & 3);
  options.skips = choice >> 3 & 3;
  options.n_gram_namespaces = choice >> 5 & 1;
  options.gram_namespaces = chosen;
  constexpr int64_t kGrowth = 1 + 4 + 10 + 20;  // four words, three skips

  pm_text_rows rows{};
  int64_t bars;
  pm_text_bounds(text.get(), n, &rows.max_rows, &rows.max_features, &bars);
  rows.max_features *= options.ngrams > 1 ? kGrowth : 1;
  rows.max_namespaces = bars < PM_MAX_NAMESPACES ? bars : PM_MAX_NAMESPACES;
  rows.n_feature_slots = power_above(rows.max_features);
  rows.n_namespace_slots = power_above(rows.max_namespaces);
  const auto indptr = array<int64_t>(rows.max_rows + 1);
  const auto labels = array<double>(rows.max_rows), weights = array<double>(rows.max_rows),
             offsets = array<double>(rows.max_rows);
  const auto spans = array<uint32_t>(2 * rows.max_rows), starts = array<uint32_t>(rows.max_features),
             names = array<uint32_t>(2 * rows.max_namespaces), feature_slots = array<uint32_t>(rows.n_feature_slots),
             namespace_slots = array<uint32_t>(rows.n_namespace_slots);
  const auto ids = array<uint64_t>(rows.max_features), hashes = array<uint64_t>(rows.max_namespaces);
  const auto values = array<float>(rows.max_features);
  const auto fields = array<uint16_t>(rows.max_features), grams = array<uint16_t>(rows.max_features);
  rows.indptr = indptr.get();
  rows.labels = labels.get();
  rows.weights = weights.get();
  rows.offsets = offsets.get();
  rows.spans = spans.get();
  rows.ids = ids.get();
  rows.values = values.get();
  rows.fields = fields.get();
  rows.starts = starts.get();
  rows.grams = grams.get();
  rows.namespace_hashes = hashes.get();
  rows.namespace_spans = names.get();
  rows.feature_slots = feature_slots.get();
  rows.namespace_slots = namespace_slots.get();

  const int32_t status = parse(text.get(), n, &options, &rows);
  require(status == PM_OK || (status == PM_BAD_INPUT && !options.skip_bad));
  if (status == PM_BAD_INPUT || rows.n_bad) {
    require(rows.error.message[0] && !rows.error.message[sizeof(rows.error.message) - 1]);
    require(rows.error.line_start >= 0 && rows.error.line_start + rows.error.column < n);
  }
  if (status == PM_BAD_INPUT) return 0;
  require(rows.indptr[rows.n_rows] == rows.n_features);
  for (int64_t i = 0; i < rows.n_rows; ++i) require(rows.indptr[i] <= rows.indptr[i + 1]);
  for (int64_t i = 0; i < rows.n_features; ++i) require(std::isfinite(rows.values[i]));
  for (int64_t i = 0; i < rows.n_rows; ++i) require(rows.spans[2 * i] + int64_t{rows.spans[2 * i + 1]} < n);
  if (parse == pm_parse_vw) look_up_names(text.get(), n, rows);
  // Labels that are found without the features are those of the parser.
  const auto first = array<double>(rows.max_rows);
  const int64_t found = rows.n_bad ? -1 : pm_text_labels(text.get(), n, rows.max_rows, first.get());
  require(found <= rows.n_rows);
  for (int64_t i = 0; i < found; ++i) require(first[i] == rows.labels[i]);
  return 0;
}

}  // namespace pm_fuzz
