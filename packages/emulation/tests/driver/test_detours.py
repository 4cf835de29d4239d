"""Conversions of vectors toward zero on RISC-V, which QEMU before 8.0 does not translate."""

import numpy as np
import pytest

from gossamer_emulation import RISCV64, EmulatedMachine

WITH_VECTORS = EmulatedMachine(RISCV64, "rv64,v=true,vext_spec=v1.0,vlen=128")
PARAMETERS = "const int32_t *x, int32_t *y, int64_t n, void *workspace"
CONVERSIONS = f"""
int64_t gossamer_kernel({PARAMETERS}) {{
    for (int64_t i = 0; i < n; i++)
        __asm__ volatile(
            "vsetivli zero, 1, e32, m1, ta, ma\\n"
            "vle32.v v8, (%0)\\n vfcvt.f.x.v v8, v8\\n vmv.v.i v10, 3\\n vfcvt.f.x.v v10, v10\\n"
            "vfdiv.vv v8, v8, v10\\n CONVERSION\\n vse32.v v12, (%1)"
            : : "r"(x + i), "r"(y + i) : "memory");
    return 0;
}}"""
"""Each element is a third of that of `x`, converted to an integer."""
SEQUENCES = {
    "signed": "vfcvt.rtz.x.f.v v12, v8",
    "unsigned": "vfcvt.rtz.xu.f.v v12, v8",
    "wider": "vfwcvt.rtz.x.f.v v12, v8",
    "narrower": "vfwcvt.f.f.v v12, v8\n vfncvt.rtz.x.f.w v14, v12\n vmv.v.v v12, v14",
    "twice": "vfcvt.rtz.x.f.v v12, v8\n vfcvt.rtz.x.f.v v12, v8",
    "between other rounding": "vfcvt.x.f.v v14, v8\n vfcvt.rtz.x.f.v v12, v8\n vfcvt.x.f.v v14, v8",
    "at an odd half": "c.nop\n vfcvt.rtz.x.f.v v12, v8",
}
X = np.array([0, 1, 2, 5, 7, 9, 100, 12345], np.int32)


@pytest.mark.parametrize("machine", ["riscv64"], indirect=True)
@pytest.mark.parametrize("name", SEQUENCES)
def test_conversions_round_toward_zero(name, machine, load):
    x = X if name == "unsigned" else X * np.resize([1, -1], X.size).astype(np.int32)
    y = np.full_like(x, -7)
    source = CONVERSIONS.replace("CONVERSION", SEQUENCES[name].replace("\n", "\\n"))
    load(source, "-march=rv64gcv", dtype="int32", on=WITH_VECTORS)(x, y)
    np.testing.assert_array_equal(y, np.trunc(x / 3))
