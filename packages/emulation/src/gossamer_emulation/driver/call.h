/* Calls of kernels with any number of arguments, by the calling convention of the architecture. */

#ifndef CALL_H
#define CALL_H

#include <stddef.h>
#include <stdint.h>

#define EIGHT_OF(type) type, type, type, type, type, type, type, type
enum { IN_REGISTERS = 8, ON_STACK = 64 };

/* The first 8 integers and the first 8 floats are passed in registers, all others in words of the stack, in
   their order. So this type passes what functions of all other types expect: a callee ignores the registers
   and words that it has no parameters for. */
typedef int64_t kernel(EIGHT_OF(int64_t), EIGHT_OF(double), EIGHT_OF(int64_t), EIGHT_OF(int64_t),
                       EIGHT_OF(int64_t), EIGHT_OF(int64_t), EIGHT_OF(int64_t), EIGHT_OF(int64_t),
                       EIGHT_OF(int64_t), EIGHT_OF(int64_t));

struct passed {
    int64_t integers[IN_REGISTERS], stack[ON_STACK];
    double floats[IN_REGISTERS];
    size_t integer_count, float_count, stack_count;
};

/* Add an argument: an integer, or the bits of the register of a float. */
void pass_integer(struct passed *passed, int64_t value);
void pass_float(struct passed *passed, int64_t bits);

int64_t call(kernel *function, const struct passed *passed);

#endif
