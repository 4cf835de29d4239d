/* Sources: Procedure Call Standard for the Arm 64-bit Architecture; RISC-V ABIs Specification, chapter "RISC-V
   Calling Conventions" (LP64D). */

#include "call.h"

#include <string.h>

#define EIGHT(array, at)                                                                           \
    array[at], array[at + 1], array[at + 2], array[at + 3], array[at + 4], array[at + 5],          \
        array[at + 6], array[at + 7]

static void pass_on_stack(struct passed *passed, int64_t value) {
    passed->stack[passed->stack_count++] = value;
}

void pass_integer(struct passed *passed, int64_t value) {
    if (passed->integer_count < IN_REGISTERS)
        passed->integers[passed->integer_count++] = value;
    else
        pass_on_stack(passed, value);
}

void pass_float(struct passed *passed, int64_t bits) {
    if (passed->float_count < IN_REGISTERS)
        memcpy(&passed->floats[passed->float_count++], &bits, sizeof bits);
    else
#ifdef __riscv
        pass_integer(passed, bits);
#else
        pass_on_stack(passed, bits);
#endif
}

int64_t call(kernel *function, const struct passed *passed) {
    const int64_t *integers = passed->integers, *stack = passed->stack;
    const double *floats = passed->floats;
    return function(EIGHT(integers, 0), EIGHT(floats, 0), EIGHT(stack, 0), EIGHT(stack, 8),
                    EIGHT(stack, 16), EIGHT(stack, 24), EIGHT(stack, 32), EIGHT(stack, 40),
                    EIGHT(stack, 48), EIGHT(stack, 56));
}
