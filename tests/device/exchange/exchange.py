"""Exchanges tensors between Cohort and NumPy or PyTorch through DLPack, without a copy.

    exchange.py LIBRARY numpy|torch
"""
import ctypes
import sys

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
          "float64", "bool"]

cohort = ctypes.PyDLL(sys.argv[1])
POINTER = ctypes.c_void_p
for name, result, arguments in [
        ("freed", ctypes.c_int, []), ("last_message", ctypes.c_char_p, []),
        ("make", POINTER, [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]), ("drop", None, [POINTER]),
        ("address", POINTER, [POINTER]), ("describe", ctypes.c_char_p, [POINTER]),
        ("element", ctypes.c_double, [POINTER, ctypes.c_int, ctypes.c_int]),
        ("set_element", None, [POINTER, ctypes.c_int, ctypes.c_int, ctypes.c_double]),
        ("to_capsule", ctypes.py_object, [POINTER]), ("from_capsule", POINTER, [ctypes.py_object])]:
    function = getattr(cohort, name)
    function.restype, function.argtypes = result, arguments


class Tensor:
    """A tensor of Cohort, of three rows and four columns unless it was taken."""

    def __init__(self, dtype=None, taken=None):
        self.handle = taken or cohort.make(dtype.encode(), 3, 4)

    @staticmethod
    def take(capsule):
        handle = cohort.from_capsule(capsule)
        if handle is None:
            raise ValueError(cohort.last_message().decode())
        return Tensor(taken=handle)

    def __dlpack__(self, stream=None):
        return cohort.to_capsule(self.handle)

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU

    def __del__(self):
        cohort.drop(self.handle)

    def __str__(self):
        return cohort.describe(self.handle).decode()

    def __getitem__(self, place):
        return cohort.element(self.handle, *place)

    def __setitem__(self, place, value):
        cohort.set_element(self.handle, *place, value)

    def address(self):
        return cohort.address(self.handle)


class Numpy:
    def __init__(self):
        import numpy
        self.module = numpy
        self.lacks = {"bfloat16"}
        version = tuple(int(part) for part in numpy.__version__.split(".")[:2])
        self.does_not_give = {"bool"} if version < (1, 25) else set()

    address = staticmethod(lambda array: array.ctypes.data)
    writable = staticmethod(lambda array: array.flags.writeable)

    def over(self, memory, dtype):
        return self.module.frombuffer(memory, dtype=dtype).reshape(3, 4)


class Torch:
    def __init__(self):
        import torch
        self.module = torch
        self.lacks = {dtype for dtype in DTYPES if not hasattr(torch, dtype)}
        self.does_not_give = {"bool"}  # until PyTorch 2

    address = staticmethod(lambda tensor: tensor.data_ptr())
    writable = staticmethod(lambda tensor: True)

    def over(self, memory, dtype):
        return self.module.frombuffer(memory, dtype=getattr(self.module, dtype)).reshape(3, 4)


def expect_error(kinds, action, part=""):
    try:
        action()
    except kinds as error:
        assert part in str(error), error
        return
    raise AssertionError("there was no error")


def gives(library, dtype):
    freed = cohort.freed()
    tensor = Tensor(dtype)
    theirs = library.module.from_dlpack(tensor)
    # In DLPack of before 1.0, which Cohort speaks, bools are bytes.
    assert str(theirs.dtype).endswith("uint8" if dtype == "bool" else dtype), theirs.dtype
    assert tuple(theirs.shape) == (3, 4) and library.address(theirs) == tensor.address(), dtype
    assert float(theirs[2, 1]) == (1 if dtype == "bool" else 9), (dtype, theirs)
    tensor[1, 1] = 0
    assert float(theirs[1, 1]) == 0, dtype
    if library.writable(theirs):
        theirs[1, 2] = 1
        assert tensor[1, 2] == 1, dtype
    del tensor
    row = theirs[2]
    del theirs
    assert float(row[3]) == (1 if dtype == "bool" else 11) and cohort.freed() == freed, dtype
    del row
    assert cohort.freed() == freed + 1, dtype


