/* Runs kernels for AArch64 in an emulated process.

   Requests arrive on standard input, answers leave on standard output; emulator.py is the other side. Both are
   sequences of 64-bit words and bytes:

   START                               -> 0
   LOAD, size, object file             -> index of the kernel, or -1, size, text of an error
   CALL, index, count, arguments,      -> status, failed buffer, contents of written arrays
     contents of all arrays

   An argument is two words: its kind, and an integer, the bits of a float, or the number of bytes of an array.

   The object files are those of gossamer's own compiler, so what is in them is not checked. A kernel that
   accesses other memory than its arrays ends this process, and nothing else.

   Source: ELF for the Arm 64-bit Architecture (relocations), Procedure Call Standard for the same (calls). */

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* --- standard input and output */

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

static void *allocated(size_t size) {
    /* An array without elements has an address, too. */
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        fprintf(stderr, "not enough memory for %zu bytes\n", size);
        exit(1);
    }
    return memory;
}

/* --- object files */

/* Jumps to an address of all 64 bits: a call reaches only 128 MiB. */
struct veneer {
    uint32_t load_target;
    uint32_t jump;
    uint64_t target;
};

static const struct veneer VENEER = {0x58000050, 0xd61f0200, 0}; /* ldr x16, #8; br x16 */

struct image {
    const Elf64_Shdr *sections;
    const Elf64_Sym *symbols;
    const char *names;
    size_t symbol_count;
    size_t *offsets;         /* of each section in memory */
    char *memory;
    struct veneer *veneers;  /* one for each symbol */
    uint64_t *addresses;     /* the global offset table: one for each symbol */
};

static const struct {
    const char *name;
    void *function;
} LIBRARY[] = {
    {"calloc", calloc}, {"free", free}, {"memcpy", memcpy}, {"memmove", memmove}, {"memset", memset},
};

static const char *error;

static uint64_t address_of(const struct image *image, const Elf64_Sym *symbol) {
    if (symbol->st_shndx == SHN_ABS) return symbol->st_value;
    if (symbol->st_shndx != SHN_UNDEF)
        return (uint64_t)image->memory + image->offsets[symbol->st_shndx] + symbol->st_value;
    const char *name = image->names + symbol->st_name;
    for (size_t at = 0; at < sizeof LIBRARY / sizeof *LIBRARY; at++)
        if (!strcmp(LIBRARY[at].name, name)) return (uint64_t)LIBRARY[at].function;
    return 0; /* also for the empty symbol, which every table begins with */
}

static void put_bits(uint32_t *instruction, int at, int bits, int64_t value) {
    uint32_t mask = ((1u << bits) - 1) << at;
    *instruction = (*instruction & ~mask) | ((uint32_t)value << at & mask);
}

static void put_page(uint32_t *instruction, uint64_t target) {
    int64_t pages = (int64_t)(target >> 12) - (int64_t)((uint64_t)instruction >> 12);
    put_bits(instruction, 29, 2, pages);
    put_bits(instruction, 5, 19, pages >> 2);
}

static void put_low_bits(uint32_t *instruction, uint64_t target, int scale) {
    put_bits(instruction, 10, 12, (target & 0xfff) >> scale);
}

