// Words and n-grams of arbitrary bytes. Each line is a string; every fourth input has offsets that are wrong.
#include <vector>

#include "text.h"

const char* const kFuzzSeeds[] = {
    "@the quick brown fox\njumps over 12 lazy dogs' tails\n\n...",
    "Rna\xc3\xafve caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd don't stop\n\xff\xfe half \xc3",
    "3a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g",
    nullptr,
};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using pm_fuzz::array;
  using pm_fuzz::require;
  if (size == 0) return 0;
  const uint8_t choice = data[0];
  const int64_t n_bytes = static_cast<int64_t>(size) - 1;
  const auto text = array<char>(n_bytes);
  std::vector<int64_t> offsets{0};
  for (int64_t i = 0; i < n_bytes; ++i) {
    text[i] = static_cast<char>(data[i + 1]);
    if (text[i] == '\n') offsets.push_back(i);
  }
  offsets.push_back(n_bytes);
  if (choice % 4 == 3) offsets[static_cast<size_t>(choice) % offsets.size()] += choice % 3 ? n_bytes : -choice;
  const int64_t n = static_cast<int64_t>(offsets.size()) - 1;

  const auto rows = array<int64_t>(n + 1), starts = array<int64_t>(n_bytes), ends = array<int64_t>(n_bytes);
  const auto ids = array<uint64_t>(n_bytes);
  const int32_t status = pm_words(text.get(), n_bytes, offsets.data(), n, choice, rows.get(), starts.get(), ends.get(),
                                  ids.get(), n_bytes);
  require(status == PM_OK || choice % 4 == 3);
  if (status == PM_OK)
    for (int64_t i = 0; i < rows[n]; ++i) require(0 <= starts[i] && starts[i] < ends[i] && ends[i] <= n_bytes);

  int64_t done = 0, capacity = 1 + choice % 64;
  auto gram_ids = array<uint64_t>(capacity);
  auto values = array<float>(capacity);
  for (;;) {
    const int32_t found = pm_word_rows(text.get(), n_bytes, offsets.data(), n, choice, 1 + choice % 4, choice >> 6,
                                       rows.get(), gram_ids.get(), values.get(), capacity, &done);
    if (found != PM_FULL) {
      require(found == status);
      break;
    }
    auto more_ids = array<uint64_t>(2 * capacity);
    auto more_values = array<float>(2 * capacity);
    for (int64_t i = 0; i < rows[done]; ++i) more_ids[i] = gram_ids[i], more_values[i] = values[i];
    gram_ids = std::move(more_ids);
    values = std::move(more_values);
    capacity *= 2;
  }
  if (status == PM_OK)
    for (int64_t i = 0; i < rows[n]; ++i) require(values[i] > 0 && values[i] <= 1.0001f);
  return 0;
}
