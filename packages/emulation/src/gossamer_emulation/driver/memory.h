#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

/* Return memory; the process ends if there is not enough. */
void *allocated(size_t size);

#endif
