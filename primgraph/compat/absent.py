"""Names of another library that `primgraph.compat` does not have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from primgraph.base.array_functions import replacement_hint
from primgraph.errors import UnknownNameError, near_matches

_PACKAGE = "primgraph.compat."
_CPU = "all arrays are in the memory of the CPU: leave it out"
_ONE = "there is one process: pg.distributed trains on the workers of a dask client"
_NO_OPERATOR = "there is no such operator: compose it of others, or use pg.custom_vjp"
_ATTENTION = "its weights are in cuDNN's order: pg.scaled_dot_product_attention computes attention"
_READERS = "utils.data.Dataset reads samples by functions of Python"
_EXACT = "there is no quantization"
_OF_FUNCTION = "it is an attribute of autograd.Function, or of its ctx"
_FUNCTIONAL = "it is in autograd.functional"
_IMAGES = "data.transform changes arrays of images before they are tensors"
_NO_DTYPE = "arrays are of NumPy's dtypes"
_FLASH = "it is for other processors: scaled_dot_product_attention computes attention"
_PADDED = "sequences are padded arrays with lengths: see functional.sequence_mask"
_DENSE = "tensors are dense; pg.sparse_jacobian gives sparse matrices of derivatives"
_INSTEAD = {
    **dict.fromkeys(("set_device", "get_device", "current_device"), _CPU),
    **dict.fromkeys(("placement", "cpu"), _CPU),
    **dict.fromkeys(("jit", "trace"), "there is no TorchScript: pg.jit compiles a function"),
    "signal": "pg.fft has transforms: frames are taken by x.unfold(axis, size, step)",
    "fx": "pg.trace gives the graph of a function, which print shows",
    "export": "pg.save writes a program, and pg.load reads it",
    **dict.fromkeys(("sparse", "sparse_coo_tensor"), _DENSE),
    "onnx": "kernel.save('model.onnx') writes a model of ONNX",
    "profiler": "pg.profile measures the lines of a program",
    "distributed": "pg.distributed trains on the workers of a dask client",
    "tensorboard": "it shows logs of other packages: write numbers to a file",
    "cpp_extension": "kernels of other languages are not loaded: pg.custom_vjp takes functions",
    "bottleneck": "pg.profile measures each equation",
    "Graph": "pg.jit compiles a function, and pg.Program builds a graph",
    "summary": "print(layer) lists its sublayers and parameters",
    "flops": "pg.cost counts operations and bytes",
    "amp": "results have the dtypes of their operands: x.astype converts",
    "quantization": "all arrays are of NumPy's dtypes",
    "traced_module": "megengine.jit.trace and dump write a function as a program",
    **dict.fromkeys(("multi_head_attention", "MultiHeadAttention"), _ATTENTION),
    **dict.fromkeys(("LocalConv2d", "RegionRestrictedConv", "DeformableConv2d"), _NO_OPERATOR),
    **dict.fromkeys(("QuantStub", "DequantStub"), "there is no quantization"),
    "xla_trace": "pg.jit compiles a function",
    "hub": "no files are loaded from the network",
    "dtr": "pg.checkpoint recomputes values to save memory",
    "one_embedding": "tables are in the memory of one process: nn.Embedding",
    **dict.fromkeys(("comm", "boxing", "all_reduce_sum", "launcher", "init_process_group"), _ONE),
    **dict.fromkeys(("deformable_conv2d", "deformable_psroi_pooling"), _NO_OPERATOR),
    **dict.fromkeys(("local_conv2d", "region_restricted_conv", "roi_align"), _NO_OPERATOR),
    **dict.fromkeys(("roi_pooling", "warp_affine", "warp_perspective", "remap"), _NO_OPERATOR),
    **dict.fromkeys(("correlation", "cvt_color", "nvof"), _NO_OPERATOR),
    **dict.fromkeys(("flash_attn_qkvpacked", "flashmask_attention", "sparse_attention"), _FLASH),
    **dict.fromkeys(("flash_attn_varlen_qkvpacked", "flash_attention_v3_varlen"), _FLASH),
    **dict.fromkeys(("class_center_sample", "margin_cross_entropy", "moe_permute"), _ONE),
    **dict.fromkeys(("hsigmoid_loss", "rnnt_loss", "nce", "row_conv", "gather_tree"), _NO_OPERATOR),
    **dict.fromkeys(("deform_conv2d", "dynamic_decode", "BeamSearchDecoder"), _NO_OPERATOR),
    **dict.fromkeys(("HSigmoidLoss", "RNNTLoss", "AdaptiveLogSoftmaxWithLoss"), _NO_OPERATOR),
    **dict.fromkeys(("sequence_conv", "sequence_pool", "sequence_softmax"), _PADDED),
    **dict.fromkeys(("sequence_expand", "sequence_first_step", "sequence_last_step"), _PADDED),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "pstring", "raw"), _NO_DTYPE),
    **dict.fromkeys(("IpuCompiledProgram", "IpuStrategy", "ipu_shard_guard"), _CPU),
    **dict.fromkeys(("set_ipu_shard", "xpu_places", "XPUPinnedPlace", "MmapStorage"), _CPU),
    **dict.fromkeys(
        ("enable_compat", "disable_compat"), "primgraph.compat.torch has torch's names"
    ),
    **dict.fromkeys(("VisualDL", "WandbCallback"), "a callback of paddle.Model writes numbers"),
    "ctr_metric_bundle": "paddle.metric has measures, which are computed of batches",
    "sparse_embedding": "tables are in the memory of one process: static.nn.embedding",
    **dict.fromkeys(("COCOReader", "CoinFlip", "CropMirrorNormalize"), _READERS),
    **dict.fromkeys(("OFRecordBytesDecoder", "OFRecordImageDecoder", "OFRecordReader"), _READERS),
    **dict.fromkeys(("OFRecordImageDecoderRandomCrop", "OFRecordRawDecoder"), _READERS),
    **dict.fromkeys(("FakeQuantization", "MinMaxObserver", "Quantization"), _EXACT),
    **dict.fromkeys(("MovingAverageMinMaxObserver", "QatConv1d", "QatConv2d", "QatConv3d"), _EXACT),
    **dict.fromkeys(("apply", "forward", "save_for_backward"), _OF_FUNCTION),
    **dict.fromkeys(("saved_tensors", "mark_non_differentiable"), _OF_FUNCTION),
    **dict.fromkeys(("hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"), _FUNCTIONAL),
    "ctc_greedy_decoder": "argmax of the scores gives the best symbols",
    **dict.fromkeys(("Client", "Group", "Server", "WORLD", "bcast_list_", "get_backend"), _ONE),
    **dict.fromkeys(("get_client", "get_local_device_id", "get_mm_server_addr"), _ONE),
    **dict.fromkeys(("get_py_server_addr", "group", "group_end", "group_start"), _ONE),
    **dict.fromkeys(("make_allreduce_cb", "mproperty", "new_group", "override_backend"), _ONE),
    **dict.fromkeys(("synchronized", "DistributedDataParallel"), _ONE),
    **dict.fromkeys(("get_allocated_memory", "get_max_allocated_memory"), _CPU),
    **dict.fromkeys(("get_reserved_memory", "get_max_reserved_memory"), _CPU),
    **dict.fromkeys(("get_mem_status_bytes", "reset_max_memory_stats"), _CPU),
    **dict.fromkeys(("get_cuda_compute_capability", "get_cuda_device_property"), _CPU),
    **dict.fromkeys(("get_cuda_driver_version", "get_cuda_version", "get_tensorrt_version"), _CPU),
    "get_cudnn_version": _CPU,
    **dict.fromkeys(("ActiveBlur", "AdditiveElemwise", "AdditiveGaussianNoise"), _IMAGES),
    **dict.fromkeys(("AdditiveLaplaceNoise", "AdditivePoissonNoise", "CropAndPad"), _IMAGES),
    **dict.fromkeys(("Cutmix", "Dilation", "Emboss", "FillPoly", "GaussianBlur"), _IMAGES),
    **dict.fromkeys(("LinearContrast", "Mixup", "Remap", "Rotate", "Sharpen", "rotate"), _IMAGES),
    "Resize": "functional.vision.resize computes it",
    **dict.fromkeys(("MegEngineLogFormatter", "call_countlog_func"), "see the module logging"),
    "DeformablePSROIPooling": _NO_OPERATOR,
    "LAMBFp16": "LAMB has the states of the parameters' dtype",
    "bfloat16": "NumPy has no such dtype: the float dtypes are float16, float32 and float64",
}


def reason_for(name: str) -> str:
    """Return why there is no such name, or what to use instead; empty if nothing is known."""
    return _INSTEAD.get(name, "")


def absent(module: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module of `primgraph.compat`: an error for unknown names.

    It says that the name is not part of the package, and what to use instead, if that is known.
    """
    library = module.removeprefix(_PACKAGE)

    def explain(name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        known = getattr(sys.modules[module], "__all__", ())
        hint = reason_for(name) or near_matches(name, known) or replacement_hint(name)
        package = _PACKAGE + library.partition(".")[0]
        raise UnknownNameError(f"{library}.{name} is not part of {package}", hint=hint)

    return explain
