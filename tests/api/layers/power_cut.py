"""
power_cut.py: every state of a directory that a power cut could have left, from the system calls of a server that wrote
into it.

The model: data of a file since its last fsync may be complete, truncated, missing, or zeros; changes of the directory
since its last fsync may be lost from any point on, in their order. A state is sound when every name that is not
temporary leads to a whole version, and every version that was acknowledged, or a later one, is there.
"""

import collections
import re

CALLS = ("openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate,sendto,sendmsg,"
         "writev")


def unescape(text):
    return bytes(int(pair, 16) for pair in re.findall(r"\\x([0-9a-f]{2})", text))


def calls(trace):
    """The successful calls; the two halves of an interrupted line are joined."""
    begun = {}
    for line in trace.splitlines():
        found = re.match(r"(\d+)\s+(.*)", line)
        if not found:
            continue
        thread, text = found.groups()
        if "<unfinished ...>" in text:
            begun[thread] = text.split("<unfinished")[0]
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>\s*(.*)", text)
        if resumed:
            text = begun.pop(thread, "") + resumed.group(1)
        name, value = re.match(r"(\w+)\(", text), re.search(r"\)\s+= (-?\d+)", text)
        if name and value and int(value.group(1)) >= 0:
            yield name.group(1), text, int(value.group(1))


def descriptor(text):
    found = re.search(r"\(\d+<(.*?)>", text)
    return re.sub(r"\\x([0-9a-f]{2})", lambda pair: chr(int(pair.group(1), 16)), found.group(1)) if found else ""


def operations(trace, folder):
    for name, text, value in calls(trace):
        strings = [unescape(part).decode("latin1") for part in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', text)]
        path = descriptor(text)
        if name == "openat" and "O_CREAT" in text and path == folder:
            yield "create", strings[0].split("/")[-1]
        elif name in ("write", "pwrite64") and path.startswith(folder + "/"):
            data = re.search(r'"((?:\\x[0-9a-f]{2})*)"', text)
            yield "write", path.split("/")[-1], unescape(data.group(1))[:value]
        elif name in ("fsync", "fdatasync"):
            yield ("sync folder",) if path == folder else ("sync", path.split("/")[-1])
        elif name.startswith("rename") and len(strings) >= 2:
            yield "rename", strings[0].split("/")[-1], strings[1].split("/")[-1]
        elif name.startswith("unlink") and strings:
            yield "unlink", strings[0].split("/")[-1]
        elif name in ("sendto", "sendmsg", "writev") and re.search("HTTP/1.1 20[01]", "".join(strings)):
            yield ("acknowledge",)


class Disk:
    """The writes, and the part of them that is durable."""

    def __init__(self):
        self.names, self.data, self.synced = {}, {}, {}
        self.certain, self.changes = {}, []
        self.renamed, self.acknowledged = None, {}

    def apply(self, operation):
        kind, *rest = operation
        if kind == "create" and rest[0] not in self.names:
            number = len(self.data)
            self.names[rest[0]], self.data[number], self.synced[number] = number, b"", b""
            self.changes.append(dict(self.names))
        elif kind == "write" and rest[0] in self.names:
            self.data[self.names[rest[0]]] += rest[1]
        elif kind == "sync" and rest[0] in self.names:
            self.synced[self.names[rest[0]]] = self.data[self.names[rest[0]]]
        elif kind == "rename" and rest[0] in self.names:
            self.names[rest[1]] = self.names.pop(rest[0])
            self.changes.append(dict(self.names))
            self.renamed = rest[1]
        elif kind == "unlink" and self.names.pop(rest[0], None) is not None:
            self.changes.append(dict(self.names))
        elif kind == "sync folder":
            self.certain, self.changes = dict(self.names), []
        elif kind == "acknowledge" and self.renamed:
            self.acknowledged[self.renamed] = self.names[self.renamed]
            self.renamed = None

    def leftovers(self, number):
        """The possible contents of the file after the cut."""
        data, synced = self.data[number], self.synced[number]
        if data == synced:
            return [data]
        missing = len(data) - len(synced)
        return [data, synced, data[: len(synced) + missing // 2], synced + b"\0" * missing]


def check(disk, names, wrong):
    whole = set(disk.data.values())
    count = 0
    for name, number in names.items():
        for content in disk.leftovers(number):
            count += 1
            if not name.startswith(".") and (content not in whole or content == b""):
                wrong["torn"] += 1
    for name, number in disk.acknowledged.items():
        if names.get(name, -1) < number:  # files are numbered as they were made
            wrong["acknowledged, and lost"] += 1
    return max(count, 1)


def states(trace, folder):
    """The number of states, and the number of wrong states by kind of mistake."""
    disk, wrong, count = Disk(), collections.Counter(), 0
    for operation in operations(trace, folder):
        disk.apply(operation)
        for names in [disk.certain, *disk.changes]:
            count += check(disk, names, wrong)
    return count, wrong
