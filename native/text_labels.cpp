// The labels of the first lines, without their features.
#include <limits>

#include "text.h"

int64_t pm_text_labels(const char* text, int64_t size, int64_t max_rows, double* labels) {
  const char* const end = text + size;
  int64_t n = 0;
  for (const char* p = text; p < end && n < max_rows; ++n) {
    const char* stop = p;
    while (!pm::is_blank(*stop) && *stop != '\n') ++stop;
    if (stop == p || !pm::read_double(p, stop, end, labels[n]) || !std::isfinite(labels[n])) return -1;
    p = static_cast<const char*>(std::memchr(stop, '\n', static_cast<size_t>(end - stop))) + 1;
  }
  return n;
}
