/* Calls the function `entry` of another object file once, with the arguments on standard input: their number, and for
   each of them its number of bytes (-1 for an integer) and its bytes. Writes the contents of all arrays to standard
   output.

   The code of that object file is in a section of its own, whose symbols tell where it is. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16 };

/* More integers than a function has parameters do no harm (Procedure Call Standard for the Arm 64-bit Architecture). */
typedef int64_t function(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                         int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
extern function entry;
extern const char __start_measured[], __stop_measured[];

static void receive(void *bytes, size_t size) {
    if (fread(bytes, 1, size, stdin) != size) exit(1);
}

int main(int count_of_words, char **words) {
    int64_t count, sizes[MOST], values[MOST] = {0};
    if (count_of_words > 1) {
        printf("%#lx+%#lx\n", (long)__start_measured, (long)(__stop_measured - __start_measured));
        return words[1] == NULL;
    }
    receive(&count, sizeof count);
    for (int64_t at = 0; at < count; at++) {
        receive(&sizes[at], sizeof sizes[at]);
        if (sizes[at] < 0) {
            receive(&values[at], sizeof values[at]);
            continue;
        }
        void *array = aligned_alloc(256, (sizes[at] / 256 + 1) * 256);
        if (!array) return 1;
        receive(array, sizes[at]);
        values[at] = (int64_t)array;
    }
    entry(values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7], values[8],
          values[9], values[10], values[11], values[12], values[13], values[14], values[15]);
    for (int64_t at = 0; at < count; at++)
        if (sizes[at] >= 0 && fwrite((void *)values[at], 1, sizes[at], stdout) != (size_t)sizes[at]) return 1;
    return 0;
}
