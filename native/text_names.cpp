// Names of features, looked up in the text they were parsed from.
#include <cstring>

#include "pomona.h"

namespace {

bool ends_name(char c) { return c == ' ' || c == '\t' || c == ':' || c == '|' || c == '\n' || c == '\r'; }

}  // namespace

int64_t pm_vw_names(const char* text, int64_t size, const uint32_t* starts, const uint16_t* fields,
                    const uint32_t* namespace_spans, const int64_t* positions, int64_t n, char* out, int64_t capacity,
                    int64_t* ends) {
  int64_t written = 0;
  const auto append = [&](const char* from, int64_t count) {
    if (written + count <= capacity) std::memcpy(out + written, from, static_cast<size_t>(count));
    written += count;
  };
  for (int64_t i = 0; i < n; ++i) {
    const int64_t feature = positions[i], start = starts[feature];
    const uint32_t* const span = namespace_spans + 2 * fields[feature];
    if (span[1]) {
      append(text + span[0], span[1]);
      append(":", 1);
    }
    int64_t stop = start;
    while (stop < size && !ends_name(text[stop])) ++stop;
    append(text + start, stop - start);
    ends[i] = written;
  }
  return written;
}
