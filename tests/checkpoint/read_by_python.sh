#!/usr/bin/env bash
# Python's safetensors reads what Cohort writes. The package comes from PyPI, into PACKAGES; where it cannot be
# had, the test is skipped.
#
#   read_by_python.sh MAKE_CHECKPOINT COHORT-CHECKPOINT PACKAGES
set -euo pipefail
make=$1 tool=$2 packages=$3
skipped=77

export PYTHONPATH=$packages
if ! python3 -c 'import safetensors' 2>/dev/null; then
  rm -rf "$packages"
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --retries 1 --timeout 10 \
      --target "$packages" 'safetensors==0.5.3' </dev/null; then
    echo "skipped: python3 with pip (apt-get install python3-pip) and PyPI are needed for the package safetensors"
    exit $skipped
  fi
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$make" "$scratch" 3
"$tool" export "$scratch/step-3" --to "$scratch/all.safetensors"
"$tool" export "$scratch/step-3" --to "$scratch/all.npz"
python3 - "$scratch/step-3" "$scratch/all.safetensors" "$scratch/all.npz" <<'END'
import ast, json, struct, sys, zipfile
from safetensors import deserialize

folder = sys.argv[1]
index = json.load(open(folder + "/model.safetensors.index.json"))
tensors = {}
for file in set(index["weight_map"].values()):
    with open(f"{folder}/{file}", "rb") as opened:
        tensors.update(deserialize(opened.read()))
with open(sys.argv[2], "rb") as opened:
    assert dict(deserialize(opened.read())) == tensors

formats = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
           "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "bool": "?"}
names = {"int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16", "uint32": "U32",
         "uint64": "U64", "float16": "F16", "float32": "F32", "float64": "F64", "bool": "BOOL"}
assert set(tensors) == set(index["weight_map"]) == set(formats) | {"bfloat16", "text", "scalar", "no rows"}, tensors
for dtype, letter in formats.items():
    tensor = tensors[dtype]
    assert tensor["dtype"] == names[dtype] and tensor["shape"] == [2, 3], (dtype, tensor)
    values = list(struct.unpack(f"<6{letter}", tensor["data"]))
    assert values == ([False] + [True] * 5 if dtype == "bool" else [0, 1, 2, 3, 4, 5]), (dtype, values)
# The upper halves of float32.
halves = struct.unpack("<6H", tensors["bfloat16"]["data"])
assert tensors["bfloat16"]["dtype"] == "BF16"
assert [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in halves] == [0, 1, 2, 3, 4, 5], halves
assert bytes(tensors["text"]["data"]) == b"hello"
assert tensors["scalar"]["shape"] == [] and struct.unpack("<d", tensors["scalar"]["data"]) == (1.5,)
assert tensors["no rows"]["shape"] == [0, 3] and len(tensors["no rows"]["data"]) == 0
assert index["metadata"]["total_size"] == sum(len(tensor["data"]) for tensor in tensors.values())

with zipfile.ZipFile(sys.argv[3]) as arrays:
    assert arrays.testzip() is None
    assert {name[:-4] for name in arrays.namelist()} == set(tensors), arrays.namelist()
    for name, tensor in tensors.items():
        array = arrays.read(name + ".npy")
        assert array[:8] == b"\x93NUMPY\x01\x00", array
        begin = 10 + struct.unpack("<H", array[8:10])[0]
        assert begin % 64 == 0 and array[begin:] == bytes(tensor["data"]), name
        header = ast.literal_eval(array[10:begin].decode())
        assert header["shape"] == tuple(tensor["shape"]) and not header["fortran_order"], header
        letter = {"BF16": "V", "BOOL": "b"}.get(tensor["dtype"], tensor["dtype"][0].lower())
        assert header["descr"][1] == letter, (name, header)
END
