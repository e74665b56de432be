#!/usr/bin/env python3
"""Writes a graph as Tandem trains gnn on it (data.graph): one safetensors file with its rows, features and labels."""
import argparse
import json
import struct
import sys
from pathlib import Path

import numpy

EPILOG = """From a folder of .npy files: edges.npy [edges, 2] (from, to), or indptr.npy [nodes + 1] and indices.npy; features.npy
[nodes, inputs], labels.npy [nodes], and where not all nodes are trained on train.npy and held_out.npy (numbers of nodes).
From CSV files, without a header: --edges has a line an edge (from, to), --features a line a node, --labels a number a
line, --train and --held-out a number of a node a line.
An edge from u to v means that v reads u: u is one of v's neighbours. Edges that occur twice are written once."""

TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32"}


class Refused(Exception):
    pass


def whole_numbers(what, array, dimensions):
    if array.ndim != dimensions or not (numpy.issubdtype(array.dtype, numpy.integer)):
        raise Refused(f"{what}: is {array.dtype} {list(array.shape)}; allowed: whole numbers of {dimensions} dimension(s)")
    return array.astype(numpy.int64)


def rows_of(edges, nodes, undirected):
    """indptr and indices: row v has the nodes that v reads, ascending, each once."""
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise Refused(f"edges: have the shape {list(edges.shape)}; allowed: [edges, 2], from and to")
    if edges.size and not 0 <= edges.min() <= edges.max() < nodes:
        wrong = edges.min() if edges.min() < 0 else edges.max()
        raise Refused(f"edges: name node {wrong}; allowed: 0 to {nodes - 1}, the rows of features")
    if undirected:
        edges = numpy.concatenate([edges, edges[:, ::-1]])
    keys = numpy.unique(edges[:, 1] * nodes + edges[:, 0])
    indptr = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(keys // nodes, minlength=nodes))])
    return indptr.astype(numpy.int64), keys % nodes


def table(path, kind):
    """A CSV file without a header, [lines, columns]."""
    try:
        return numpy.loadtxt(path, delimiter=",", dtype=kind, ndmin=2)
    except ValueError as error:
        raise Refused(f"{path}: {error}; allowed: numbers with commas between them, and no header") from error


def numbers_in(path):
    read = table(path, numpy.int64)
    if read.shape[1] != 1:
        raise Refused(f"{path}: has {read.shape[1]} numbers a line; allowed: one")
    return read[:, 0]


def from_csv(options):
    if options.features is None or options.labels is None:
        raise Refused("--edges: needs --features and --labels beside it")
    tensors = {"features": table(options.features, numpy.float32), "labels": numbers_in(options.labels)}
    for name, path in (("train", options.train), ("held_out", options.held_out)):
        if path is not None:
            tensors[name] = numbers_in(path)
    tensors["edges"] = table(options.edges, numpy.int64)
    return tensors


def from_folder(folder):
    tensors = {}
    for name in ("edges", "indptr", "indices", "features", "labels", "train", "held_out"):
        path = folder / f"{name}.npy"
        if path.exists():
            tensors[name] = numpy.load(path, allow_pickle=False)
    for name in ("features", "labels"):
        if name not in tensors:
            raise Refused(f"{folder / name}.npy: is missing")
    if "edges" not in tensors and not {"indptr", "indices"} <= tensors.keys():
        raise Refused(f"{folder}: has no edges.npy; allowed: that, or indptr.npy and indices.npy")
    return tensors


def graph_of(tensors, undirected, half):
    features = tensors["features"]
    if features.ndim != 2 or features.dtype not in (numpy.float64, numpy.float32, numpy.float16):
        raise Refused(f"features: are {features.dtype} {list(features.shape)}; allowed: floats [nodes, inputs]")
    if features.dtype == numpy.float64 or half:
        features = features.astype(numpy.float16 if half else numpy.float32)
    nodes = len(features)
    out = {}
    if "edges" in tensors:
        out["indptr"], indices = rows_of(whole_numbers("edges", tensors["edges"], 2), nodes, undirected)
    else:
        if undirected:
            raise Refused("--undirected: is of edges, and indptr.npy has rows already; allowed: edges.npy")
        out["indptr"], indices = (whole_numbers(name, tensors[name], 1) for name in ("indptr", "indices"))
    out["indices"] = indices.astype(numpy.int32 if nodes < 2**31 else numpy.int64)
    for name in ("labels", "train", "held_out"):
        if name in tensors:
            out[name] = whole_numbers(name, tensors[name], 1)
    out["features"] = features
    for name, length in (("indptr", nodes + 1), ("labels", nodes)):
        if len(out[name]) != length:
            raise Refused(f"{name}: has {len(out[name])} numbers; allowed: {length}, as features has {nodes} rows")
    return out


def write(path, tensors):
    """Numbers of eight bytes first: each tensor begins at a multiple of its numbers' size."""
    order = sorted(tensors, key=lambda name: -tensors[name].itemsize)
    header, at = {}, 0
    for name in order:
        array = tensors[name]
        header[name] = {"dtype": TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(numpy.ascontiguousarray(tensors[name]).data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--npy", type=Path, metavar="FOLDER", help="a folder of .npy files")
    source.add_argument("--edges", type=Path, metavar="FILE", help="a CSV of edges")
    for name in ("features", "labels", "train", "held-out"):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help="beside --edges")
    parser.add_argument("--undirected", action="store_true", help="each edge goes both ways")
    parser.add_argument("--half", action="store_true", help="features in float16")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the safetensors file")
    options = parser.parse_args()
    try:
        tensors = from_folder(options.npy) if options.npy else from_csv(options)
        graph = graph_of(tensors, options.undirected, options.half)
        write(options.output, graph)
    except (Refused, OSError) as refused:
        sys.exit(f"prepare_graph.py: {refused}")
    nodes = len(graph["labels"])
    print(f"{options.output}: {nodes} nodes, {len(graph['indices'])} edges ({len(graph['indices']) / nodes:.1f} a node), "
          f"{graph['features'].shape[1]} features, {graph['labels'].max() + 1} classes")


if __name__ == "__main__":
    main()
