// Functions of one value, by the names the engines' tables use. Numbers are file formats: never reused.
enum Act { none = 0, relu = 1, gelu = 2, gelu_tanh = 3, silu = 4, swish = 5, tanh = 6, sigmoid = 7 }

enum Unary {
    copy = 0, relu = 1, gelu = 2, gelu_tanh = 3, silu = 4, swish = 5, tanh = 6, sigmoid = 7, exp = 8, log = 9,
    sqrt = 10, rsqrt = 11, reciprocal = 12, square = 13, abs = 14, sign = 15, erf = 16, sin = 17, softplus = 18,
    mish = 19, neg = 20
}

enum Binary { add = 0, sub = 1, mul = 2, div = 3, maximum = 4, minimum = 5 }

enum Reduce { sum = 0, mean = 1, max = 2, min = 3 }
