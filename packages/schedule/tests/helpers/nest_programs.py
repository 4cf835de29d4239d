"""Loop nests that several tests schedule, for the `program` fixture."""

COPY = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
"""
SUM = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
"""
BACKWARDS = """
for i in T.serial(8):
    for j in T.serial(i + 1):
        with T.block("sum"):
            vi, vj = T.axis.remap("RS", [i, j])
            with T.init():
                V[vj] = 0.0
            V[vj] = V[vj] + X[vi, vj]
"""
RAGGED = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
"""
NESTED_PARTS = """
for i in T.serial(6):
    R = T.alloc_buffer((8,), "float32")
    t: T.float32 = T.float32(i) + 1.0
    for j in T.serial(i + 1):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vj] = X[vi, vj] * t
    for k in T.serial(i + 1):
        with T.block("use"):
            wi, wk = T.axis.remap("SS", [i, k])
            Y[wi, wk] = R[wk]
"""
