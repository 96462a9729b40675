// Upper bounds for the arrays that a text is parsed into.
#include <algorithm>

#include "kernels.h"

namespace pm {
namespace PM_ISA {

void text_bounds(const char* text, int64_t size, int64_t* lines, int64_t* features, int64_t* bars) {
  *lines = *features = *bars = 0;
  for (int64_t i = 0; i < size;) {
    const int64_t stop = std::min<int64_t>(size, i + 128);  // short enough for counters of 8 bits: a vector loop
    uint8_t newlines = 0, blanks = 0, pipes = 0;
    for (; i < stop; ++i) {
      newlines = static_cast<uint8_t>(newlines + (text[i] == '\n'));
      blanks = static_cast<uint8_t>(blanks + (static_cast<unsigned char>(text[i]) <= ' '));
      pipes = static_cast<uint8_t>(pipes + (text[i] == '|'));
    }
    *lines += newlines;
    *features += blanks;
    *bars += pipes;
  }
}

}  // namespace PM_ISA
}  // namespace pm
