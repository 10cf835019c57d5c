#!/usr/bin/env bash
# Python's safetensors reads what Cohort writes, and the other way round. The packages come from PyPI, into
# PACKAGES; where they cannot be had, the test is skipped.
#
#   read_by_python.sh MAKE_CHECKPOINT COHORT-CHECKPOINT PACKAGES
set -euo pipefail
make=$1 tool=$2 packages=$3
skipped=77

export PYTHONPATH=$packages
if ! python3 -c 'import numpy, safetensors; assert safetensors.__version__ == "0.8.0"' 2>/dev/null; then
  rm -rf "$packages"
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --retries 1 --timeout 10 \
      --target "$packages" 'safetensors==0.8.0' 'numpy==2.2.6' </dev/null; then
    echo "skipped: python3 with pip (apt-get install python3-pip) and PyPI are needed for safetensors and numpy"
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

# A model of another program, as one file and as two with an index; then back again.
python3 - "$scratch" <<'END'
import json, struct, sys
import numpy as np
from safetensors.numpy import save_file

random = np.random.default_rng(7)
names = ["bool", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32", "uint64", "int64", "float64"]
model = {f"layers.{i}.{name}": (random.integers(0, 2, (5, 3)) if name == "bool" else
                                random.normal(size=(5, 3)) * 50).astype(name) for i, name in enumerate(names)}
model |= {"scalar": np.array(2.5), "empty": np.zeros((0, 3), "float32"), "b\u00fccher": np.arange(4, dtype="int16")}
np.savez(sys.argv[1] + "/model.npz", **model)
save_file(model, sys.argv[1] + "/one.safetensors", {"format": "np"})

half = dict(list(model.items())[::2])
rest = {name: array for name, array in model.items() if name not in half}
weight_map = {}
for number, part in enumerate([half, rest], 1):
    name = f"two-0000{number}-of-00002.safetensors"
    save_file(part, f"{sys.argv[1]}/{name}")
    weight_map |= dict.fromkeys(part, name)
json.dump({"metadata": {"total_size": sum(array.nbytes for array in model.values())}, "weight_map": weight_map},
          open(sys.argv[1] + "/two.safetensors.index.json", "w"))

# Elements that neither NumPy nor Cohort have, in the order of the reference implementation.
entries, data = {}, b""
for dtype, shape, size in [("C64", [3], 24), ("F8_E5M2FNUZ", [3], 3), ("F8_E4M3FNUZ", [3], 3), ("F8_E8M0", [3], 3),
                           ("F8_E4M3", [3, 2], 6), ("F8_E5M2", [3], 3), ("F6_E3M2", [2, 4], 6), ("F6_E2M3", [8], 6),
                           ("F4", [3, 4], 6)]:
    entries[dtype] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
    data += bytes(range(len(data), len(data) + size))
header = json.dumps(entries).encode()
open(sys.argv[1] + "/foreign.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + data)
END
"$tool" import "$scratch/one.safetensors" --to "$scratch/one"
"$tool" import "$scratch/two.safetensors.index.json" --to "$scratch/two"
"$tool" diff "$scratch/one/step-0" "$scratch/two/step-0"
"$tool" import "$scratch/foreign.safetensors" --to "$scratch/foreign"
"$tool" export "$scratch/foreign/step-0" --to "$scratch/bytes.safetensors"
"$tool" export "$scratch/one/step-0" --to "$scratch/back.safetensors"
mkdir "$scratch/shards"
"$tool" export "$scratch/one/step-0" --to "$scratch/shards/model.safetensors" --max-shard-size 300 \
  --rename 'layers.*.float*=float*.*' --transpose 'layers.*'
python3 - "$scratch" <<'END'
import json, sys
import numpy as np
from safetensors import deserialize, safe_open
from safetensors.numpy import load_file

def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()

model = dict(np.load(sys.argv[1] + "/model.npz"))
back = load_file(sys.argv[1] + "/back.safetensors")
assert set(back) == set(model), back.keys() ^ model.keys()
for name, array in model.items():
    assert same(back[name], array), name
with safe_open(sys.argv[1] + "/back.safetensors", "np") as file:
    assert file.metadata() == {"format": "pt", "step": "0"}, file.metadata()

index = json.load(open(sys.argv[1] + "/shards/model.safetensors.index.json"))
assert index["metadata"]["total_size"] == sum(array.nbytes for array in model.values())
shards = sorted(set(index["weight_map"].values()))
assert len(shards) > 2, shards
assert shards == [f"model-{i:05}-of-{len(shards):05}.safetensors" for i in range(1, len(shards) + 1)], shards
seen = {}
for shard in shards:
    part = load_file(f"{sys.argv[1]}/shards/{shard}")
    assert sum(array.nbytes for array in part.values()) <= 300, shard
    assert all(index["weight_map"][name] == shard for name in part), shard
    assert not seen.keys() & part.keys()
    seen |= part
def new_name(name):  # layers.8.float32 becomes float8.32
    _, number, dtype = name.split(".")
    return f"float{number}.{dtype[5:]}" if dtype.startswith("float") else name
expected = {new_name(name) if name.startswith("layers") else name:
            np.ascontiguousarray(array.T) if name.startswith("layers") else array for name, array in model.items()}
assert set(seen) == set(expected), seen.keys() ^ expected.keys()
for name, array in expected.items():
    assert same(seen[name], array), name

raw = {name: bytes(tensor["data"]) for name, tensor in
       deserialize(open(sys.argv[1] + "/foreign.safetensors", "rb").read())}
kept = dict(deserialize(open(sys.argv[1] + "/bytes.safetensors", "rb").read()))
assert set(raw) == set(kept) and len(raw) == 9
for name, data in raw.items():
    assert bytes(kept[name]["data"]) == data, name
shapes = {"C64": [3, 2], "F8_E4M3": [3, 2], "F6_E3M2": [2, 3], "F6_E2M3": [6], "F4": [3, 2]}
for name, tensor in kept.items():
    assert tensor["shape"] == shapes.get(name, [3]), (name, tensor["shape"])
    assert tensor["dtype"] == ("F32" if name == "C64" else "U8"), (name, tensor["dtype"])
END
