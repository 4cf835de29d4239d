/* What bounds kernels: reading, the triad, multiply-adds in registers. */
#include <omp.h>
#include <stdint.h>

#ifdef __AVX512F__
#define BYTES 64
#else
#define BYTES 32
#endif
#define LANES ((int64_t)(BYTES / sizeof(VALUE)))
#define CHAINS 12

typedef VALUE Vector __attribute__((vector_size(BYTES)));
typedef VALUE Loose __attribute__((vector_size(BYTES), aligned(sizeof(VALUE)), may_alias));

static double sum_of(Vector vector) {
  double total = 0;
  for (int64_t lane = 0; lane < LANES; lane++) {
    total += vector[lane];
  }
  return total;
}

/* Sums the array `times` times over; each thread reads its own part, as far as full steps go. */
double read_all(const VALUE *array, int64_t length, int64_t times, int32_t threads) {
  double total = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : total) schedule(static)
  for (int32_t thread = 0; thread < threads; thread++) {
    int64_t part = length / threads;
    const VALUE *own = array + thread * part;
    Vector sums[8] = {{0}};
    for (int64_t time = 0; time < times; time++) {
      for (int64_t i = 0; i + 8 * LANES <= part; i += 8 * LANES) {
#pragma GCC unroll 8
        for (int chain = 0; chain < 8; chain++) {
          sums[chain] += *(const Loose *)(own + i + chain * LANES);
        }
      }
    }
    for (int chain = 0; chain < 8; chain++) {
      total += sum_of(sums[chain]);
    }
  }
  return total;
}

/* a = b + 3 c, the classic of memory bandwidth. */
void triad(VALUE *restrict a, const VALUE *restrict b, const VALUE *restrict c, int64_t length,
           int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < length; i++) {
    a[i] = b[i] + 3 * c[i];
  }
}

/* Chains of multiply-adds in registers, many enough to hide their latency; the sum keeps them. */
double multiply_add(int64_t times, int32_t threads) {
  double total = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : total) schedule(static)
  for (int32_t thread = 0; thread < threads; thread++) {
    Vector chains[CHAINS] = {{0}}, factor = {0}, sum;
    for (int64_t lane = 0; lane < LANES; lane++) {
      factor[lane] = (VALUE)0.5 + thread * (VALUE)1e-3;
      for (int chain = 0; chain < CHAINS; chain++) {
        chains[chain][lane] = (VALUE)(chain + 1);
      }
    }
    for (int64_t time = 0; time < times; time++) {
#pragma GCC unroll 12
      for (int chain = 0; chain < CHAINS; chain++) {
        chains[chain] = chains[chain] * factor + factor;
      }
    }
    sum = chains[0];
    for (int chain = 1; chain < CHAINS; chain++) {
      sum += chains[chain];
    }
    total += sum_of(sum);
  }
  return total;
}

/* Operations that one call of `multiply_add` does for each of `times` on a thread. */
int32_t operations_per_time(void) { return (int32_t)(2 * CHAINS * LANES); }
