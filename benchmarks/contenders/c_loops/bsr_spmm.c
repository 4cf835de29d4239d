/* C = A B, A in square blocks (BSR). */
#include <stdint.h>

void bsr_spmm(int32_t block_rows, int32_t block, int32_t features,
              const int32_t *restrict A2_pos, const int32_t *restrict A2_crd,
              const VALUE *restrict A_vals, const VALUE *restrict B_vals,
              VALUE *restrict C_vals) {
  /* Sizes that are known when the loop is compiled. */
#ifdef FEATURES
  block = BLOCK;
  features = FEATURES;
#endif
#pragma omp parallel for schedule(static)
  for (int64_t pC = 0; pC < (int64_t)block_rows * block * features; pC++) {
    C_vals[pC] = 0;
  }
#pragma omp parallel for schedule(dynamic, 8)
  for (int32_t i = 0; i < block_rows; i++) {
    for (int32_t jA = A2_pos[i]; jA < A2_pos[i + 1]; jA++) {
      int32_t j = A2_crd[jA];
      for (int32_t bi = 0; bi < block; bi++) {
        int64_t biA = (int64_t)jA * block + bi;
        int64_t biC = (int64_t)i * block + bi;
        for (int32_t bj = 0; bj < block; bj++) {
          int64_t bjA = biA * block + bj;
          int64_t bjB = (int64_t)j * block + bj;
          for (int32_t k = 0; k < features; k++) {
            int64_t kC = biC * features + k;
            int64_t kB = bjB * features + k;
            C_vals[kC] = C_vals[kC] + A_vals[bjA] * B_vals[kB];
          }
        }
      }
    }
  }
}
