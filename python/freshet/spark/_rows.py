"""Columns of a data frame as workers take them, and vectors as arrays."""
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, NumericType


def features_of(frame, name):
    """A column of vectors or of arrays of numbers, in the form in which Arrow carries it."""
    kind = frame.schema[name].dataType
    if isinstance(kind, VectorUDT):
        parts = F.unwrap_udt(F.col(name))
        floats = parts["values"].cast("array<float>").alias("values")  # half the bytes on the way
        return F.when(F.col(name).isNotNull(), F.struct(parts["type"], parts["size"], parts["indices"], floats))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, NumericType):
        return F.col(name).cast("array<float>")
    raise TypeError(f"column {name!r} is of type {kind.simpleString()}, expected vectors (VectorAssembler makes them) or arrays "
                    "of numbers")


def number_of(frame, name, what):
    kind = frame.schema[name].dataType
    if not isinstance(kind, NumericType):
        raise TypeError(f"{what} column {name!r} is of type {kind.simpleString()}, expected numbers"
                        + ("; StringIndexer makes them" if what == "label" else ""))
    return F.col(name).cast("double")


def deal_out(rows, workers, how, *, said, repeatable):
    """As many partitions as workers; with 'never', unless somebody `said` how many there are to be, as many workers as there
    are partitions. Where a second attempt must have the same rows in the same order, they are sorted by a
    hash of what is in them: which rows a partition gets does not change, in which order they come to it may."""
    have = rows._jdf.rdd().getNumPartitions() if how != "always" else 0
    if have == workers or (how == "never" and not said):
        return rows
    if how == "never":
        raise ValueError(f"the frame has {have} partitions and numWorkers is {workers}; with repartitioning='never' they must be "
                         "as many")
    dealt = rows.repartition(workers)
    return dealt.sortWithinPartitions(F.xxhash64(*rows.columns)) if repeatable else dealt
