/* Detours around conversions of vectors to integers toward zero (vfcvt.rtz.x.f.v and others).

   QEMU before 8.0 ends the process as it translates such an instruction, with a failed assertion in
   `decode_save_opc`, unless the rounding mode that it knows at that point of a translated block is the dynamic
   one. The rounding mode is unknown at the beginning of a block, and that of the conversion after one. So the
   conversion becomes a jump to a copy of it, after an instruction of the dynamic rounding mode without effect.
   Formats of instructions: The RISC-V "V" Vector Extension; the RISC-V Instruction Set Manual, volume I. */

#include "object_file.h"

#include <string.h>

#include "riscv64.h"

/* fcvt.w.s zero, ft0, dyn */
static const uint32_t DYNAMIC_ROUNDING = 0xc0007053;
/* jal zero, 0 */
static const uint32_t JUMP = 0x0000006f;
enum { INSTRUCTION = 4, DETOUR = 3 * INSTRUCTION, JUMP_REACH = 1 << 20 };

static uint32_t word_at(const char *place) {
    uint32_t word;
    memcpy(&word, place, sizeof word);
    return word;
}

/* Instructions are 4 bytes long, or 2, which the first two bits tell. */
static size_t length_at(const char *place) { return (*place & 3) == 3 ? INSTRUCTION : 2; }

/* To integers of the same width, of twice the width, or of half of it; unsigned or signed. */
static int is_conversion_to_zero(const char *place) {
    uint32_t word = word_at(place), kind = word >> 15 & 0x1f;
    return (word & 0xfc00707f) == 0x48001057 && (kind & 6) == 6 && kind >> 3 < 3;
}

static char *next_conversion(const char *place, const char *end) {
    while (end - place >= INSTRUCTION && !(length_at(place) == INSTRUCTION && is_conversion_to_zero(place)))
        place += length_at(place);
    return end - place >= INSTRUCTION ? (char *)place : NULL;
}

size_t detour_size(const char *code, size_t size) {
    size_t found = 0;
    const char *end = code + size;
    while ((code = next_conversion(code, end))) {
        found += DETOUR;
        code += INSTRUCTION;
    }
    return found;
}

static void write_detour(char *place, char *detour) {
    memcpy(detour, &DYNAMIC_ROUNDING, INSTRUCTION);
    memcpy(detour + INSTRUCTION, place, INSTRUCTION);
    char *back = detour + 2 * INSTRUCTION;
    memcpy(back, &JUMP, INSTRUCTION);
    put_jump(back, place + INSTRUCTION - back);
    memcpy(place, &JUMP, INSTRUCTION);
    put_jump(place, detour - place);
}

char *add_detours(char *code, size_t size, char *detours) {
    char *end = code + size;
    while ((code = next_conversion(code, end))) {
        /* Beyond the reach of a jump, code runs in later versions of the emulator only. */
        if (detours + DETOUR - code < JUMP_REACH) write_detour(code, detours);
        detours += DETOUR;
        code += INSTRUCTION;
    }
    return detours;
}
