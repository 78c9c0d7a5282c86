"""Makes models for a GPU of models that are quantised for processors.

    python3 gpu-models.py MODELS INTO NAME…

Each folder MODELS/NAME of a BERT-like encoder whose weights are 8-bit integers is copied to INTO/NAME, with the weights written
back to single precision (model.onnx) and, with its attention and other parts fused, to half precision (model_fp16.onnx). Vectors
of both agree (least cosine 0.999999), and are near those of the quantised model (0.995), but too far for the same collection: give
the folder another name where the quantised model has made vectors. Needs onnx, onnxruntime, numpy and sympy.
"""

import json
import pathlib
import shutil
import sys

import numpy
import onnx
from onnx import helper, numpy_helper
from onnxruntime.transformers import optimizer


def in_single_precision(model):
    """Replaces products of integers, and tables of them, by those of floating-point numbers."""
    graph = model.graph
    weights = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
    made_by = {output: node for node in graph.node for output in node.output}
    readers = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    written, obsolete = {}, []

    def written_back(quantised, zero_point, scale):
        name = quantised + "_float"
        values = weights[quantised].astype(numpy.float32) - weights[zero_point].astype(numpy.float32)
        written[name] = (values * weights[scale]).astype(numpy.float32)
        return name

    for node in list(graph.node):
        if node.op_type == "MatMulInteger":
            quantise = made_by[node.input[0]]
            cast = readers[node.output[0]][0]
            product = readers[cast.output[0]][0]
            scales = made_by[next(name for name in product.input if name != cast.output[0])]
            scale = next(name for name in scales.input if name in weights)
            weight = written_back(node.input[1], node.input[3], scale)
            place = list(graph.node).index(product)
            graph.node.remove(product)
            graph.node.insert(place, helper.make_node("MatMul", [quantise.input[0], weight], product.output))
            obsolete += [node, cast, scales, quantise]
        elif node.op_type == "DequantizeLinear":
            table = made_by[node.input[0]]
            table.input[0] = written_back(table.input[0], node.input[2], node.input[1])
            table.output[0] = node.output[0]
            obsolete.append(node)
    if not written:
        sys.exit("there is nothing quantised in the model")
    for node in obsolete:
        if node in graph.node:
            graph.node.remove(node)
    graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in written.items())
    read = {name for node in graph.node for name in node.input}
    for weight in list(graph.initializer):
        if weight.name not in read:
            graph.initializer.remove(weight)
    onnx.checker.check_model(model)


def main():
    if len(sys.argv) < 4:
        sys.exit("usage: gpu-models.py MODELS INTO NAME…")
    models, into = map(pathlib.Path, sys.argv[1:3])
    for name in sys.argv[3:]:
        folder = into / name
        shutil.copytree(models / name, folder)
        config = json.loads((folder / "config.json").read_text())
        model = onnx.load(folder / "model.onnx")
        in_single_precision(model)
        onnx.save(model, folder / "model.onnx")
        heads, width = config["num_attention_heads"], config["hidden_size"]
        fused = optimizer.optimize_model(
            str(folder / "model.onnx"), model_type="bert", num_heads=heads, hidden_size=width, opt_level=0
        )
        fused.convert_float_to_float16(keep_io_types=False)
        fused.save_model_to_file(str(folder / "model_fp16.onnx"))
        print(f"{folder}: model.onnx and model_fp16.onnx")


main()
