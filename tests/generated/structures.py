"""Random forests of axes with their index arrays, and the elements that they hold.

A structure is a chain of levels. Its table of a level lists the elements down to it that are no
padding: the coordinate along each level, and the place of each ancestor in storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

Size = Callable[[str, int], str]
"""A size by name and value as the program's text has it: a parameter or a number."""

ROW_LENGTHS = (0, 0, 0, 1, 1, 2, 3, 4, 7, 9, 17)
LENGTHS = (0, 1, 2, 3, 5, 8, 11, 19)
SHORT = (0, 1, 2, 3, 4)
MAX_STORAGE = 600
NAMES = ("I", "J", "P", "Q")


@dataclass
class Level:
    """One axis; `parent` is the variable it has to be iterated under."""

    axis: str
    var: str
    parent: str | None
    length: int
    storage: int
    table: dict[str, np.ndarray]


@dataclass
class Structure:
    """Levels with their declarations and arrays; `row` and `column` are coordinates as text and by
    element, known from `row_level` and `column_level` on."""

    declared: list[str] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    row: str = ""
    column: str = ""
    row_level: int = 0
    column_level: int = 0
    rows: int = 0
    columns: int = 0
    is_rows_axis: bool = False

    def table(self, depth: int) -> dict[str, np.ndarray]:
        """The elements of a level, with "row" and "column" where they are known there."""
        found = dict(self.levels[depth].table)
        for name, level in (("row", self.row_level), ("column", self.column_level)):
            if depth >= level:
                found[name] = evaluated(getattr(self, name), found)
        return found

    def points(self, vars: set[str]) -> dict[str, np.ndarray]:
        """The elements of the levels that some variables belong to, with those above them; levels
        that hang under nothing by themselves."""
        needed = set(vars)
        for level in reversed(self.levels):
            if level.var in needed and level.parent is not None:
                needed.add(level.parent)
        tree = max((at for at, found in enumerate(self.levels) if found.var in needed
                    and (at == 0 or found.parent is not None)), default=-1)  # fmt: skip
        if all(
            level.var in needed for level in self.levels[: max(needed_depths(self, needed)) + 1]
        ):
            return self.table(max(needed_depths(self, needed)))
        table = dict(self.levels[tree].table) if tree >= 0 else {"_": np.zeros(1, np.int64)}
        for level in self.levels[tree + 1 :]:
            if level.var in needed:
                count = len(next(iter(table.values())))
                table = {key: np.repeat(at, level.length) for key, at in table.items()}
                table[level.var] = np.tile(np.arange(level.length), count)
        for name in ("row", "column"):
            if names_in(getattr(self, name)) <= table.keys():
                table[name] = evaluated(getattr(self, name), table)
        return table

    def access(self, depth: int) -> tuple[str, str]:
        """The axes down to a level, and the variables."""
        levels = self.levels[: depth + 1]
        return ", ".join(found.axis for found in levels), ", ".join(found.var for found in levels)


def needed_depths(structure: Structure, vars: set[str]) -> list[int]:
    return [at for at, level in enumerate(structure.levels) if level.var in vars]


def names_in(text: str) -> set[str]:
    """The variables of a sum."""
    return {term.partition(" * ")[0] for term in text.split(" + ")}


def evaluated(text: str, table: dict[str, np.ndarray]) -> np.ndarray:
    """A sum of variables times numbers: `i * 2 + p`."""
    terms = []
    for term in text.split(" + "):
        name, _, factor = term.partition(" * ")
        terms.append(table[name] * int(factor or 1))
    return sum(terms)


# --- building levels