static void relocate(const struct image *image, char *place, const Elf64_Rela *row) {
    size_t number = ELF64_R_SYM(row->r_info);
    const Elf64_Sym *symbol = &image->symbols[number];
    uint64_t target = image->addresses[number] + row->r_addend;
    uint64_t entry = (uint64_t)&image->addresses[number];
    uint32_t *instruction = (uint32_t *)place;
    int64_t distance = (int64_t)(target - (uint64_t)place);
    if (!image->addresses[number]) {
        error = "it needs a function that the emulated process does not have";
        return;
    }
    switch (ELF64_R_TYPE(row->r_info)) {
    case R_AARCH64_NONE: return;
    case R_AARCH64_ABS64: memcpy(place, &target, 8); return;
    case R_AARCH64_PREL64: memcpy(place, &distance, 8); return;
    case R_AARCH64_PREL32: memcpy(place, &distance, 4); return;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
        if (symbol->st_shndx == SHN_UNDEF) distance = (char *)&image->veneers[number] - place;
        put_bits(instruction, 0, 26, distance >> 2);
        return;
    case R_AARCH64_ADR_PREL_PG_HI21: put_page(instruction, target); return;
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: put_low_bits(instruction, target, 0); return;
    case R_AARCH64_LDST16_ABS_LO12_NC: put_low_bits(instruction, target, 1); return;
    case R_AARCH64_LDST32_ABS_LO12_NC: put_low_bits(instruction, target, 2); return;
    case R_AARCH64_LDST64_ABS_LO12_NC: put_low_bits(instruction, target, 3); return;
    case R_AARCH64_LDST128_ABS_LO12_NC: put_low_bits(instruction, target, 4); return;
    case R_AARCH64_ADR_GOT_PAGE: put_page(instruction, entry); return;
    case R_AARCH64_LD64_GOT_LO12_NC: put_low_bits(instruction, entry, 3); return;
    default: error = "it has a relocation that the emulated process does not know";
    }
}

/* Give each section that is loaded an offset; return the size of all. */
static size_t place_sections(struct image *image, size_t count) {
    size_t end = 0;
    for (size_t at = 0; at < count; at++) {
        const Elf64_Shdr *section = &image->sections[at];
        if (!(section->sh_flags & SHF_ALLOC)) continue;
        size_t align = section->sh_addralign ? section->sh_addralign : 1;
        image->offsets[at] = end = (end + align - 1) / align * align;
        end += section->sh_size;
    }
    return (end + 15) / 16 * 16;
}

static void fill_image(struct image *image, const char *object, size_t count) {
    for (size_t at = 0; at < count; at++) {
        const Elf64_Shdr *section = &image->sections[at];
        if (section->sh_flags & SHF_ALLOC && section->sh_type != SHT_NOBITS)
            memcpy(image->memory + image->offsets[at], object + section->sh_offset, section->sh_size);
    }
    for (size_t number = 0; number < image->symbol_count; number++) {
        image->addresses[number] = address_of(image, &image->symbols[number]);
        image->veneers[number] = VENEER;
        image->veneers[number].target = image->addresses[number];
    }
    for (size_t at = 0; at < count; at++) {
        const Elf64_Shdr *table = &image->sections[at];
        if (table->sh_type != SHT_RELA || !(image->sections[table->sh_info].sh_flags & SHF_ALLOC))
            continue;
        const Elf64_Rela *rows = (const Elf64_Rela *)(object + table->sh_offset);
        for (size_t row = 0; row < table->sh_size / sizeof *rows; row++)
            relocate(image, image->memory + image->offsets[table->sh_info] + rows[row].r_offset,
                     &rows[row]);
    }
}

static void *entry_of(const struct image *image) {
    for (size_t number = 0; number < image->symbol_count; number++) {
        const Elf64_Sym *symbol = &image->symbols[number];
        if (symbol->st_shndx != SHN_UNDEF && !strcmp(image->names + symbol->st_name, "gossamer_kernel"))
            return (void *)image->addresses[number];
    }
    error = "it has no function gossamer_kernel";
    return NULL;
}

