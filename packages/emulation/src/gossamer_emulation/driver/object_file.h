/* Relocatable object files in memory, and what differs between architectures. */

#ifndef OBJECT_FILE_H
#define OBJECT_FILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

/* Jumps to an address of all 64 bits: a call reaches only a part of them. */
struct veneer {
    uint32_t jump[4];
    uint64_t target;
};

struct image {
    const Elf64_Shdr *sections;
    const Elf64_Sym *symbols;
    const char *names;
    size_t symbol_count;
    size_t *offsets;         /* of each section in memory */
    char *memory;
    struct veneer *veneers;  /* one for each symbol */
    uint64_t *addresses;     /* the global offset table: one for each symbol */
    char *detours;           /* around instructions that the emulator cannot translate */
};

/* What changes one section. */
struct relocations {
    char *section;
    const Elf64_Rela *rows;
    size_t count;
};

/* Return the kernel of an object file, or NULL; `error` is the reason then. */
void *load_object(const char *object);

extern char error[256];

/* Write the reason why an object file cannot be loaded, unless there is one already. */
void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- the file `relocations_...` of each architecture */

extern const Elf64_Half MACHINE;
extern const char MACHINE_NAME[];
extern const struct veneer VENEER;

void relocate(const struct image *image, const struct relocations *table, const Elf64_Rela *row);

/* --- the file `detours_...` of each architecture */

/* Return the size of the detours around instructions of a section that the emulator cannot translate. */
size_t detour_size(const char *code, size_t size);

/* Replace these instructions by jumps to detours; return the end of the detours that were written. */
char *add_detours(char *code, size_t size, char *detours);

static inline void refuse_type(const Elf64_Rela *row) {
    refuse("it has a relocation of type %u, which the emulated process does not know",
           (unsigned)ELF64_R_TYPE(row->r_info));
}

#endif
