/* Loads relocatable object files.

   They are those of gossamer's own compiler, so what is in them is not checked, besides the types of their
   relocations. */

#include "object_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

char error[256];

static const struct {
    const char *name;
    void *function;
} LIBRARY[] = {
    {"calloc", calloc}, {"free", free}, {"memcpy", memcpy}, {"memmove", memmove}, {"memset", memset},
};

void refuse(const char *format, ...) {
    if (*error) return;
    va_list values;
    va_start(values, format);
    vsnprintf(error, sizeof error, format, values);
    va_end(values);
}

static uint64_t address_of(const struct image *image, const Elf64_Sym *symbol) {
    if (symbol->st_shndx == SHN_ABS) return symbol->st_value;
    if (symbol->st_shndx != SHN_UNDEF)
        return (uint64_t)image->memory + image->offsets[symbol->st_shndx] + symbol->st_value;
    const char *name = image->names + symbol->st_name;
    for (size_t at = 0; at < sizeof LIBRARY / sizeof *LIBRARY; at++)
        if (!strcmp(LIBRARY[at].name, name)) return (uint64_t)LIBRARY[at].function;
    return 0; /* also for the empty symbol, which every table begins with */
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

static void copy_sections(const struct image *image, const char *object, size_t count) {
    for (size_t at = 0; at < count; at++) {
        const Elf64_Shdr *section = &image->sections[at];
        if (section->sh_flags & SHF_ALLOC && section->sh_type != SHT_NOBITS)
            memcpy(image->memory + image->offsets[at], object + section->sh_offset, section->sh_size);
    }
}

static void find_symbols(const struct image *image) {
    for (size_t number = 0; number < image->symbol_count; number++) {
        image->addresses[number] = address_of(image, &image->symbols[number]);
        image->veneers[number] = VENEER;
        image->veneers[number].target = image->addresses[number];
    }
}

static void relocate_section(const struct image *image, const struct relocations *table) {
    for (size_t at = 0; at < table->count; at++) {
        size_t number = ELF64_R_SYM(table->rows[at].r_info);
        if (number && !image->addresses[number])
            refuse("it needs the function '%s', which the emulated process does not have",
                   image->names + image->symbols[number].st_name);
        else
            relocate(image, table, &table->rows[at]);
    }
}

static void relocate_sections(const struct image *image, const char *object, size_t count) {
    for (size_t at = 0; at < count; at++) {
        const Elf64_Shdr *section = &image->sections[at];
        if (section->sh_type != SHT_RELA || !(image->sections[section->sh_info].sh_flags & SHF_ALLOC))
            continue;
        struct relocations table = {
            .section = image->memory + image->offsets[section->sh_info],
            .rows = (const Elf64_Rela *)(object + section->sh_offset),
            .count = section->sh_size / sizeof *table.rows,
        };
        relocate_section(image, &table);
    }
}

static int is_code(const Elf64_Shdr *section) {
    return section->sh_flags & SHF_ALLOC && section->sh_flags & SHF_EXECINSTR;
}

static size_t size_of_detours(const struct image *image, const char *object, size_t count) {
    size_t size = 0;
    for (size_t at = 0; at < count; at++) {
        const Elf64_Shdr *section = &image->sections[at];
        if (is_code(section)) size += detour_size(object + section->sh_offset, section->sh_size);
    }
    return size;
}

static void add_all_detours(const struct image *image, size_t count) {
    char *detours = image->detours;
    for (size_t at = 0; at < count; at++)
        if (is_code(&image->sections[at]))
            detours = add_detours(image->memory + image->offsets[at], image->sections[at].sh_size, detours);
}

static void *entry_of(const struct image *image) {
    for (size_t number = 0; number < image->symbol_count; number++) {
        const Elf64_Sym *symbol = &image->symbols[number];
        if (symbol->st_shndx != SHN_UNDEF && !strcmp(image->names + symbol->st_name, "gossamer_kernel"))
            return (void *)image->addresses[number];
    }
    refuse("it has no function gossamer_kernel");
    return NULL;
}

static struct image image_of(const char *object) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)object;
    struct image image = {.sections = (const Elf64_Shdr *)(object + header->e_shoff)};
    for (size_t at = 0; at < header->e_shnum; at++) {
        const Elf64_Shdr *section = &image.sections[at];
        if (section->sh_type != SHT_SYMTAB) continue;
        image.symbols = (const Elf64_Sym *)(object + section->sh_offset);
        image.symbol_count = section->sh_size / sizeof *image.symbols;
        image.names = object + image.sections[section->sh_link].sh_offset;
    }
    return image;
}

void *load_object(const char *object) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)object;
    *error = 0;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_machine != MACHINE) {
        refuse("it is not an object file for %s", MACHINE_NAME);
        return NULL;
    }
    struct image image = image_of(object);
    image.offsets = allocated(header->e_shnum * sizeof *image.offsets);
    size_t end = place_sections(&image, header->e_shnum);
    size_t tables = image.symbol_count * (sizeof *image.veneers + sizeof *image.addresses);
    size_t size = end + tables + size_of_detours(&image, object, header->e_shnum);
    image.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image.memory == MAP_FAILED) {
        refuse("there is not enough memory");
        free(image.offsets);
        return NULL;
    }
    image.veneers = (struct veneer *)(image.memory + end);
    image.addresses = (uint64_t *)(image.veneers + image.symbol_count);
    image.detours = image.memory + end + tables;
    copy_sections(&image, object, header->e_shnum);
    find_symbols(&image);
    relocate_sections(&image, object, header->e_shnum);
    add_all_detours(&image, header->e_shnum);
    void *entry = entry_of(&image);
    /* A kernel keeps no state, so that all of its memory may be read-only. */
    mprotect(image.memory, size, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(image.memory, image.memory + size);
    free(image.offsets);
    return *error ? NULL : entry;
}
