// Labels to codes of their classes.
#include "pomona.h"

int64_t pm_label_codes(const double* labels, int64_t n, const double* classes, int64_t n_classes, double first, double step,
                       double* codes) {
  for (int64_t i = 0; i < n; ++i) {
    double number = -1;  // without a branch on the class, which nobody can foresee
    for (int64_t k = 0; k < n_classes; ++k) number = classes[k] == labels[i] ? static_cast<double>(k) : number;
    if (number < 0) return i;
    codes[i] = first + step * number;
  }
  return n;
}
