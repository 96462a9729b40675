// Labels to codes of their classes.
#include "pomona.h"

namespace {

// Two classes, in a loop that becomes vectors. The answer: whether there is no other label.
bool code_two(const double* labels, int64_t n, const double* classes, double first, double step, double* codes) {
  const double zero = classes[0], one = classes[1], second = first + step;
  int64_t others = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double label = labels[i];
    others += (label != zero) & (label != one);
    codes[i] = label == one ? second : first;
  }
  return others == 0;
}

}  // namespace

int64_t pm_label_codes(const double* labels, int64_t n, const double* classes, int64_t n_classes, double first, double step,
                       double* codes) {
  if (n_classes == 2 && code_two(labels, n, classes, first, step, codes)) return n;
  for (int64_t i = 0; i < n; ++i) {
    double number = -1;  // without a branch on the class, which nobody can foresee
    for (int64_t k = 0; k < n_classes; ++k) number = classes[k] == labels[i] ? static_cast<double>(k) : number;
    if (number < 0) return i;
    codes[i] = first + step * number;
  }
  return n;
}
