/* Instructions of RISC-V. */

#ifndef RISCV64_H
#define RISCV64_H

#include <stdint.h>

/* Write the distance of a jump (jal) into the instruction. */
void put_jump(char *place, int64_t distance);

#endif
