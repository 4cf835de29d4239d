"""Manifests of exported kernels: the parameters, their checks, and the scratch memory."""

import hashlib
import json

from exported_kernels import SIGNATURE, N, artifact
from msgspec import structs

from gossamer_backend.export import export_artifact
from gossamer_ir.core.build import index, mul


def test_the_files_say_how_much_scratch_memory_is_needed_and_where(tmp_path, no_linker):
    buffers = tuple(structs.replace(param, space="global") for param in SIGNATURE.buffers)
    scratch = mul(N, index(8))
    signature = structs.replace(SIGNATURE, buffers=buffers, scratch=scratch)
    files = export_artifact(structs.replace(artifact(), signature=signature), tmp_path)
    manifest = json.loads(files.manifest.read_text())
    assert manifest["scratch_bytes"] == "n * 8"
    assert {parameter.get("space") for parameter in manifest["parameters"]} == {"global", None}
    needs = "Arrays are in global memory. Each call needs n * 8 bytes of scratch memory there."
    assert needs in files.header.read_text()


def test_the_manifest_has_all_that_a_caller_needs(tmp_path, no_linker):
    files = export_artifact(
        artifact(bounds_checked_buffers=("X",)),
        tmp_path,
        name="scaled",
        versions={"b": "2", "a": "1"},
    )
    manifest = json.loads(files.manifest.read_text())
    assert (manifest["symbol"], manifest["entry"]) == ("scaled", "scale")
    assert manifest["abi_version"] == 2
    assert manifest["versions"] == {"a": "1", "b": "2"}
    assert manifest["bounds_checked_buffers"] == ["X"]
    assert manifest["requires"] == ["calloc", "free"]
    assert manifest["returns"]["statuses"] == {
        "OK": 0,
        "OUT_OF_BOUNDS": 1,
        "OUT_OF_MEMORY": 2,
        "INTERRUPTED": 3,
    }
    fields = [field["name"] for field in manifest["workspace"]["fields"]]
    assert fields == ["threads", "parallel", "failed_buffer", "is_interrupted"]
    parameters = {parameter["name"]: parameter for parameter in manifest["parameters"]}
    assert list(parameters) == list(SIGNATURE.order)
    assert parameters["x"]["shape"] == ["n", "p[n]"]
    assert {parameters[name]["space"] for name in ("p", "x", "flags")} == {"host"}
    assert manifest["scratch_bytes"] is None
    assert (parameters["x"]["read"], parameters["x"]["written"]) == (True, True)
    assert [parameter["c_type"] for parameter in parameters.values()] == [
        "int32_t *", "int64_t", "double *", "uint8_t *", "int64_t", "float",
    ]  # fmt: skip
    assert parameters["p"]["facts"][0] == {
        "fact": "InRange",
        "low": "0",
        "high": "n + 1",
        "says": "every value is at least 0 and less than n + 1",
    }
    assert [fact["says"] for fact in parameters["p"]["facts"][1:]] == [
        "no value is less than the one before it",
        "in each segment of p, every value is greater than the one before it",
        "in each row, every value is at least the one before it",
        "no two values are the same",
        "a value of n is padding",
        "subset(p, p)",
    ]
    for entry in manifest["files"].values():
        contents = (tmp_path / entry["name"]).read_bytes()
        assert hashlib.sha256(contents).hexdigest() == entry["sha256"]
