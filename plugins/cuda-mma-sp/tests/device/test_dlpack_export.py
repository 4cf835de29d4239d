"""Exports of arrays on a GPU by DLPack, as the array API standard describes them, by each driver."""

import numpy as np
import pytest

from gossamer_backend import Device
from gossamer_backend.arguments.dlpack import IS_COPIED, VersionedTensor, _pointer_in
from gossamer_cuda_mma_sp.device.device_array import DeviceArray
from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
from gossamer_cuda_mma_sp.driver.open_driver import open_driver

GPU, CPU = (2, 0), (1, 0)
STREAM = 7
WAITS = {"cuStreamSynchronize", "cuCtxSynchronize"}


@pytest.fixture(params=["pycuda", "cuda-bindings", "ctypes"])
def array(request, fake_gpu):
    array = DeviceArray((2, 3), np.float32, GpuDevice(open_driver(request.param, 0)))
    array.copy_from(np.arange(6, dtype=np.float32).reshape(2, 3))
    return array


def address_of(array):
    return array.__cuda_array_interface__["data"][0]


def tensor_of(capsule):
    return VersionedTensor.from_address(_pointer_in(capsule, b"dltensor_versioned"))


def calls_of(gpu, run):
    before = len(gpu.calls)
    run()
    return set(gpu.calls[before:])


@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("dl_device", [None, GPU, Device(2, 0)])
def test_memory_is_shared_unless_a_copy_is_wanted(array, copy, dl_device):
    capsule = array.__dlpack__(max_version=(1, 0), dl_device=dl_device, copy=copy)
    assert (tensor_of(capsule).tensor.data, tensor_of(capsule).flags) == (address_of(array), 0)


@pytest.mark.parametrize("stream", [None, 1, STREAM])
def test_a_copy_on_the_same_device_is_of_what_all_streams_write(array, fake_gpu, stream):
    array.use_on(9)
    fake_gpu.work[9].append(lambda: fake_gpu.memory.write(address_of(array), np.full(6, 5, "f4")))
    capsule = array.__dlpack__(stream=stream, max_version=(1, 0), copy=True)
    array.copy_from(np.zeros((2, 3)))
    copied = tensor_of(capsule)
    assert (copied.flags, copied.tensor.device_kind) == (IS_COPIED, 2)
    assert copied.tensor.data != address_of(array)
    assert fake_gpu.memory.read(copied.tensor.data, 24).view("f4").tolist() == [5] * 6


def test_a_copy_for_a_consumer_without_order_does_not_wait(array, fake_gpu):
    array.use_on(9)
    called = calls_of(fake_gpu, lambda: array.__dlpack__(stream=-1, copy=True))
    assert "cuMemcpyDtoDAsync" in called
    assert not called & WAITS


def test_a_copy_keeps_its_memory_until_the_capsule_is_gone(array, fake_gpu):
    capsule = array.__dlpack__(max_version=(1, 0), copy=True)
    at = tensor_of(capsule).tensor.data
    assert address_of(DeviceArray((2, 3), np.float32, array._gpu)) != at
    del capsule
    assert address_of(DeviceArray((2, 3), np.float32, array._gpu)) == at


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 2)])
def test_an_export_to_the_cpu_is_a_copy(array, copy, max_version):
    class Consumed:
        def __dlpack_device__(self):
            return CPU

        def __dlpack__(self, **_):
            return array.__dlpack__(dl_device=CPU, copy=copy, max_version=max_version)

    if max_version is not None and max_version >= (1, 0):
        capsule = array.__dlpack__(dl_device=CPU, copy=copy, max_version=max_version)
        assert tensor_of(capsule).flags == IS_COPIED
        if np.lib.NumpyVersion(np.__version__) < "2.1.0":
            return
    values = np.from_dlpack(Consumed())
    array.copy_from(np.zeros((2, 3)))
    assert values.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="from_dlpack of NumPy has no device"
)
def test_numpy_takes_a_copy(array):
    assert np.from_dlpack(array, device="cpu").tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(BufferError, match="copied to the CPU, and copy is False"):
        np.from_dlpack(array, device="cpu", copy=False)


@pytest.mark.parametrize("dl_device", [(2, 1), (1, 1), (10, 0)])
def test_other_devices_are_refused(array, dl_device):
    with pytest.raises(BufferError, match=r"expected its own, \(2, 0\), or the CPU, \(1, 0\)"):
        array.__dlpack__(dl_device=dl_device)


@pytest.mark.parametrize("stream", [0, -2, True, "7"])
def test_streams_that_the_standard_does_not_allow_are_refused(array, stream):
    with pytest.raises(BufferError, match="is not a stream of DLPack"):
        array.__dlpack__(stream=stream)


def test_the_default_stream_of_a_thread_is_a_stream_of_its_own(array, fake_gpu):
    assert "cuStreamSynchronize" in calls_of(fake_gpu, lambda: array.__dlpack__(stream=2))
    assert "cuCtxSynchronize" in calls_of(fake_gpu, array.to_numpy)
