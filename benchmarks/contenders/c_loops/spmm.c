/* C = A B, A in CSR. */
#include <stdint.h>

void spmm(int32_t rows, int32_t features, const int32_t *restrict A2_pos,
          const int32_t *restrict A2_crd, const VALUE *restrict A_vals,
          const VALUE *restrict B_vals, VALUE *restrict C_vals) {
  /* The number of features, if it is known when the loop is compiled. */
#ifdef FEATURES
  features = FEATURES;
#endif
#pragma omp parallel for schedule(static)
  for (int64_t pC = 0; pC < (int64_t)rows * features; pC++) {
    C_vals[pC] = 0;
  }
#pragma omp parallel for schedule(dynamic, 8)
  for (int32_t i = 0; i < rows; i++) {
    for (int32_t jA = A2_pos[i]; jA < A2_pos[i + 1]; jA++) {
      int32_t j = A2_crd[jA];
      for (int32_t k = 0; k < features; k++) {
        int64_t kC = (int64_t)i * features + k;
        int64_t kB = (int64_t)j * features + k;
        C_vals[kC] = C_vals[kC] + A_vals[jA] * B_vals[kB];
      }
    }
  }
}
