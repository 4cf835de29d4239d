/* How many threads the parallel loops use from now on. */
#include <omp.h>
#include <stdint.h>

void set_threads(int32_t threads) { omp_set_num_threads(threads); }
