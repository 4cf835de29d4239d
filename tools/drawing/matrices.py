"""Small matrices with the structure of real ones, the same with every version of Python and NumPy."""

from __future__ import annotations

import random

import numpy as np

from gossamer_formats import Array

ROWS, COLUMNS = 28, 36


def graph() -> Array:
    """Return a graph whose degrees differ much: some rows and columns have many elements, most have few."""
    source, dense = random.Random(3), np.zeros((ROWS, COLUMNS))
    order = [*range(ROWS)]
    source.shuffle(order)
    for rank, row in enumerate(order):
        for _ in range(max(2, 26 // (rank + 1))):
            dense[row, int(COLUMNS * source.random() ** 2)] = 1
    return dense


def few_rows() -> Array:
    """Return a matrix in which most rows are empty."""
    source, dense = random.Random(23), np.zeros((ROWS, COLUMNS))
    for row in (2, 3, 9, 14, 16, 23):
        for _ in range(source.randint(2, 8)):
            dense[row, source.randrange(COLUMNS)] = 1
    return dense


def elements() -> Array:
    """Return a matrix of finite elements: two unknowns in each node of a mesh of 4 by 4 nodes."""
    side, unknowns = 4, 2
    nodes = range(side * side)
    dense = np.zeros((len(nodes), len(nodes)))
    for node in nodes:
        for other in nodes:
            down, across = abs(node // side - other // side), abs(node % side - other % side)
            dense[node, other] = down <= 1 and across <= 1
    return np.kron(dense, np.ones((unknowns, unknowns)))


def pruned_blocks() -> Array:
    """Return weights of which blocks of 4 by 4 were pruned, in some rows of blocks all of them."""
    source, blocks = random.Random(5), np.zeros((7, 9))
    for row in (0, 2, 5):
        for column in range(9):
            blocks[row, column] = source.random() < 0.4
    return np.kron(blocks, np.ones((4, 4)))


def stencil() -> Array:
    """Return a stencil of five points on a grid of 5 by 6."""
    size, width = 30, 6
    dense = np.eye(size)
    for node in range(size - 1):
        if (node + 1) % width:
            dense[node, node + 1] = dense[node + 1, node] = 1
    for node in range(size - width):
        dense[node, node + width] = dense[node + width, node] = 1
    return dense


def mesh_graph() -> Array:
    """Return a mesh: each node has two to four neighbors near to it."""
    source, dense = random.Random(7), np.zeros((ROWS, ROWS))
    for row in range(ROWS):
        dense[row, row] = 1
        for _ in range(source.choice((2, 3, 3))):
            dense[row, min(max(row + source.randint(-6, 6), 0), ROWS - 1)] = 1
    return dense


def weights() -> Array:
    """Return dense weights: 28 by 36 different values."""
    source = random.Random(11)
    return np.array([[1 + source.random() for _ in range(COLUMNS)] for _ in range(ROWS)])


def pruned_weights() -> Array:
    """Return weights of which 70 percent were pruned, one by one."""
    unpruned = weights()
    return np.where(unpruned > 1.7, unpruned, 0)


def pruned_vectors() -> Array:
    """Return weights of which vectors of 4 rows were pruned."""
    source = random.Random(13)
    kept = [[source.random() < 0.25 for _ in range(COLUMNS)] for _ in range(ROWS // 4)]
    return np.kron(np.array(kept, float), np.ones((4, 1)))


def sequences() -> Array:
    """Return the sequences of a batch, each with a length of its own."""
    source, dense = random.Random(17), np.zeros((ROWS, COLUMNS))
    for row in range(ROWS):
        dense[row, : source.randint(3, COLUMNS)] = 1
    return dense


def relations() -> Array:
    """Return the graphs of three relations between the same 20 nodes, some with few edges."""
    source, dense = random.Random(19), np.zeros((3, 20, 20))
    for relation, edges in enumerate((40, 12, 24)):
        for _ in range(edges):
            dense[relation, int(20 * source.random() ** 2), source.randrange(20)] = 1
    return dense


def mixed_matrix() -> Array:
    """Return a matrix with a band, some dense blocks, and scattered elements."""
    source, dense = random.Random(29), np.zeros((ROWS, ROWS))
    for row in range(ROWS):
        dense[row, max(row - 1, 0) : row + 2] = 1
        dense[row, source.randrange(ROWS)] = 1
    for top, left in ((0, 8), (0, 12), (4, 20), (8, 0), (20, 4)):
        dense[top : top + 4, left : left + 4] = 1
    return dense
