// Chooses, once, the kernels compiled for the best instruction set this processor has.
#include "pomona.h"

namespace {

bool has_v3() {
#ifdef PM_HAVE_V3
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

}  // namespace

const char* pm_instruction_set(void) { return has_v3() ? "v3" : "baseline"; }
