"""oip.py: requests of the Open Inference Protocol, with and without binary tensors; needs only the standard library."""
import json
import struct

FORMATS = {"FP32": "f", "FP64": "d", "FP16": "e", "BOOL": "?", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q",
           "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q"}


def flat(rows):
    return [x for row in rows for x in flat(row)] if isinstance(rows, list) else [rows]


def shape_of(rows):
    return [len(rows)] + shape_of(rows[0]) if isinstance(rows, list) else []


def tensor(name, rows, datatype="FP32", **members):
    return {"name": name, "datatype": datatype, "shape": shape_of(rows), "data": rows, **members}


def binary_request(inputs, **members):
    """(body, length of its JSON): inputs as tensor() makes them, their data moved behind the JSON."""
    tail, heads = b"", []
    for item in inputs:
        numbers = flat(item["data"])
        data = struct.pack(f"<{len(numbers)}{FORMATS[item['datatype']]}", *numbers)
        tail += data
        head = {name: value for name, value in item.items() if name != "data"}
        heads.append({**head, "parameters": {"binary_data_size": len(data)}})
    text = json.dumps({"inputs": heads, **members}).encode()
    return text + tail, len(text)


def read_answer(body, json_length=None):
    """The answer with the data of binary outputs filled in as flat lists."""
    if json_length is None:
        return json.loads(body)
    answer, at = json.loads(body[:json_length]), json_length
    for output in answer["outputs"]:
        size = output.get("parameters", {}).get("binary_data_size")
        if size is None:
            continue
        code = FORMATS[output["datatype"]]
        output["data"] = list(struct.unpack(f"<{size // struct.calcsize(code)}{code}", body[at:at + size]))
        at += size
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes belong to no output")
    return answer