def cannot_take(library, dtype):
    freed = cohort.freed()
    tensor = Tensor(dtype)
    expect_error((BufferError, RuntimeError, TypeError), lambda: library.module.from_dlpack(tensor))
    del tensor
    assert cohort.freed() == freed + 1, (dtype, "is not freed")


def takes(library, dtype):
    bytes_per_element = {"bool": 1}.get(dtype) or int(dtype.lstrip("bfloatuin")) // 8
    memory = bytearray(12 * bytes_per_element)
    alone = sys.getrefcount(memory)
    theirs = library.over(memory, dtype)
    theirs[1, 2] = 1
    tensor = Tensor.take(theirs.__dlpack__())
    assert str(tensor) == dtype + "[3, 4]", (dtype, str(tensor))
    assert tensor.address() == library.address(theirs) and tensor[1, 2] == 1 and tensor[0, 0] == 0, dtype
    tensor[2, 3] = 1
    assert float(theirs[2, 3]) == 1, dtype
    rows = Tensor.take(theirs[1:3].__dlpack__())
    assert rows.address() == tensor.address() + 4 * bytes_per_element and str(rows).endswith("[2, 4]"), dtype
    del theirs, tensor
    assert rows[1, 3] == 1 and sys.getrefcount(memory) > alone, dtype
    del rows
    assert sys.getrefcount(memory) == alone, (dtype, "is not given back, or twice")


def refuses_strides(library):
    memory = bytearray(48)
    alone = sys.getrefcount(memory)
    theirs = library.over(memory, "float32")
    for strided in (theirs.T, theirs[:, ::2], theirs[::2]):
        expect_error(ValueError, lambda: Tensor.take(strided.__dlpack__()), "make it contiguous")
    del theirs, strided
    assert sys.getrefcount(memory) == alone


def refuses_other_types(library):
    theirs = library.over(bytearray(12 * 8), "complex64")
    expect_error(ValueError, lambda: Tensor.take(theirs.__dlpack__()), "no counterpart in Cohort")


def frees_what_nobody_took():
    freed = cohort.freed()
    capsule = Tensor("float32").__dlpack__()
    assert cohort.freed() == freed
    del capsule
    assert cohort.freed() == freed + 1


def goes_around(library):
    """From Cohort to the other library and back: the same memory, which ends once."""
    freed = cohort.freed()
    tensor = Tensor("float32")
    theirs = library.module.from_dlpack(tensor)
    if library.writable(theirs):
        back = Tensor.take(theirs.__dlpack__())
        assert back.address() == tensor.address()
        del back
    del tensor, theirs
    assert cohort.freed() == freed + 1


def protects_what_is_read_only(library):
    array = library.over(bytes(48), "float32")  # of bytes, which nobody may write
    expect_error(BufferError, lambda: Tensor.take(array.__dlpack__()))


library = {"numpy": Numpy, "torch": Torch}[sys.argv[2]]()
for dtype in DTYPES:
    if dtype in library.lacks:
        cannot_take(library, dtype)
    else:
        gives(library, dtype)
        if dtype not in library.does_not_give:
            takes(library, dtype)
refuses_strides(library)
refuses_other_types(library)
frees_what_nobody_took()
goes_around(library)
if isinstance(library, Numpy):
    protects_what_is_read_only(library)
for dtype in sorted(library.does_not_give):
    print(f"skipped: {sys.argv[2]} {library.module.__version__} gives no {dtype} away; a newer one does")
print(f"{sys.argv[2]} {library.module.__version__}: exchanges {len(DTYPES) - len(library.lacks)} types of elements, "
      f"and lacks {', '.join(sorted(library.lacks))}; what it gets is "
      f"{'writable' if library.writable(library.module.from_dlpack(Tensor('float32'))) else 'read-only'}")
