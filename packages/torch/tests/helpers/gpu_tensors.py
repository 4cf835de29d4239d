"""Tensors on a GPU for a build of torch that has none: their memory is that of a GPU that the interpreter of
PTX runs. torch's own operations compute on copies of it.

For torch's core they are on the CPU, as autograd needs a device that it was built for. In Python they are on
`cuda:0`, and operators of gossamer run the kernels that are registered for CUDA.
"""

import types
from contextlib import contextmanager

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

CUDA = torch.device("cuda:0")
CUDA_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
STREAM = 7
"""The handle of torch's current stream."""


class GpuTensor(torch.Tensor):
    """A tensor in the memory of `gpu`: a copy of another one, or the view of what is at an address."""

    gpu = None
    device = CUDA
    is_cuda = True

    @staticmethod
    def __new__(cls, contents, address=None):
        if address is None:
            contents = contents.contiguous()
        tensor = torch.Tensor._make_wrapper_subclass(
            cls, contents.shape, strides=contents.stride(), dtype=contents.dtype
        )
        tensor.address = address
        if address is None:
            tensor.address = cls.gpu.memory.allocate(max(contents.nbytes, 1))
            cls.gpu.memory.write(tensor.address, bytes_of(contents))
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func.namespace == "gossamer":
            # The dispatcher leaves modes before it calls a kernel.
            with Factories():
                return func.redispatch(CUDA_KERNELS, *args, **kwargs)
        kwargs.pop("device", None)
        copies = Copies()
        results = func(*copies.made(args), **copies.made(kwargs))
        for number, argument in enumerate(func._schema.arguments):
            value = args[number] if number < len(args) else kwargs.get(argument.name)
            if argument.alias_info is not None and argument.alias_info.is_write:
                value.write(copies.by_id[id(value)][1])
        return tree_map_only(torch.Tensor, copies.on_gpu, results)

    @property
    def __cuda_array_interface__(self):
        dtype = np.dtype(str(self.dtype).removeprefix("torch."))
        return {
            "shape": tuple(self.shape),
            "typestr": dtype.str,
            "data": (self.address, False),
            "strides": tuple(stride * dtype.itemsize for stride in self.stride()),
            "version": 2,
        }

    def __dlpack_device__(self):
        return (2, 0)

    def data_ptr(self):
        return self.address

    def cpu(self):
        """Return a copy for the host, when the work on the stream is done."""
        return self.block()[1].clone()

    def tolist(self):
        return self.cpu().tolist()

    def __repr__(self):
        return f"GpuTensor({self.cpu()})"

    def write(self, contents):
        """Write the elements, when the work on the stream is done."""
        memory, elements = self.block()
        elements.copy_(contents)
        self.gpu.memory.write(self.address, bytes_of(memory))

    def block(self):
        """Return a copy of the memory from the first to the last element, and its view of this shape."""
        self.gpu.cuStreamSynchronize(STREAM)
        steps = zip(self.shape, self.stride(), strict=True)
        count = 1 + sum((size - 1) * stride for size, stride in steps) if self.numel() else 0
        memory = torch.empty(count, dtype=self.dtype)
        bytes_of(memory)[:] = self.gpu.memory.read(self.address, memory.nbytes)
        return memory, memory.as_strided(self.shape, self.stride())


def bytes_of(tensor):
    """Return the memory of a contiguous tensor, whose dtype NumPy may lack."""
    flat = tensor.detach().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)


class Copies:
    """The copies of the tensors of a call on the host."""

    def __init__(self):
        self.by_id = {}

    def made(self, values):
        return tree_map_only(GpuTensor, self._copy, values)

    def _copy(self, tensor):
        if id(tensor) not in self.by_id:
            self.by_id[id(tensor)] = (tensor, tensor.block()[1])
        return self.by_id[id(tensor)][1]

    def on_gpu(self, result):
        """Return a result of the host on the GPU: an argument itself, a view of one, or a new tensor."""
        for tensor, copy in self.by_id.values():
            if result is copy:
                return tensor
            if result.untyped_storage().data_ptr() == copy.untyped_storage().data_ptr() != 0:
                offset = result.data_ptr() - copy.data_ptr()
                return GpuTensor(result, address=tensor.address + offset)
        return GpuTensor(result)


class Factories(TorchFunctionMode):
    """Makes tensors on the GPU where a call asks for that device."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") == CUDA:
            return GpuTensor(func(*args, **{**kwargs, "device": "cpu"}))
        if func is torch.Tensor.to and CUDA in args:
            tensor, *_ = args
            return tensor if isinstance(tensor, GpuTensor) else GpuTensor(tensor)
        return func(*args, **kwargs)


@contextmanager
def tensors_on(gpu, monkeypatch):
    """Let `GpuTensor`s be in the memory of a GPU, on whose stream torch works."""
    monkeypatch.setattr(GpuTensor, "gpu", gpu)
    stream = types.SimpleNamespace(cuda_stream=STREAM)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    with Factories():
        yield
