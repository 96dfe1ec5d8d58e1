"""numpy.py: replaces NumPy if it is not installed: the part that examples/open_inference.py uses."""
float32 = "float32"


class ndarray(list):
    def tolist(self):
        return [list(row) for row in self]


def array(rows, dtype=None):
    return ndarray(rows)
