/* out[p] = X[i] . Y[j] at the nonzeros (i, j) of a pattern in CSR. */
#include <stdint.h>

void sddmm(int32_t rows, int32_t features, const int32_t *restrict A2_pos,
           const int32_t *restrict A2_crd, const VALUE *restrict X_vals,
           const VALUE *restrict Y_vals, VALUE *restrict out_vals) {
  /* The number of features, if it is known when the loop is compiled. */
#ifdef FEATURES
  features = FEATURES;
#endif
#pragma omp parallel for schedule(dynamic, 8)
  for (int32_t i = 0; i < rows; i++) {
    for (int32_t jA = A2_pos[i]; jA < A2_pos[i + 1]; jA++) {
      int32_t j = A2_crd[jA];
      VALUE sum = 0;
      for (int32_t k = 0; k < features; k++) {
        int64_t kX = (int64_t)i * features + k;
        int64_t kY = (int64_t)j * features + k;
        sum += X_vals[kX] * Y_vals[kY];
      }
      out_vals[jA] = sum;
    }
  }
}
