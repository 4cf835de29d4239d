/* y = A x, A in CSR. */
#include <stdint.h>

void spmv(int32_t rows, const int32_t *restrict A2_pos, const int32_t *restrict A2_crd,
          const VALUE *restrict A_vals, const VALUE *restrict x_vals, VALUE *restrict y_vals) {
#pragma omp parallel for schedule(dynamic, 8)
  for (int32_t i = 0; i < rows; i++) {
    VALUE sum = 0;
    for (int32_t jA = A2_pos[i]; jA < A2_pos[i + 1]; jA++) {
      int32_t j = A2_crd[jA];
      sum += A_vals[jA] * x_vals[j];
    }
    y_vals[i] = sum;
  }
}
