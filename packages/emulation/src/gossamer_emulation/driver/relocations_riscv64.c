/* Relocations of RISC-V. Source: RISC-V ABIs Specification, chapter "ELF Object Files"; formats of
   instructions: The RISC-V Instruction Set Manual, volume I. */

#include "object_file.h"

#include <string.h>

#include "riscv64.h"

const Elf64_Half MACHINE = EM_RISCV;
const char MACHINE_NAME[] = "RISC-V";
/* auipc t1, 0; ld t1, 16(t1); jr t1; nop */
const struct veneer VENEER = {{0x00000317, 0x01033303, 0x00030067, 0x00000013}, 0};

/* A format of instructions: its immediate consists of pieces of `count` bits, which begin at the bit `from` of
   the value and at the bit `to` of the instruction. */
struct piece {
    int from, count, to;
};

static const struct piece HIGH[] = {{12, 20, 12}, {0}};
static const struct piece LOAD[] = {{0, 12, 20}, {0}};
static const struct piece STORE[] = {{5, 7, 25}, {0, 5, 7}, {0}};
static const struct piece BRANCH[] = {{12, 1, 31}, {5, 6, 25}, {1, 4, 8}, {11, 1, 7}, {0}};
static const struct piece JUMP[] = {{20, 1, 31}, {1, 10, 21}, {11, 1, 20}, {12, 8, 12}, {0}};
static const struct piece SHORT_BRANCH[] = {{8, 1, 12}, {3, 2, 10}, {6, 2, 5}, {1, 2, 3}, {5, 1, 2}, {0}};
static const struct piece SHORT_JUMP[] = {{11, 1, 12}, {4, 1, 11}, {8, 2, 9}, {10, 1, 8}, {6, 1, 7},
                                          {7, 1, 6},   {1, 3, 3},  {5, 1, 2}, {0}};

/* Instructions may begin at any even address, so they are copied. */
static void put(const struct piece *format, size_t size, char *place, int64_t value) {
    uint32_t word = 0;
    memcpy(&word, place, size);
    for (; format->count; format++) {
        uint32_t mask = ((1u << format->count) - 1) << format->to;
        word = (word & ~mask) | ((uint32_t)(value >> format->from) << format->to & mask);
    }
    memcpy(place, &word, size);
}

void put_jump(char *place, int64_t distance) { put(JUMP, 4, place, distance); }

/* The low 12 bits are added as a signed number, so the high ones are rounded. */
static void put_high(char *place, int64_t distance) {
    int64_t rounded = distance + 0x800;
    if (rounded != (int32_t)rounded) refuse("an address is more than 2 GiB away");
    put(HIGH, 4, place, rounded);
}

static void add(char *place, size_t size, uint64_t value) {
    uint64_t sum = 0;
    memcpy(&sum, place, size);
    sum += value;
    memcpy(place, &sum, size);
}

static void put_low_6_bits(char *place, uint64_t value) {
    *place = (char)((*place & 0xc0) | (value & 0x3f));
}

static uint64_t target_of(const struct image *image, const Elf64_Rela *row) {
    size_t number = ELF64_R_SYM(row->r_info);
    switch (ELF64_R_TYPE(row->r_info)) {
    case R_RISCV_GOT_HI20: return (uint64_t)&image->addresses[number] + row->r_addend;
    case R_RISCV_CALL:
    case R_RISCV_CALL_PLT:
        if (image->symbols[number].st_shndx == SHN_UNDEF)
            return (uint64_t)&image->veneers[number];
    }
    return image->addresses[number] + row->r_addend;
}

static int64_t distance_of(const struct image *image, const struct relocations *table,
                           const Elf64_Rela *row) {
    return (int64_t)(target_of(image, row) - (uint64_t)(table->section + row->r_offset));
}

static int is_high(const Elf64_Rela *row) {
    unsigned type = ELF64_R_TYPE(row->r_info);
    return type == R_RISCV_PCREL_HI20 || type == R_RISCV_GOT_HI20;
}

/* The symbol of a low part is a label at the instruction with the high part, whose target is meant. */
static int64_t distance_of_high_part(const struct image *image, const struct relocations *table,
                                     const Elf64_Rela *low) {
    char *label = (char *)image->addresses[ELF64_R_SYM(low->r_info)];
    for (size_t at = 0; at < table->count; at++)
        if (table->section + table->rows[at].r_offset == label && is_high(&table->rows[at]))
            return distance_of(image, table, &table->rows[at]);
    refuse("the low part of an address has no high part");
    return 0;
}

void relocate(const struct image *image, const struct relocations *table, const Elf64_Rela *row) {
    char *place = table->section + row->r_offset;
    uint64_t target = target_of(image, row);
    int64_t distance = distance_of(image, table, row);
    switch (ELF64_R_TYPE(row->r_info)) {
    case R_RISCV_NONE:
    case R_RISCV_RELAX: return; /* permits a linker to shorten code */
    case R_RISCV_ALIGN: return; /* and this, to remove instructions that do nothing */
    case R_RISCV_64: memcpy(place, &target, 8); return;
    case R_RISCV_32_PCREL: memcpy(place, &distance, 4); return;
    case R_RISCV_BRANCH: put(BRANCH, 4, place, distance); return;
    case R_RISCV_JAL: put_jump(place, distance); return;
    case R_RISCV_RVC_BRANCH: put(SHORT_BRANCH, 2, place, distance); return;
    case R_RISCV_RVC_JUMP: put(SHORT_JUMP, 2, place, distance); return;
    case R_RISCV_CALL:
    case R_RISCV_CALL_PLT:
        put_high(place, distance);
        put(LOAD, 4, place + 4, distance);
        return;
    case R_RISCV_PCREL_HI20:
    case R_RISCV_GOT_HI20: put_high(place, distance); return;
    case R_RISCV_PCREL_LO12_I:
        put(LOAD, 4, place, distance_of_high_part(image, table, row));
        return;
    case R_RISCV_PCREL_LO12_S:
        put(STORE, 4, place, distance_of_high_part(image, table, row));
        return;
    case R_RISCV_ADD8: add(place, 1, target); return;
    case R_RISCV_ADD16: add(place, 2, target); return;
    case R_RISCV_ADD32: add(place, 4, target); return;
    case R_RISCV_ADD64: add(place, 8, target); return;
    case R_RISCV_SUB6: put_low_6_bits(place, *place - target); return;
    case R_RISCV_SUB8: add(place, 1, -target); return;
    case R_RISCV_SUB16: add(place, 2, -target); return;
    case R_RISCV_SUB32: add(place, 4, -target); return;
    case R_RISCV_SUB64: add(place, 8, -target); return;
    case R_RISCV_SET6: put_low_6_bits(place, target); return;
    case R_RISCV_SET8: memcpy(place, &target, 1); return;
    case R_RISCV_SET16: memcpy(place, &target, 2); return;
    case R_RISCV_SET32: memcpy(place, &target, 4); return;
    default: refuse_type(row);
    }
}
