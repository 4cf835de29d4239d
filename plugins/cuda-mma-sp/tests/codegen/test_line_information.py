"""Lines in PTX: each names a statement of the printed kernels, also in machine code."""

import re
import subprocess

import pytest
from assembler import assembled
from cuda_toolchain import toolchain_program
from fragment_programs import tile_program

from gossamer_backend.internal_api import ValidatingBackend, export_artifact
from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.target.architectures import ARCHITECTURES
from gossamer_ir.interchange.records import Target

REVERSE = (
    'for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):',
    '    S = T.alloc_buffer((64,), "float32", scope="shared")',
    '    for t in T.thread_binding(64, thread="threadIdx.x"):',
    "        if b * 64 + t < n:",
    "            S[t] = X[b * 64 + t]",
    '    for u in T.thread_binding(64, thread="threadIdx.x"):',
    "        if b * 64 + 63 - u < n and b * 64 + u < n:",
    "            Y[b * 64 + u] = S[63 - u]",
    'for i in T.thread_binding(n, thread="blockIdx.x"):',
    "    Y[i] = T.sqrt(Y[i])",
)
PLACES = {
    "ld.global": "S[t] = X[b * 64 + t]",
    "st.shared": "S[t] = X[b * 64 + t]",
    "bar.sync": "T.barrier()",
    "ld.shared": "Y[b * 64 + u] = S[63 - u]",
    "st.global": "Y[b * 64 + u] = S[63 - u]",
    "%ctaid.x": 'for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):',
    "sqrt": "Y[i] = T.sqrt(Y[i])",
}


def compiled(module, options="lineinfo=yes"):
    return CudaBackend().compile(module, Target.parse(f"cuda-mma-sp:{options}"))


def lines_of(code):
    """The script's line for each instruction that has one, with the name of the file."""
    script, place = code.script.splitlines(), None
    files = dict(re.findall(r'\.file\s+(\d+)\s+"(.*?)"', code.ptx))
    for text in code.ptx.splitlines():
        if loc := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+", text):
            assert files[loc[1]] == "gossamer_kernel.py"
            place = script[int(loc[2]) - 1].strip() if int(loc[2]) else None
        elif place:
            yield text, place


def test_instructions_name_the_statements_that_they_come_from(flat):
    code = DeviceCode.decode(compiled(flat(*REVERSE)).code)
    places = list(lines_of(code))
    for instruction, expected in PLACES.items():
        assert expected in [place for text, place in places if instruction in text], instruction


def test_a_matrix_instruction_names_its_loop():
    code = DeviceCode.decode(compiled(tile_program(depth=32, is_sparse=True)).code)
    (place,) = {place for text, place in lines_of(code) if "mma.sp" in text}
    assert "matrix_instruction" in place or place.startswith("for ")


def test_without_the_option_code_names_no_lines(flat):
    module = flat(*REVERSE)
    plain = DeviceCode.decode(compiled(module, "lineinfo=no").code).ptx
    assert not re.search(r"\.loc|\.file", plain)
    # The instructions are the same.
    with_lines = DeviceCode.decode(compiled(module).code).ptx

    def instructions(text):
        return re.findall(r"^\t[@a-z][^\n]*;", text, re.MULTILINE)

    assert instructions(with_lines) == instructions(plain)


def test_the_interpreter_runs_code_with_lines(flat):
    import numpy as np

    x, y = np.arange(70, dtype=np.float32) ** 2, np.zeros(70, np.float32)
    backend = CudaBackend()
    kernel = backend.load(compiled(flat(*REVERSE), "driver=interpreter,lineinfo=yes"))
    n = 64
    kernel(x[:n].copy(), y[:n], n)
    np.testing.assert_array_equal(y[:n], np.arange(n)[::-1])


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "sm_70"])
def test_ptxas_takes_the_lines(name, flat, tmp_path):
    code = DeviceCode.decode(compiled(flat(*REVERSE), f"arch={name},lineinfo=yes").code)
    assembled(code.ptx, name, tmp_path, "-lineinfo")


def test_exported_code_names_the_lines_of_the_exported_script(flat, tmp_path):
    backend = ValidatingBackend(CudaBackend())
    artifact = backend.compile(flat(*REVERSE), Target.parse("cuda-mma-sp:arch=sm_90,lineinfo=yes"))
    files = export_artifact(artifact, tmp_path, name="reverse", backend=backend).files
    assert files["script"].name == "reverse.py"
    script = files["script"].read_text().splitlines()
    assert '"reverse.py"' in files["ptx"].read_text()
    program = toolchain_program("nvdisasm")
    if "cubin" not in files or program is None:
        pytest.skip("there is no ptxas or no nvdisasm: install nvidia-cuda-nvdisasm")
    text = subprocess.run(
        [program, "-g", "-c", str(files["cubin"])], capture_output=True, text=True, check=True
    ).stdout
    places = re.findall(r'//## File "reverse.py", line (\d+).*\n(?:\t//##.*\n)*(.*)', text)
    stores = [script[int(line) - 1].strip() for line, instruction in places if "STS" in instruction]
    assert "S[t] = X[b * 64 + t]" in stores