class Builder:
    """Adds levels to a structure; the `slots` of the level above are where fibres hang."""

    def __init__(self, rng: Random, size: Size) -> None:
        self.rng, self.size = rng, size
        self.found = Structure()
        self.slots = 1
        self.is_element = np.ones(1, bool)
        self.columns: dict[str, np.ndarray] = {}
        self.last: str | None = None
        self.parent: str | None = None

    def fibre(self, length: int, *, is_plain: bool) -> list[int]:
        """Coordinates below `length`: none, few, all; any order and twice where it is not plain."""
        rng = self.rng
        count = length if rng.random() < 0.1 else rng.choice(ROW_LENGTHS)
        count = min(count, length, MAX_STORAGE // (2 * max(self.slots, 1)) + 1)
        if is_plain or not length:
            return sorted(rng.sample(range(length), min(count, length)))
        return [rng.randrange(length) for _ in range(count)]

    def fibres(self, length: int, *, is_plain: bool) -> list[list[int]]:
        """One for each slot; sometimes empty at both ends."""
        found = [self.fibre(length, is_plain=is_plain) for _ in range(self.slots)]
        for at in {0, self.slots - 1} if found and self.rng.random() < 0.4 else ():
            found[at] = []
        return found

    def index(self, *values: np.ndarray) -> str:
        """A dtype that holds the values."""
        largest = max((int(found.max(initial=0)) for found in values), default=0)
        small = [name for name in ("uint8", "uint16") if largest <= np.iinfo(name).max]
        return self.rng.choice(("int32", "int64", "int32", "int64", *small))

    def add(self, kind: str, length: int) -> None:
        """Adds a level: dense, root, ragged, compressed, padded, ell."""
        name = NAMES[len(self.found.levels)]
        text = self.size(f"{name.lower()}_len", length)
        lengths = getattr(self, f"_{kind}")(name, length, text)
        self._entered(name, length, *lengths)

    def _entered(self, name: str, length: int, lengths: np.ndarray, coordinate: np.ndarray) -> None:
        var = name.lower()
        above = np.repeat(np.arange(self.slots), lengths)
        self.columns = {key: at[above] for key, at in self.columns.items()}
        self.columns[var] = coordinate
        self.slots = len(coordinate)
        self.columns[f"at_{var}"] = np.arange(self.slots)
        self.is_element = self.is_element[above] & (coordinate < length)
        table = {key: at[self.is_element].astype(np.int64) for key, at in self.columns.items()}
        parent, self.parent = self.parent, None
        self.found.levels.append(Level(name, var, parent, length, self.slots, table))
        self.last = name

    def _declare(self, name: str, text: str) -> None:
        self.found.declared.append(f"{name} = T.sp.{text}")

    def _under(self) -> None:
        self.parent = None if self.last is None else self.last.lower()

    # --- kinds of levels: the length of each fibre, and the coordinate in each slot

    def _root(self, name: str, length: int, text: str) -> tuple[np.ndarray, np.ndarray]:
        self._declare(name, f"dense_fixed({text})")
        return np.full(self.slots, length), np.tile(np.arange(length), self.slots)

    def _dense(self, name: str, length: int, text: str) -> tuple[np.ndarray, np.ndarray]:
        self._under()
        self._declare(name, f"dense_fixed({text}, parent={self.last})")
        return np.full(self.slots, length), np.tile(np.arange(length), self.slots)

    def _ragged(self, name: str, length: int, text: str) -> tuple[np.ndarray, np.ndarray]:
        self._under()
        lengths = np.array([len(found) for found in self.fibres(length, is_plain=True)], int)
        indptr = np.cumsum([0, *lengths])
        nnz = self.size(f"{name.lower()}_nnz", int(indptr[-1]))
        index = self.index(indptr)
        self.found.arrays[f"indptr_{name.lower()}"] = indptr.astype(index)
        below = f"{self.last}, ({text}, {nnz}), indptr_{name.lower()}"
        self._declare(name, f'dense_varied({below}, "{index}")')
        coordinates = [np.arange(count) for count in lengths]
        return lengths, np.concatenate([np.zeros(0, int), *coordinates])

    def _padded(self, name: str, length: int, text: str) -> tuple[np.ndarray, np.ndarray]:
        return self._compressed(name, length, text, is_padded=True)

    def _compressed(
        self, name: str, length: int, text: str, *, is_padded: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        self._under()
        is_plain, low = self.rng.random() < 0.6, name.lower()
        rows = self.fibres(length, is_plain=is_plain)
        if is_padded:
            rows = [row + [length] * self.rng.choice((0, 0, 1, 2)) for row in rows]
        lengths = np.array([len(row) for row in rows], int)
        indptr = np.cumsum([0, *lengths])
        indices = np.array([at for row in rows for at in row], int)
        index = self.index(indptr, indices)
        self.found.arrays[f"indptr_{low}"] = indptr.astype(index)
        self.found.arrays[f"indices_{low}"] = indices.astype(index)
        nnz = self.size(f"{low}_nnz", int(indptr[-1]))
        flags = "" if is_plain else ", sorted=False, unique=False"
        flags += ", padded=True" if is_padded else ""
        arrays = f"(indptr_{low}, indices_{low})"
        shape = f"({text}, {nnz})"
        self._declare(name, f'compressed_varied({self.last}, {shape}, {arrays}, "{index}"{flags})')
        return lengths, indices

    def _ell(self, name: str, length: int, text: str) -> tuple[np.ndarray, np.ndarray]:
        self._under()
        low, is_plain = name.lower(), self.rng.random() < 0.7
        rows = self.fibres(length, is_plain=is_plain)
        width = max([len(row) for row in rows], default=0) + self.rng.choice((0, 0, 1, 3))
        slots = np.full((self.slots, width), length)
        for at, row in enumerate(rows):
            slots[at, : len(row)] = row
        if not is_plain:
            for row in slots:
                self.rng.shuffle(row)
        index = self.index(slots, np.array([length]))
        self.found.arrays[f"indices_{low}"] = slots.astype(index)
        flags = "" if is_plain else ", sorted=False, unique=False"
        shape = f"({text}, {self.size(f'{low}_width', width)})"
        below = f'{self.last}, {shape}, indices_{low}, "{index}"{flags}'
        self._declare(name, f"compressed_fixed({below})")
        return np.full(self.slots, width), slots.reshape(-1)


# --- structures by name

CHAINS: dict[str, tuple[str, ...]] = {
    "csr": ("root", "compressed"),
    "ell": ("root", "ell"),
    "ragged": ("root", "ragged"),
    "padded": ("root", "padded"),
    "dense": ("root", "root"),
    "dcsr": ("unit", "compressed", "compressed"),
    "csf": ("root", "compressed", "compressed"),
    "ell of rows": ("root", "compressed", "ell"),
    "blocks": ("root", "compressed", "dense", "dense"),
    "ragged blocks": ("root", "ragged", "dense", "compressed"),
    "bsr": ("root", "compressed", "root", "root"),
}
COMMON = ("csr", "csr", "csr", "csr", "ell", "ragged", "dcsr", "bsr", "bsr")
"""Those that default rules know."""
BELOW = ("dense", "ragged", "compressed", "compressed", "padded", "ell")
KINDS = (*("csr",) * 5, *CHAINS, "bsr", "any", "any")


def draw_structure(rng: Random, size: Size, kinds: Sequence[str] = KINDS) -> tuple[str, Structure]:
    """A structure and its name."""
    kind = rng.choice(kinds)
    chain: Sequence[str] = CHAINS.get(kind, ())
    if not chain:
        below = [rng.choice(BELOW) for _ in range(rng.choice((1, 2, 2, 3)))]
        chain = (rng.choice(("root", "root", "unit")), *below)
    builder = Builder(rng, size)
    for at, level in enumerate(chain):
        choices = LENGTHS if at < 2 and len(chain) < 4 else SHORT
        if kind == "bsr" and at > 1:
            choices = (1, 2, 3, 4)
        length = 1 if level == "unit" else rng.choice(choices)
        builder.add("root" if level == "unit" else level, length)
    found = builder.found
    _name_rows(rng, kind, found)
    return kind, found


def _name_rows(rng: Random, kind: str, found: Structure) -> None:
    """Which levels are rows and columns."""
    lengths = [level.length for level in found.levels]
    if kind == "bsr":
        found.row, found.column = f"i * {lengths[2]} + p", f"j * {lengths[3]} + q"
        found.row_level, found.column_level = 2, 3
        found.rows, found.columns = lengths[0] * lengths[2], lengths[1] * lengths[3]
        return
    last = len(found.levels) - 1
    first = 1 if kind == "dcsr" else rng.choice((0, 0, 0, last - 1))
    second = rng.randint(first + 1, last)
    found.row, found.column = found.levels[first].var, found.levels[second].var
    found.row_level, found.column_level = first, second
    found.rows, found.columns = lengths[first], lengths[second]
    found.is_rows_axis = first == 0
