"""
bounded.py: the arithmetic of the reference. A number is a float, or a value with a bound of its error when the server
computes in float32 (Single) or float64 (Double). The functions take both kinds.
"""

import math
from operator import mul

UNKNOWN = 1e15  # the bound of a number that rounding may change entirely
MOST = 1e60


class Bounded:
    """
    value, which the server may have with an error of at most error. eps: the rounding of one operation, twice. A sum of
    many terms is off by at most roundings times eps of the sum of their absolute values.
    """

    __slots__ = ("value", "error")
    roundings = math.inf

    def __init__(self, value, error=0.0):
        self.value, self.error = value, error if error < MOST else MOST

    def __repr__(self):
        return f"{self.value!r} ± {self.error:.3g}"

    def __add__(self, other):
        value, error = parts(other)
        return type(self)(self.value + value,
                          self.error + error + self.eps * (abs(self.value) + abs(value)) + self.tiny)

    def __mul__(self, other):
        (a, off_a), (b, off_b) = (self.value, self.error), parts(other)
        return type(self)(a * b, abs(a) * off_b + off_a * abs(b) + off_a * off_b + self.eps * abs(a * b) + self.tiny)

    def __truediv__(self, other):
        return quotient(type(self), self, other)

    def __rtruediv__(self, other):
        return quotient(type(self), other, self)

    def __neg__(self):
        return type(self)(-self.value, self.error)

    def __abs__(self):
        return type(self)(abs(self.value), self.error)

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other):
        return self.value < parts(other)[0]

    def __gt__(self, other):
        return self.value > parts(other)[0]


class Single(Bounded):
    __slots__ = ()
    eps, tiny = 2.0 ** -23, 1e-37


class Double(Bounded):
    __slots__ = ()
    eps, tiny = 2.0 ** -51, 1e-300


def parts(number):
    """The value and the error of a number of either kind."""
    return (number.value, number.error) if isinstance(number, Bounded) else (number, 0.0)


def quotient(kind, dividend, divisor):
    (a, off_a), (b, off_b) = parts(dividend), parts(divisor)
    if off_b >= abs(b):
        return kind(a / b if b else 0.0, UNKNOWN)
    return kind(a / b, (off_a + abs(a / b) * off_b) / (abs(b) - off_b) + kind.eps * abs(a / b) + kind.tiny)


def near(value, error, like):
    """value, of the kind of like, with that error when it can have one."""
    return type(like)(value, error) if isinstance(like, Bounded) else value


def kind_of(numbers):
    return next(type(number) for number in numbers if isinstance(number, Bounded))


def total(numbers):
    numbers = list(numbers)
    try:
        return math.fsum(numbers)
    except TypeError:
        kind, (values, errors) = kind_of(numbers), separate(numbers)
    size = math.fsum(map(abs, values))
    return kind(math.fsum(values), math.fsum(errors) + kind.eps * min(1 + len(values) / 8, kind.roundings) * size)


def dot(a, b):
    return dots(a, [b])[0]


def dots(row, columns):
    """The product of the row with each of the columns."""
    try:
        return [math.fsum(map(mul, row, column)) for column in columns]
    except TypeError:
        return list(bounded_dots(row, columns))


def bounded_dots(row, columns):
    x, off_x = separate(row)
    magnitudes, kind_of_row = list(map(abs, x)), kind_of(row) if off_x else None
    for column in columns:
        kind, (y, off_y) = kind_of_row or kind_of(column), separate(column)
        terms, error = list(map(mul, x, y)), 0.0
        if off_x:
            error += math.fsum(map(mul, off_x, map(abs, y)))
        if off_y:
            error += math.fsum(map(mul, magnitudes, off_y))
        if off_x and off_y:
            error += math.fsum(map(mul, off_x, off_y))
        yield kind(math.fsum(terms), error + kind.eps * min(len(x) + 2, kind.roundings) * math.fsum(map(abs, terms)) + kind.tiny)


def separate(numbers):
    """The values and the errors of the numbers; None instead of the errors of floats."""
    try:
        return [x.value for x in numbers], [x.error for x in numbers]
    except AttributeError:
        pass
    if not any(isinstance(x, Bounded) for x in numbers):
        return numbers, None
    return list(zip(*map(parts, numbers)))


def largest(numbers):
    numbers = list(numbers)
    return near(parts(max(numbers))[0], max(parts(number)[1] for number in numbers), numbers[0])


def function(of_float, error_of):
    """The function for numbers of both kinds. error_of: of (value, error, result), without the rounding of the result."""
    def apply(x):
        if not isinstance(x, Bounded):
            return of_float(x)
        result = of_float(x.value)
        return type(x)(result, error_of(x.value, x.error, result) + 8 * x.eps * abs(result) + x.tiny)
    return apply


exp = function(math.exp, lambda x, error, result: result * math.expm1(min(50.0, error)))
log = function(math.log, lambda x, error, result: error / (x - error) if error < x else UNKNOWN)
sqrt = function(math.sqrt, lambda x, error, result: min(error / result, math.sqrt(error)) if result else math.sqrt(error))
tanh = function(math.tanh, lambda x, error, result: error * (1 - math.tanh(max(abs(x) - error, 0.0)) ** 2))
erf = function(math.erf, lambda x, error, result: 2 / math.sqrt(math.pi) * error)
# 1 / (1 + exp(-x)), without overflow on either side of 0.
sigmoid = function(lambda x: 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x)),
                   lambda x, error, result: min(1.0, result * math.expm1(min(50.0, error))))
# w log w, a term of an entropy.
times_log = function(lambda w: w * math.log(w), lambda w, error, result: (abs(math.log(w)) + 1) * error)


def hypot(*numbers):
    try:
        return math.hypot(*numbers)
    except TypeError:
        kind, pairs = kind_of(numbers), [parts(number) for number in numbers]
    size = math.hypot(*(value for value, _ in pairs))
    return kind(size, math.hypot(*(error for _, error in pairs)) + 4 * kind.eps * size)
