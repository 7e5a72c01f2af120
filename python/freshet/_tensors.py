"""Tensors of the Open Inference Protocol v2, with binary data, as arrays and back."""
import json
import struct

import numpy as np

_NAMES = {"f4": "FP32", "f8": "FP64", "i1": "INT8", "i2": "INT16", "i4": "INT32", "i8": "INT64", "u1": "UINT8",
          "u2": "UINT16", "u4": "UINT32", "u8": "UINT64", "b1": "BOOL"}
_TYPES = {name: np.dtype("<" + kind if kind[1] != "1" else kind) for kind, name in _NAMES.items()}


def _bytes_of(texts):
    encoded = [str(text).encode() for text in texts]
    return b"".join(struct.pack("<I", len(text)) + text for text in encoded)


def _texts_in(data):
    texts, at = [], 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        texts.append(data[at + 4:at + 4 + size].decode())
        at += 4 + size
    return np.array(texts)


def pack(inputs, **request):
    """The body of a request with these arrays, and the length of its first part, which is JSON."""
    tensors, blocks = [], []
    for name, array in inputs.items():
        array = np.asarray(array)
        kind = array.dtype.str[1:]
        if kind in _NAMES:
            datatype, data = _NAMES[kind], np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        else:
            datatype, data = "BYTES", _bytes_of(array.ravel())
        tensors.append({"name": name, "shape": list(array.shape), "datatype": datatype,
                        "parameters": {"binary_data_size": len(data)}})
        blocks.append(data)
    head = json.dumps({**request, "inputs": tensors, "parameters": {"binary_data_output": True}}).encode()
    return head + b"".join(blocks), len(head)


def unpack(body, head_length):
    """The answer's JSON, and its outputs as arrays by name."""
    answer = json.loads(body[:head_length] if head_length else body)
    outputs, at = {}, head_length or len(body)
    for tensor in answer.get("outputs", []):
        size = tensor.get("parameters", {}).get("binary_data_size")
        if size is None:
            array = np.array(tensor["data"])
        else:
            data = body[at:at + size]
            at += size
            array = _texts_in(data) if tensor["datatype"] == "BYTES" else np.frombuffer(data, _TYPES[tensor["datatype"]])
        outputs[tensor["name"]] = array.reshape(tensor["shape"])
    return answer, outputs
