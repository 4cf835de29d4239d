/* Relocations of AArch64. Source: ELF for the Arm 64-bit Architecture. */

#include "object_file.h"

#include <string.h>

const Elf64_Half MACHINE = EM_AARCH64;
const char MACHINE_NAME[] = "AArch64";
/* ldr x16, #16; br x16 */
const struct veneer VENEER = {{0x58000090, 0xd61f0200, 0, 0}, 0};

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

void relocate(const struct image *image, const struct relocations *table, const Elf64_Rela *row) {
    size_t number = ELF64_R_SYM(row->r_info);
    char *place = table->section + row->r_offset;
    uint32_t *instruction = (uint32_t *)place;
    uint64_t target = image->addresses[number] + row->r_addend;
    uint64_t entry = (uint64_t)&image->addresses[number];
    int64_t distance = (int64_t)(target - (uint64_t)place);
    switch (ELF64_R_TYPE(row->r_info)) {
    case R_AARCH64_NONE: return;
    case R_AARCH64_ABS64: memcpy(place, &target, 8); return;
    case R_AARCH64_PREL64: memcpy(place, &distance, 8); return;
    case R_AARCH64_PREL32: memcpy(place, &distance, 4); return;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
        if (image->symbols[number].st_shndx == SHN_UNDEF)
            distance = (char *)&image->veneers[number] - place;
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
    default: refuse_type(row);
    }
}