/* Return the kernel of an object file, or NULL; `error` is the reason then. */
static void *load_object(const char *object) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)object;
    struct image image = {.sections = (const Elf64_Shdr *)(object + header->e_shoff)};
    error = NULL;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_machine != EM_AARCH64) {
        error = "it is not an object file for AArch64";
        return NULL;
    }
    for (size_t at = 0; at < header->e_shnum; at++) {
        const Elf64_Shdr *section = &image.sections[at];
        if (section->sh_type != SHT_SYMTAB) continue;
        image.symbols = (const Elf64_Sym *)(object + section->sh_offset);
        image.symbol_count = section->sh_size / sizeof *image.symbols;
        image.names = object + image.sections[section->sh_link].sh_offset;
    }
    image.offsets = allocated(header->e_shnum * sizeof *image.offsets);
    size_t end = place_sections(&image, header->e_shnum);
    size_t size = end + image.symbol_count * (sizeof *image.veneers + sizeof *image.addresses);
    image.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image.memory == MAP_FAILED) {
        error = "there is not enough memory";
        return NULL;
    }
    image.veneers = (struct veneer *)(image.memory + end);
    image.addresses = (uint64_t *)(image.veneers + image.symbol_count);
    fill_image(&image, object, header->e_shnum);
    void *entry = entry_of(&image);
    /* A kernel keeps no state, so that all of its memory may be read-only. */
    mprotect(image.memory, size, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(image.memory, image.memory + size);
    free(image.offsets);
    return error ? NULL : entry;
}

/* --- calls */

#define EIGHT_OF(type) type, type, type, type, type, type, type, type
#define EIGHT(array, at)                                                                           \
    array[at], array[at + 1], array[at + 2], array[at + 3], array[at + 4], array[at + 5],          \
        array[at + 6], array[at + 7]
enum { IN_REGISTERS = 8, ON_STACK = 64 };

/* The first 8 integers and the first 8 floats are passed in registers, all others in words of the stack, in
   their order. So this type passes what functions of all other types expect: a callee ignores the registers
   and words that it has no parameters for. A float32 is the lower half of its register. */
typedef int64_t kernel(EIGHT_OF(int64_t), EIGHT_OF(double), EIGHT_OF(int64_t), EIGHT_OF(int64_t),
                       EIGHT_OF(int64_t), EIGHT_OF(int64_t), EIGHT_OF(int64_t), EIGHT_OF(int64_t),
                       EIGHT_OF(int64_t), EIGHT_OF(int64_t));

struct passed {
    int64_t integers[IN_REGISTERS], stack[ON_STACK];
    double floats[IN_REGISTERS];
    size_t integer_count, float_count, stack_count;
};

static void pass(struct passed *passed, int64_t value, int is_float) {
    if (is_float && passed->float_count < IN_REGISTERS)
        memcpy(&passed->floats[passed->float_count++], &value, sizeof value);
    else if (!is_float && passed->integer_count < IN_REGISTERS)
        passed->integers[passed->integer_count++] = value;
    else
        passed->stack[passed->stack_count++] = value;
}

static int64_t call(kernel *function, const struct passed *passed) {
    const int64_t *integers = passed->integers, *stack = passed->stack;
    const double *floats = passed->floats;
    return function(EIGHT(integers, 0), EIGHT(floats, 0), EIGHT(stack, 0), EIGHT(stack, 8),
                    EIGHT(stack, 16), EIGHT(stack, 24), EIGHT(stack, 32), EIGHT(stack, 40),
                    EIGHT(stack, 48), EIGHT(stack, 56));
}

/* --- requests */

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

static void answer_call(void) {
    kernel *function = kernels[receive_word()];
    size_t count = receive_word();
    struct argument *arguments = allocated(count * sizeof *arguments);
    void **arrays = allocated(count * sizeof *arrays);
    struct passed passed = {0};
    struct gossamer_workspace workspace = {.threads = 1, .failed_buffer = -1};

    receive(arguments, count * sizeof *arguments);
    for (size_t at = 0; at < count; at++) {
        int is_array = arguments[at].kind >= ARRAY;
        arrays[at] = is_array ? allocated(arguments[at].value) : NULL;
        if (is_array) receive(arrays[at], arguments[at].value);
        pass(&passed, is_array ? (int64_t)arrays[at] : arguments[at].value,
             arguments[at].kind == FLOAT);
    }
    pass(&passed, (int64_t)&workspace, 0);
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
