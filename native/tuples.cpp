// What tuples need outside the hot loops: ranks of the bits, sizes of scratch memory.
#include "pomona.h"

int64_t pm_tuples_scratch_bytes(const pm_tuples* tuples, int32_t padded) {
  // Scores and residuals, and four rows of 32-bit numbers a tuple (native/tuples.h: RowStream).
  return 16 * (static_cast<int64_t>(padded) + 16) + 16 * (tuples->n_tuples + 32);
}

int32_t pm_tuples_rank(pm_tuples* tuples) {
  if (tuples->index != PM_TUPLES_RANKED) return PM_BAD_INPUT;
  uint64_t rank = 0;
  for (uint64_t i = 0; i < tuples->n_words; ++i) {
    tuples->words[i].rank = rank;
    rank += static_cast<uint64_t>(__builtin_popcountll(tuples->words[i].bits));
  }
  // Rows are numbered by 32 bits.
  if (rank >= PM_NO_ROW) return PM_FULL;
  tuples->n_rows = rank;
  return PM_OK;
}
