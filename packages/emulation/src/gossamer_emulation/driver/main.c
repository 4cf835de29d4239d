/* Runs kernels in an emulated process.

   Requests arrive on standard input, answers leave on standard output; emulator.py is the other side. Both are
   sequences of 64-bit words and bytes:

   START                               -> 0
   LOAD, size, object file             -> index of the kernel, or -1, size, text of an error
   CALL, index, count, arguments,      -> status, failed buffer, contents of written arrays
     contents of all arrays

   An argument is two words: its kind, and an integer, the bits of a float, or the number of bytes of an array.

   A kernel that accesses other memory than its arrays ends this process, and nothing else. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "call.h"
#include "memory.h"
#include "object_file.h"

enum request { START = 0, LOAD = 1, CALL = 2 };
enum kind { INTEGER = 0, FLOAT = 1, ARRAY = 2, WRITTEN_ARRAY = 3 };

struct argument {
    int64_t kind;
    int64_t value;
};

struct gossamer_workspace {
    int64_t threads;
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    int64_t failed_buffer;
    int64_t (*is_interrupted)(int64_t *);
};

static void receive(void *bytes, size_t size) {
    /* The other side has ended. */
    if (fread(bytes, 1, size, stdin) != size) exit(0);
}

static int64_t receive_word(void) {
    int64_t word;
    receive(&word, sizeof word);
    return word;
}

static void send(const void *bytes, size_t size) {
    if (fwrite(bytes, 1, size, stdout) != size) exit(0);
}

static void send_word(int64_t word) { send(&word, sizeof word); }

void *allocated(size_t size) {
    /* An array without elements has an address, too. */
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fprintf(stderr, "not enough memory for %zu bytes\n", size);
        exit(1);
    }
    return memory;
}

static kernel **kernels;
static size_t kernel_count;

static void answer_load(void) {
    size_t size = receive_word();
    char *object = allocated(size);
    receive(object, size);
    void *entry = load_object(object);
    free(object);
    if (!entry) {
        send_word(-1);
        send_word(strlen(error));
        send(error, strlen(error));
        return;
    }
    kernels = realloc(kernels, (kernel_count + 1) * sizeof *kernels);
    kernels[kernel_count] = (kernel *)entry;
    send_word(kernel_count++);
}

/* Pass an argument; return the memory of an array, NULL for a number. */
static void *pass_received(struct passed *passed, const struct argument *argument) {
    if (argument->kind == FLOAT) {
        pass_float(passed, argument->value);
        return NULL;
    }
    if (argument->kind == INTEGER) {
        pass_integer(passed, argument->value);
        return NULL;
    }
    void *array = allocated(argument->value);
    receive(array, argument->value);
    pass_integer(passed, (int64_t)array);
    return array;
}

static void answer_call(void) {
    kernel *function = kernels[receive_word()];
    size_t count = receive_word();
    struct argument *arguments = allocated(count * sizeof *arguments);
    void **arrays = allocated(count * sizeof *arrays);
    struct passed passed = {0};
    struct gossamer_workspace workspace = {.threads = 1, .failed_buffer = -1};

    receive(arguments, count * sizeof *arguments);
    for (size_t at = 0; at < count; at++) arrays[at] = pass_received(&passed, &arguments[at]);
    pass_integer(&passed, (int64_t)&workspace);
    int64_t status = call(function, &passed);
    send_word(status);
    send_word(workspace.failed_buffer);
    for (size_t at = 0; at < count; at++) {
        if (arguments[at].kind == WRITTEN_ARRAY) send(arrays[at], arguments[at].value);
        free(arrays[at]);
    }
    free(arrays);
    free(arguments);
}

int main(void) {
    /* The emulator would leave a core file in the current directory. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (;;) {
        switch (receive_word()) {
        case START: send_word(0); break;
        case LOAD: answer_load(); break;
        case CALL: answer_call(); break;
        default: return 1;
        }
        fflush(stdout);
    }
}
